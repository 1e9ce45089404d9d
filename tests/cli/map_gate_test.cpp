// SPDX-License-Identifier: Apache-2.0
//
// itspace map --predictions and --map auto: the map only where something speaks for it, else the identity.
#include "program.hpp"

#include <cmath>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index chosen_dim = 6;

// Stretched along two directions that are no features', so that the correlations change.
Matrix drifted(const Matrix& rows) {
  Matrix along(2, chosen_dim);
  along << 1, 1, 1, 1, 1, 1, 1, -1, 1, -1, 1, -1;
  along /= std::sqrt(static_cast<double>(chosen_dim));
  const Matrix parts = rows * along.transpose();
  return rows + 5 * parts.col(0) * along.row(0) + 3 * parts.col(1) * along.row(1);
}

class MapGateCommand : public ProgramTest {
 protected:
  MapGateCommand() {
    write("source.npy", gaussian(400, chosen_dim, 1));
    write("same.npy", gaussian(300, chosen_dim, 2));
    write("moved.npy", Matrix(gaussian(300, chosen_dim, 3).array() + 5));
    write("drifted.npy", drifted(gaussian(2000, chosen_dim, 4)));
    write("one_class.npy", Matrix::Zero(300, 1));
    Matrix labels(300, 1);
    for (Index i = 0; i < 300; ++i) labels(i, 0) = static_cast<double>(i % 4);
    write("labels.npy", labels);
  }

