// SPDX-License-Identifier: Apache-2.0
//
// itspace align: what it takes, writes and says.
#include "program.hpp"

#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <cmath>
#include <regex>
#include <sstream>

namespace itspace::cli_test {
namespace {

// An option's line in --help, as far as its default: --steps N=2.
template <class Value>
std::string with_default(const std::string& option, const Value& value) {
  std::ostringstream text;
  text << option << '=' << value << ' ';
  return text.str();
}

// Newer versions of CLI11 write a default as " [2]" where older ones write "=2".
std::string with_equals_signs(const std::string& help) {
  return std::regex_replace(help, std::regex(" \\[([^\\] ]+)\\] "), "=$1 ");
}

class Align : public ProgramTest {
 protected:
  Align() {
    write("target.npy", power_law(12, 1));
    write("features.npy", gaussian(40, 12, 2));
  }
};

TEST_F(Align, WritesAFactorAndItsTrace) {
  const auto done = run({"align", "--target", "target.npy", "--start", "features.npy", "--rank", "3", "--steps", "4",
                         "--out", "Y.npy", "--trace", "T.json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Matrix y = array_of("Y.npy");
  EXPECT_EQ(y.rows(), 12);
  EXPECT_EQ(y.cols(), 3);

  const Trace trace = io::load_trace(path("T.json"));
  EXPECT_EQ(trace.dim, 12);
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.steps.size(), 5u);
  EXPECT_EQ(trace.precision, "float64");
  EXPECT_EQ(Json::parse(io::to_json(trace)), json_of("T.json"));
  EXPECT_EQ(json_of("T.json")["schema"], "itspace.trace/1");

  const double again = factor_distance_squared(y, truncate<double>(power_law(12, 1), 12));
  EXPECT_NEAR(again, trace.steps[static_cast<std::size_t>(trace.best)].objective, 1e-12);
  EXPECT_LT(trace.steps.back().objective, trace.steps.front().objective);
}

TEST_F(Align, SaysWhatItTookOnStderrAndTellsTheStoryOnStdout) {
  const auto done =
      run({"align", "--target", "target.npy", "--start", "features.npy", "--rank", "3", "--floor", "--out", "Y.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.err, {"target target.npy: covariance of dimension 12", "square and symmetric",
                                  "start features.npy: features, 40 samples of dimension 12"}));
  EXPECT_TRUE(mentions(done.out, {"objective", "gap", "certificate", "promised", "certified", "passes", "seconds",
                                  "of the way", "Certified: all 2 steps", "Y.npy"}));
  EXPECT_EQ(done.out.find(','), done.out.find(", "));  // no decimal commas, whatever the locale
}

TEST_F(Align, QuietSaysNothing) {
  const auto done = run({"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy", "--quiet"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out + done.err, "");
}

TEST_F(Align, JsonIsOneObjectWithTheTrace) {
  const auto done = run({"align", "--target", "target.npy", "--rank", "3", "--steps", "3", "--floor", "--out", "Y.npy",
                         "--trace", "T.json", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json json = done.json();
  EXPECT_EQ(json["target"]["taken_for"], "covariance");
  EXPECT_EQ(json["start"]["taken_for"], "random");
  EXPECT_EQ(json["status"], "step_limit");
  EXPECT_EQ(json["certified"], true);
  EXPECT_EQ(json["gaps"].size(), 4u);
  EXPECT_EQ(json["trace"], json_of("T.json"));
  EXPECT_LE(json["objective"], json["start_objective"]);
  double floor = 0;
  for (int i = 4; i <= 12; ++i) floor += 1.0 / (i * i);
  EXPECT_NEAR(json["floor"].get<double>(), floor, 1e-12);
}

TEST_F(Align, KeepsEveryIterate) {
  const auto done =
      run({"align", "--target", "target.npy", "--rank", "2", "--steps", "2", "--out", "Y.npy", "--iterates", "steps/"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(array_of("steps/Y_000.npy").cols(), 2);
  EXPECT_EQ(array_of("steps/Y_002.npy"), array_of("Y.npy"));
  EXPECT_FALSE(exists("steps/Y_003.npy"));
}

TEST_F(Align, GoesOnFromAFactorAndCutsOneThatIsTooWide) {
  write("wide.npy", gaussian(12, 5, 3));
  auto done = run({"align", "--target", "target.npy", "--start", "wide.npy", "--rank", "5", "--out", "Y.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.err, {"start wide.npy: factor, dimension 12 and 5 columns"}));

  done = run({"align", "--target", "target.npy", "--start", "wide.npy", "--start-as", "factor", "--rank", "3",
              "--steps", "0", "--out", "Y.npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(array_of("Y.npy").cols(), 3);
  EXPECT_LT(
      (array_of("Y.npy") * array_of("Y.npy").transpose() -
       truncate_factor<double>(gaussian(12, 5, 3), 3) * truncate_factor<double>(gaussian(12, 5, 3), 3).transpose())
          .norm(),
      1e-12);

  done = run({"align", "--target", "target.npy", "--start", "wide.npy", "--start-as", "factor", "--rank", "6", "--out",
              "Z.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"wide.npy has 5 columns", "--rank 6", "use --rank 5"}));
  EXPECT_FALSE(exists("Z.npy"));
}

// A covariance that was added up in float32 is one, also in a float64 file; what is nearly symmetric is not guessed
// about.
TEST_F(Align, NearlySymmetricFilesAreNotTakenForSamples) {
  Matrix sigma = power_law(12, 1);
  sigma(3, 1) += 2e-7 * sigma(0, 0);
  write("rounded.npy", sigma);
  sigma(3, 1) += 1e-3 * sigma(0, 0);
  write("spoilt.npy", sigma);
  const auto taken = run({"align", "--target", "rounded.npy", "--rank", "2", "--out", "Y.npy"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_TRUE(mentions(taken.err, {"covariance of dimension 12", "square and symmetric"})) << taken.err;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"align", "--target", "spoilt.npy", "--rank", "2", "--out", "Z.npy"},
        {"distance", "spoilt.npy", "rounded.npy", "--quiet"}}) {
    const auto refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_TRUE(mentions(refused.err, {"spoilt.npy", "nearly symmetric", "[3, 1]", "limit", "features"}))
        << refused.err;
  }
  EXPECT_FALSE(exists("Z.npy"));
  const auto samples =
      run({"align", "--target", "spoilt.npy", "--target-as", "features", "--rank", "2", "--out", "Z.npy"});
  EXPECT_EQ(samples.exit_code, 0) << samples.err;
}

TEST_F(Align, AutoTakesWhatItShould) {
  const auto taken = [&](const std::vector<std::string>& target) {
    std::vector<std::string> arguments{"align", "--rank", "2", "--out", "Y.npy", "--json"};
    arguments.insert(arguments.end(), target.begin(), target.end());
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code == 0 ? done.json()["target"]["taken_for"].get<std::string>() : "";
  };
  EXPECT_EQ(taken({"--target", "target.npy"}), "covariance");
  EXPECT_EQ(taken({"--target", "features.npy"}), "features");

  write_statistics("stats.npz", gaussian(12, 1, 4), power_law(12, 1));
  EXPECT_EQ(taken({"--target", "stats.npz"}), "covariance");

  write("square.npy", gaussian(12, 12, 5));  // square, but far from symmetric: samples
  const auto done = run({"align", "--target", "square.npy", "--rank", "2", "--out", "Y.npy"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.err, {"features, 12 samples", "not symmetric", "--target-as covariance"}));

  EXPECT_EQ(taken({"--target", "features.npy", "--target-as", "factor", "--no-completion"}), "factor");

  const std::vector<io::NamedBlock> arrays{{"train", gaussian(30, 12, 6), false}, {"test", gaussian(9, 12, 7), false}};
  io::save_npz(path("sets.npz"), arrays);
  EXPECT_EQ(taken({"--target", "sets.npz", "--target-key", "train"}), "features");

  write_float("rounded.npy", power_law(12, 1));  // symmetric up to float32's rounding
  EXPECT_EQ(taken({"--target", "rounded.npy"}), "covariance");
  EXPECT_EQ(taken({"--target", "rounded.npy", "--precision", "float64"}), "covariance");
}

TEST_F(Align, PrecisionFollowsTheTarget) {
  write_float("single.npy", power_law(12, 1));
  ASSERT_EQ(run({"align", "--target", "single.npy", "--rank", "2", "--out", "Y.npy", "--trace", "T.json"}).exit_code,
            0);
  EXPECT_EQ(json_of("T.json")["precision"], "float32");
  EXPECT_EQ(io::open_array(path("Y.npy")).info().type, "float32");
  ASSERT_EQ(
      run({"align", "--target", "single.npy", "--precision", "float64", "--rank", "2", "--out", "Y.npy"}).exit_code, 0);
  EXPECT_EQ(io::open_array(path("Y.npy")).info().type, "float64");
}

TEST_F(Align, StepSizes) {
  const auto alpha = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.json()["trace"]["alpha"];
  };
  EXPECT_EQ(alpha({"--steps", "1"}), 1.0);
  EXPECT_EQ(alpha({"--steps", "2"}), 1.1);
  EXPECT_EQ(alpha({"--steps", "5"}), 1.3);
  EXPECT_EQ(alpha({"--alpha", "0.9"}), 0.9);
  EXPECT_EQ(alpha({"--lambda", "0.5"}), 0.5);
  EXPECT_FALSE(alpha({"--alpha", "line-search", "--steps", "3"}).is_number());
}

TEST_F(Align, RitzReachesTheFloor) {
  const auto done = run({"align", "--target", "target.npy", "--rank", "3", "--steps", "4", "--solver", "ritz",
                         "--floor", "--out", "Y.npy", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["trace"]["solver"], "ritz");
  EXPECT_LT(done.json()["gap"].get<double>(), 1e-6);
}

TEST_F(Align, RoutesAgree) {
  double reference = 0;
  for (const std::string route : {"qr", "gram", "factor", "root", "auto"}) {
    const auto done = run({"align", "--target", "features.npy", "--start", "target.npy", "--rank", "3", "--route",
                           route, "--out", "Y.npy", "--json"});
    ASSERT_EQ(done.exit_code, 0) << route << done.err;
    const double objective = done.json()["objective"];
    if (route == "qr") reference = objective;
    EXPECT_NEAR(objective, reference, 1e-10 * reference) << route;
  }
}

TEST_F(Align, OptionsReachTheSolver) {
  const auto passes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"align", "--target", "target.npy", "--start", "features.npy", "--rank",
                                       "3",     "--out",    "Y.npy",      "--json",  "--threads",    "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.json()["trace"]["passes_total"].get<int>();
  };
  EXPECT_EQ(passes({"--steps", "3"}), 4);
  EXPECT_EQ(passes({"--steps", "3", "--skip-last-evaluation"}), 3);
  EXPECT_EQ(passes({"--steps", "3", "--probe"}), 4);
  EXPECT_LT(passes({"--steps", "500", "--tolerance", "0.05"}), 50);
}

TEST_F(Align, SeedsGiveTheSameBytes) {
  const auto factor = [&](const std::string& seed) {
    EXPECT_EQ(
        run({"align", "--target", "features.npy", "--rank", "3", "--seed", seed, "--threads", "1", "--out", "Y.npy"})
            .exit_code,
        0);
    return text_of("Y.npy");
  };
  EXPECT_EQ(factor("7"), factor("7"));
  EXPECT_NE(factor("7"), factor("8"));
}

TEST_F(Align, RidgeAndWeights) {
  const auto trace = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"align", "--rank", "3", "--out", "Y.npy", "--json", "--floor"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.json();
  };
  const double plain = trace({"--target", "target.npy"})["trace"]["target_trace"];
  const Json shifted = trace({"--target", "target.npy", "--ridge", "0.5"});
  EXPECT_NEAR(shifted["trace"]["target_trace"].get<double>(), plain + 12 * 0.5, 1e-12);
  EXPECT_NEAR(shifted["floor"].get<double>(), plain - 1 - 1.0 / 4 - 1.0 / 9 + 9 * 0.5, 1e-12);

  write("ones.npy", Matrix::Constant(40, 1, 2.5));
  const double features = trace({"--target", "features.npy"})["trace"]["target_trace"];
  const double weighted = trace({"--target", "features.npy", "--weights", "ones.npy"})["trace"]["target_trace"];
  EXPECT_NEAR(weighted, features, 1e-12 * features);
}

TEST_F(Align, AnInterruptKeepsTheBestIterate) {
  write("big.npy", gaussian(600, 400, 9));
  const auto done = run_and_interrupt({"align", "--target", "big.npy", "--rank", "20", "--steps", "100000000",
                                       "--alpha", "0.01", "--out", "Y.npy", "--trace", "T.json", "--iterates", "steps"},
                                      "steps/Y_002.npy");
  EXPECT_EQ(done.exit_code, 130) << done.err;
  EXPECT_EQ(json_of("T.json")["status"], "stopped");
  EXPECT_EQ(array_of("Y.npy").cols(), 20);
  EXPECT_TRUE(mentions(done.err, {"interrupt", "Y.npy"}));
}

TEST_F(Align, OldOutputIsReplaced) {
  write_bytes("Y.npy", "old");
  ASSERT_EQ(run({"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy"}).exit_code, 0);
  EXPECT_EQ(array_of("Y.npy").rows(), 12);
  EXPECT_EQ(files(), (std::vector<std::string>{"Y.npy", "features.npy", "target.npy"}));
}

TEST_F(Align, NamesWithBlanksAndCommasAreNames) {
  write("a, b [1].npy", power_law(6, 3));
  const auto done = run({"align", "--target", "a, b [1].npy", "--rank", "2", "--out", "[Y, 2].npy"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(exists("[Y, 2].npy"));
}

// A run that could not be judged is not certified, in any of the words for it: 3e38 overflows in float32.
TEST_F(Align, ARunThatFailedIsNotCertified) {
  write_float("huge.npy", Matrix::Constant(3, 3, 3e38));
  write_float("one.npy", Matrix::Constant(3, 1, 1));
  std::vector<std::string> line{"align",       "--target", "huge.npy", "--start", "one.npy", "--rank", "1",
                                "--precision", "float32",  "--out",    "Y.npy",   "--trace", "T.json"};
  const auto words = run(line);
  EXPECT_EQ(words.exit_code, 1);
  EXPECT_TRUE(mentions(words.out, {"NOT certified: the run ended as not_finite", "was not evaluated"})) << words.out;
  EXPECT_EQ(words.out.find("0 % less"), std::string::npos) << words.out;
  line.emplace_back("--json");
  const Json json = run(line).json();
  EXPECT_EQ(json["status"], "not_finite");
  EXPECT_EQ(json["certified"], false);

  const std::vector<std::string> verify{"verify", "Y.npy", "--target", "huge.npy", "--trace", "T.json"};
  const auto honest = run(verify);  // in double, where nothing overflows
  EXPECT_EQ(honest.exit_code, 0) << honest.err;
  EXPECT_TRUE(mentions(honest.out, {"NOT certified", "not_finite"})) << honest.out;
  const Json found = run({"verify", "Y.npy", "--target", "huge.npy", "--trace", "T.json", "--json"}).json();
  EXPECT_EQ(found["certified"], false);
  EXPECT_EQ(found["holds"], true);
}

// Squares of what float32 holds are more than it holds: the default goes on in mixed precision, and a run that was told
// float32 says why it ended, where, and what to do.
TEST_F(Align, ValuesWhoseSquaresOverflowAreNamed) {
  Matrix features = gaussian(40, 6, 1);
  features(17, 4) = -3e38;
  write_float("huge.npy", features);
  const std::vector<std::string> line{"align",   "--rank", "2",        "--out",   "Y.npy",
                                      "--trace", "T.json", "--target", "huge.npy"};
  const std::string cause = "the squares overflow";
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), line.begin(), line.end());
    return run(more);
  };
  for (const std::vector<std::string>& way : {std::vector<std::string>{}, {"--memory", "200MiB"}}) {
    const auto mended = with(way);
    EXPECT_EQ(mended.exit_code, 0) << mended.err;
    EXPECT_TRUE(mentions(mended.err, {"overflow in float32", "running in mixed precision"})) << mended.err;
    EXPECT_TRUE(array_of("Y.npy").allFinite());
  }
  const auto ended = with({"--precision", "float32"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_TRUE(mentions(ended.out, {cause, "float32", "3.4"})) << ended.out;
  EXPECT_TRUE(mentions(ended.err, {"not_finite", "huge.npy: row 17, column 4 is -3e+38", "scale", "--precision mixed"}))
      << ended.err;
  EXPECT_TRUE(mentions(json_of("T.json")["reason"].get<std::string>(), {cause}));
  const auto streamed = with({"--memory", "200MiB", "--precision", "float32"});
  EXPECT_TRUE(mentions(streamed.out, {cause})) << streamed.out;
  EXPECT_TRUE(mentions(streamed.err, {"scale", "--precision mixed"})) << streamed.err;
  EXPECT_EQ(with({"--precision", "mixed"}).exit_code, 0);
  features(17, 4) = 1e200;
  write("huge.npy", features);
  const auto beyond_double = with({});
  EXPECT_EQ(beyond_double.exit_code, 1);
  EXPECT_TRUE(mentions(beyond_double.out, {cause, "float64"})) << beyond_double.out;
  EXPECT_TRUE(mentions(beyond_double.err, {"huge.npy: row 17, column 4 is 1e+200", "scale"})) << beyond_double.err;
  EXPECT_FALSE(mentions(beyond_double.err, {"--precision"}));
}

// What is not given is the library's, in what the program does and in what its help says.
TEST_F(Align, TheDefaultsAreTheLibrarys) {
  ASSERT_EQ(run({"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy"}).exit_code, 0);
  const Matrix sigma = array_of("target.npy");
  EXPECT_EQ(array_of("Y.npy"), align<double>(DenseTarget<double>(sigma), 3).factor);

  const AlignOptions options;
  const auto steps = with_default("--steps N", options.steps), seed = with_default("--seed N", options.seed),
             solver = with_default("--solver SOLVER", name(options.solver));
  EXPECT_TRUE(mentions(with_equals_signs(run({"align", "--help"}).out),
                       {steps, seed, solver, with_default("--route ROUTE", name(options.route)),
                        with_default("--tolerance X", options.tolerance),
                        with_default("--gram-regularization X", options.gram_regularization)}));
  EXPECT_TRUE(mentions(with_equals_signs(run({"map", "--help"}).out),
                       {steps, seed, solver, with_default("--map KIND", name(TransportMap::Parts{}.kind)),
                        with_default("--floor-share X", default_remainder_floor)}));
}

// The words about alpha in --help, and the rule.
TEST_F(Align, TheStepSizeFollowsFromTheStepsAsTheHelpSays) {
  EXPECT_TRUE(mentions(run({"align", "--help"}).out, {"Default: 1 for one step, 1.1 for 2 to 4, 1.3 from 5 on"}));
  const StepSize by_steps;
  EXPECT_EQ(by_steps.resolve(1), 1);
  for (const Index steps : {2, 4}) EXPECT_EQ(by_steps.resolve(steps), 1.1);
  for (const Index steps : {5, 50}) EXPECT_EQ(by_steps.resolve(steps), 1.3);
}

TEST_F(Align, HelpTeaches) {
  auto done = run({"--help"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"Examples:", "align", "distance", "verify", "info", "Exit codes"}));
  for (const std::string command : {"align", "distance", "verify", "info"}) {
    done = run({command, "--help"});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_TRUE(mentions(done.out, {"Examples:", "itspace " + command}));
  }
  done = run({"--version"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"itspace "}));
}

// Whatever machine this is: with a GPU the run agrees with the CPU's, without one, or without CUDA in the build, it is
// refused in words before anything is written.
TEST_F(Align, DeviceCuda) {
  for (const std::string target : {"target.npy", "features.npy"}) {
    SCOPED_TRACE(target);
    const Outcome on_gpu =
        run({"align", "--target", target, "--rank", "3", "--out", "gpu.npy", "--device", "cuda", "--json"});
    if (on_gpu.exit_code != 0) {
      EXPECT_EQ(on_gpu.exit_code, 3) << on_gpu.err;
      EXPECT_NE(on_gpu.err.find("CUDA"), std::string::npos) << on_gpu.err;
      EXPECT_NE(on_gpu.err.find("leave out --device"), std::string::npos) << on_gpu.err;
      EXPECT_FALSE(exists("gpu.npy"));
      continue;
    }
    ASSERT_EQ(run({"align", "--target", target, "--rank", "3", "--out", "cpu.npy", "--device", "cpu"}).exit_code, 0);
    const Matrix y = array_of("gpu.npy"), z = array_of("cpu.npy");
    EXPECT_LE((y * y.transpose() - z * z.transpose()).norm(), 1e-12 * z.squaredNorm());
  }
}

TEST_F(Align, DeviceThatIsNone) {
  for (const std::string device : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda1", ""}) {
    const Outcome refused =
        run({"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy", "--device=" + device});
    EXPECT_EQ(refused.exit_code, 2) << device;
    EXPECT_NE(refused.err.find("--device"), std::string::npos) << refused.err;
  }
  const Outcome far =
      run({"align", "--target", "target.npy", "--rank", "3", "--out", "Y.npy", "--device", "cuda:4000"});
  EXPECT_EQ(far.exit_code, 3) << far.err;
  EXPECT_NE(far.err.find("CUDA"), std::string::npos) << far.err;
  EXPECT_FALSE(exists("Y.npy"));
}

}  // namespace
}  // namespace itspace::cli_test
