// SPDX-License-Identifier: Apache-2.0
//
// itspace follow --predictions: the gate along a stream against the library's, the maps it leaves, and what it refuses.
#include "program.hpp"

#include <itspace/covariance.hpp>
#include <itspace/followed_shift.hpp>
#include <itspace/map_file.hpp>
#include <itspace/online_file.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include <limits>
#include <sstream>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index gated_dim = 6, rows = 24;
constexpr std::size_t count = 6;

class FollowGateCommand : public ProgramTest {
 protected:
  FollowGateCommand() {
    write("src.npy", gaussian(200, gated_dim, 100));
    for (std::size_t i = 0; i < count; ++i) {
      // One class for all samples as they are, all four under the map; in the last three the other way about.
      const Matrix collapsed = probabilities(false), spread = probabilities(true);
      write(name("x", i), Matrix(3 * gaussian(rows, gated_dim, i).array() + 9));
      write(name("p", i), i < 3 ? collapsed : spread);
      write(name("q", i), i < 3 ? spread : collapsed);
    }
  }

  static std::string name(const std::string& kind, std::size_t i) { return kind + std::to_string(i) + ".npy"; }
  static std::string pair(std::size_t i) { return name("p", i) + "," + name("q", i); }
  static Matrix probabilities(bool spread) {
    Matrix out = Matrix::Constant(rows, 4, 0.05);
    for (Index i = 0; i < rows; ++i) out(i, spread ? i % 4 : 1) = 0.85;
    return out;
  }
  Outcome follow(Texts more, std::size_t first, std::size_t end, bool asked = true) const {
    Texts arguments{"follow", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (std::size_t i = first; asked && i < end; ++i) arguments.insert(arguments.end(), {"--predictions", pair(i)});
    for (std::size_t i = first; i < end; ++i) arguments.push_back(name("x", i));
    return run(arguments);
  }
  static std::vector<Json> lines_of(const Outcome& done) {
    std::vector<Json> lines;
    std::istringstream text(done.out);
    for (std::string line; std::getline(text, line);) {
      lines.push_back(Json::parse(line));
      lines.back().erase("seconds");
    }
    return lines;
  }
  double moved_by(const std::string& map) const {
    const auto done = run({"transform", "--map", map, "--in", "x5.npy", "--out", "mapped.npy"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return (array_of("mapped.npy") - array_of("x5.npy")).norm();
  }
};

TEST_F(FollowGateCommand, IsTheGateOfTheLibrary) {
  const Texts options{"--rank",         "2",  "--source",   "src.npy", "--map", "monge",
                      "--gate-samples", "40", "--patience", "2"};
  const auto done = follow(options, 0, count);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const std::vector<Json> lines = lines_of(done);
  ASSERT_EQ(lines.size(), count);
  OnlineAligner<double> aligner({.rank = 2});
  FollowGate gate({.maps = {MapKind::monge}, .samples = 40, .patience = 2});
  const Block<double> features = array_of("src.npy");
  const FeaturesTarget<double> source(features);
  const LowRankGaussian model =
      model_of<double>(source, start_from_features<double>(features, 2), source.mean(),
                       ModelOptions{.deviations = deviations<double>(features), .samples = 200});
  const ClusterMeans clusters = cluster_means<double>(features, model.mean, model.factor);
  for (std::size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    aligner.observe(array_of(name("x", i)));
    const FollowedShift shift = followed_shift(model, aligner.model(), &clusters);
    const FollowVerdict expected = gate.observe({array_of(name("p", i)), {array_of(name("q", i))}}, shift.moments);
    const Json& found = lines[i]["gate"];
    EXPECT_EQ(found["choice"], expected.choice);
    EXPECT_EQ(found["says"], expected.decision.choice);
    EXPECT_EQ(found["sentence"], expected.decision.sentence);
    EXPECT_EQ(found["samples"], expected.samples);
    EXPECT_EQ(found["evidence"], "probabilities");
    EXPECT_EQ(found["unexplained"].get<double>(), *shift.moments.unexplained);
    EXPECT_EQ(found["candidates"]["none"]["spread"].get<double>(), expected.predictions[0].spread);
    EXPECT_EQ(found["candidates"]["monge"]["information"].get<double>(), *expected.predictions[1].information);
  }
  EXPECT_EQ(lines[0]["gate"]["choice"], "none");  // patience
  EXPECT_EQ(lines[0]["gate"]["says"], "monge");
  EXPECT_EQ(lines[1]["gate"]["choice"], "monge");
  EXPECT_EQ(lines[5]["gate"]["choice"], "none");
}

TEST_F(FollowGateCommand, TheMapIsTheIdentityWhileItIsClosed) {
  const Texts outputs{"--source", "src.npy", "--state", "S.npz", "--map-out", "M.npz", "--candidate-out", "C.npz"};
  Texts first = outputs;
  first.insert(first.end(), {"--rank", "2", "--half-life", "3", "--gate-samples", "24"});
  // Nothing was asked yet: closed.
  auto done = follow(first, 0, 1, false);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(lines_of(done)[0]["gate"], (Json{{"choice", "none"}, {"asked", false}}));
  EXPECT_EQ(moved_by("M.npz"), 0);
  EXPECT_GT(moved_by("C.npz"), 1);
  done = follow(outputs, 1, 2);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(lines_of(done)[0]["gate"]["choice"], "scale");
  EXPECT_EQ(text_of("M.npz"), text_of("C.npz"));
  EXPECT_EQ(io::load_map(path("M.npz")).kind(), MapKind::scale);
  EXPECT_GT(moved_by("M.npz"), 1);
  // Asked nothing it stays as it was, and its map is that of the stream as it is now.
  const std::string before = text_of("M.npz");
  done = follow(outputs, 2, 3, false);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(lines_of(done)[0]["gate"], (Json{{"choice", "scale"}, {"asked", false}}));
  EXPECT_NE(text_of("M.npz"), before);
  done = follow(outputs, 3, 4);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(lines_of(done)[0]["gate"]["choice"], "none");
  EXPECT_EQ(moved_by("M.npz"), 0);
  EXPECT_GT(moved_by("C.npz"), 1);
}

TEST_F(FollowGateCommand, AResumedStreamSaysTheSame) {
  const auto gated = [&](const Texts& more, const std::string& stem, std::size_t first, std::size_t end) {
    Texts arguments{"--source", "src.npy", "--state", stem + ".npz", "--map-out", stem + "_map.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = follow(arguments, first, end);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return lines_of(done);
  };
  const Texts beginning{"--rank", "2", "--gate-samples", "60", "--patience", "2"};
  const std::vector<Json> whole = gated(beginning, "whole", 0, count);
  std::vector<Json> parts;
  for (std::size_t i = 0; i < count; ++i)
    for (const Json& line : gated(i == 0 ? beginning : Texts{}, "parts", i, i + 1)) parts.push_back(line);
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(text_of("parts.npz"), text_of("whole.npz"));
  EXPECT_EQ(text_of("parts_map.npz"), text_of("whole_map.npz"));
  EXPECT_TRUE(io::load_follow_gate(path("whole.npz")));

  const std::string before = text_of("whole.npz");
  for (const auto& [more, words] :
       std::vector<std::pair<Texts, Texts>>{{{"--map", "monge"}, {"--map is monge", "whole.npz", "scale"}},
                                            {{"--gate-samples", "61"}, {"--gate-samples is 61", "60"}},
                                            {{"--patience", "1"}, {"--patience is 1", "has 2"}}}) {
    Texts arguments{"--state", "whole.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = follow(arguments, 0, 1);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, words)) << refused.err;
    EXPECT_EQ(text_of("whole.npz"), before);
  }
}

TEST_F(FollowGateCommand, BadPredictionsAreNamedAndChangeNothing) {
  const Matrix good = probabilities(true);
  Matrix bad = good;
  bad(5, 2) = std::numeric_limits<double>::quiet_NaN();
  write("nan.npy", bad);
  bad(5, 2) = 0.5;
  write("sum.npy", bad);
  write("short.npy", Matrix(good.topRows(rows - 1)));
  write("narrow.npy", Matrix(Matrix::Constant(rows, 2, 0.5)));
  write("wide.npy", gaussian(9, gated_dim + 1, 1));
  Matrix labels = Matrix::Constant(rows, 1, 3);
  write("labels.npy", labels);
  labels(7) = 8;
  write("strange.npy", labels);
  labels(7) = 0.5;
  write("fraction.npy", labels);
  Matrix source_labels = Matrix::Constant(9, 1, 3);
  source_labels(2) = 1;
  write("source_labels.npy", source_labels);
  ASSERT_EQ(follow({"--rank", "2", "--state", "good.npz"}, 0, 1).exit_code, 0);
  const std::string state = text_of("good.npz");
  struct Case {
    std::string predictions;
    Texts more, words;
  };
  for (const auto& [predictions, more, words] : std::vector<Case>{
           {"p1.npy,nan.npy", {}, {"rows 0 to 23 of x1.npy", "under the map 'scale'", "row 5"}},
           {"sum.npy,q1.npy", {}, {"as they are", "row 5", "sums to 1.45"}},
           {"p1.npy,short.npy", {}, {"short.npy", "23 samples", "24"}},
           {"p1.npy,narrow.npy", {}, {"24 x 4", "24 x 2"}},
           {"narrow.npy,narrow.npy", {}, {"2 columns", "4"}},
           {"labels.npy,labels.npy", {}, {"1 columns", "4"}},
           {"p1.npy", {}, {"'p1.npy'", "two files"}},
           {"p1.npy,", {}, {"'p1.npy,'", "two files"}},
           {"p1.npy,q1.npy", {"--predictions", "p1.npy,q1.npy"}, {"2 times for 1 files"}},
           {"p1.npy,q1.npy", {"--map-out", "M.npz"}, {"--map-out", "--source"}},
           {"p1.npy,q1.npy", {"--source", "wide.npy"}, {"wide.npy", "dimension 7", "6"}},
           {"p1.npy,q1.npy", {"--source", "nan.npy"}, {"nan.npy"}},
           {"p1.npy,q1.npy", {"--map", "scale+monge"}, {"scale+monge", "monge or whiten"}},
           {"p1.npy,q1.npy", {"--patience", "0"}, {"--patience is 0"}},
           {"p1.npy,q1.npy", {"--gate-samples", "0"}, {"--gate-samples is 0"}},
           {"p1.npy,q1.npy", {"--source", "src.npy", "--map-out", "src.npy"}, {"--map-out", "--source"}}}) {
    Texts arguments{"--state", "good.npz", "--predictions", predictions};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto refused = follow(arguments, 1, 2, false);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, words)) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(text_of("good.npz"), state);
  }
  // Classes that the source does not have; a stream of labels.
  for (const auto& [file, words] :
       std::vector<std::pair<std::string, Texts>>{{"strange.npy", {"row 7", "class 8", "1, 3"}},
                                                  {"fraction.npy", {"row 7", "0.5", "whole"}},
                                                  {"p1.npy", {"4 columns", "2 classes"}}}) {
    const auto refused = follow(
        {"--rank", "2", "--source-labels", "source_labels.npy", "--predictions", file + "," + file}, 1, 2, false);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, words)) << refused.err;
  }
  const auto done = follow(
      {"--rank", "2", "--source-labels", "source_labels.npy", "--predictions", "labels.npy,labels.npy"}, 1, 2, false);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(lines_of(done)[0]["gate"]["evidence"], "labels");
  EXPECT_FALSE(lines_of(done)[0].contains("class_shares"));  // nothing is balanced
  const auto alone = run({"follow", "--rank", "2", "--map", "mean", "x0.npy"});
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(mentions(alone.err, {"--map", "--predictions", "--source"})) << alone.err;
}

}  // namespace
}  // namespace itspace::cli_test