  Outcome make_map(const std::string& target, Texts more) const {
    Texts arguments{"map", "--source", "source.npy", "--target", target, "--out", "map.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Json made(const std::string& target, Texts more) const {
    more.emplace_back("--json");
    const auto done = make_map(target, more);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code == 0 ? done.json() : Json{};
  }
  double moved_by_the_map(const std::string& target) const {
    const auto done = run({"transform", "--map", "map.npz", "--in", target, "--out", "mapped.npy"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return (array_of("mapped.npy") - array_of(target)).norm();
  }
};

TEST_F(MapGateCommand, PredictionsThatSpreadOpenIt) {
  const Json json = made("moved.npy", {"--map", "scale", "--predictions", "one_class.npy,labels.npy"});
  EXPECT_EQ(json["kind"], "scale");
  EXPECT_EQ(json["gate"]["choice"], "scale");
  EXPECT_EQ(json["gate"]["evidence"], "labels");
  EXPECT_NEAR(json["gate"]["candidates"]["scale"]["spread"].get<double>(), 1, 1e-15);
  EXPECT_GT(json["gate"]["unexplained"].get<double>(), 0.5);  // no cluster of the source is there
  EXPECT_TRUE(json["gate"]["moments"].is_null());
  EXPECT_GT(moved_by_the_map("moved.npy"), 1);
}

TEST_F(MapGateCommand, PredictionsThatDoNotLeaveSamplesAsTheyAre) {
  const Json json = made("moved.npy", {"--map", "scale", "--predictions", "labels.npy,one_class.npy"});
  EXPECT_EQ(json["kind"], "none");
  EXPECT_EQ(json["gate"]["choice"], "none");
  EXPECT_EQ(json["displacement"], 0.0);
  EXPECT_EQ(moved_by_the_map("moved.npy"), 0);
  const auto words = make_map("moved.npy", {"--map", "scale", "--predictions", "labels.npy,one_class.npy"});
  EXPECT_TRUE(mentions(words.out, {"choice  none", "left alone", "leaves samples as they are"}));
}

// Two groups far apart, of which the target has other shares: a remixed map leaves more of that move than it undoes,
// and of a move that no shares explain next to nothing.
TEST_F(MapGateCommand, ARemixedMapLeavesWhatOtherSharesDid) {
  const auto groups = [](Index count, Index first, std::uint64_t seed) {
    Matrix rows = gaussian(count, chosen_dim, seed);
    rows.topRows(first).col(0).array() += 10;
    return rows;
  };
  write("source.npy", groups(400, 200, 11));
  write("fewer.npy", groups(400, 140, 12));
  write("away.npy", Matrix(groups(400, 200, 13).array() + 20));
  const auto moved = [&](const std::string& target, Texts more) {
    const Json json = made(target, more);
    const bool remixed = !more.empty() && more.back() == "--remix";
    EXPECT_EQ(json["remixed"], remixed);
    EXPECT_EQ(json["put_down_to_class_shares"].is_number(), remixed);
    if (remixed) {
      EXPECT_EQ(json["put_down_to_class_shares"] > 0.5, target == "fewer.npy");
    }
    return moved_by_the_map(target);
  };
  EXPECT_LT(moved("fewer.npy", {"--map", "mean", "--remix"}), 0.5 * moved("fewer.npy", {"--map", "mean"}));
  EXPECT_GT(moved("away.npy", {"--map", "mean", "--remix"}), 0.9 * moved("away.npy", {"--map", "mean"}));
  EXPECT_GT(moved("away.npy", {"--map", "monge", "--rank", "2", "--remix"}), 1);
  EXPECT_GT(moved("away.npy", {"--map", "scale", "--rank", "2", "--remix"}), 1);  // the rank of the clusters' frame
  write("covariance.npy", Matrix(Matrix::Identity(chosen_dim, chosen_dim)));
  const auto refused = make_map("covariance.npy", {"--map", "mean", "--target-samples", "100", "--remix"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_TRUE(mentions(refused.err, {"--remix", "is a covariance"}));
}

TEST_F(MapGateCommand, WithoutPredictionsThereIsNoGate) {
  EXPECT_TRUE(made("moved.npy", {"--map", "scale"})["gate"].is_null());
}

TEST_F(MapGateCommand, AutoDecidesByTheMoments) {
  const Texts automatic{"--map", "auto", "--rank", "4"};
  EXPECT_EQ(made("same.npy", automatic)["gate"]["choice"], "none");
  EXPECT_EQ(moved_by_the_map("same.npy"), 0);
  const Json moved = made("moved.npy", automatic);
  EXPECT_EQ(moved["kind"], "scale");
  EXPECT_EQ(moved["gate"]["evidence"], "moments");
  EXPECT_EQ(moved["shrink"]["method"], "halves");
  const Json stretched = made("drifted.npy", automatic);
  EXPECT_EQ(stretched["kind"], "monge");
  EXPECT_LT(stretched["gate"]["moments"]["mean_share"].get<double>(), 0.05);
  EXPECT_GT(stretched["gate"]["moments"]["covariance_kept"].get<double>(), 0.5);
}

TEST_F(MapGateCommand, AutoAsksThePredictionsFirst) {
  const Texts automatic{"--map", "auto", "--rank", "4", "--predictions"};
  const auto with = [&](const std::string& files) {
    Texts more = automatic;
    more.push_back(files);
    return more;
  };
  EXPECT_EQ(made("moved.npy", with("one_class.npy,labels.npy,labels.npy"))["kind"], "scale");
  const double asked_for = moved_by_the_map("moved.npy");
  made("moved.npy", {"--map", "scale"});  // the map that the predictions are under
  EXPECT_EQ(moved_by_the_map("moved.npy"), asked_for);
  EXPECT_EQ(made("moved.npy", with("labels.npy,one_class.npy"))["kind"], "none");
  // A drift of the covariance alone, which the classes deny or not.
  const std::string of_drifted = "labels.npy,one_class.npy,one_class.npy,";
  EXPECT_EQ(made("drifted.npy", with(of_drifted + "one_class.npy"))["kind"], "none");
  const Json stretched = made("drifted.npy", with(of_drifted + "labels.npy"));
  EXPECT_EQ(stretched["kind"], "monge");
  EXPECT_EQ(stretched["gate"]["candidates"].size(), 4u);
}

TEST_F(MapGateCommand, MisuseIsNamed) {
  const auto refused = [&](const Texts& more, const Texts& texts) {
    const auto done = make_map("moved.npy", more);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    EXPECT_TRUE(mentions(done.err, texts));
  };
  refused({"--map", "scale", "--predictions", "labels.npy"}, {"--predictions is 'labels.npy'", "two files"});
  refused({"--map", "scale", "--predictions", "labels.npy,labels.npy,labels.npy"}, {"two files"});
  refused({"--map", "auto", "--rank", "4", "--predictions", "labels.npy,"}, {"two to four files"});
  refused({"--map", "auto"}, {"--rank is required", "auto"});
  refused({"--map", "auto", "--rank", "4", "--shrink", "none"}, {"--shrink is none", "halves"});
  refused({"--map", "scale", "--predictions", "labels.npy,source.npy"}, {"300 x 1", "400 x 6"});
  write("sigma.npy", Matrix::Identity(chosen_dim, chosen_dim));
  const auto done = make_map("sigma.npy", {"--target-samples", "50", "--map", "auto", "--rank", "4"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--map is auto", "is a covariance"}));
}

}  // namespace
}  // namespace itspace::cli_test
