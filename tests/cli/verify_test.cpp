// SPDX-License-Identifier: Apache-2.0
//
// itspace verify: honest traces pass, false ones are caught claim by claim.
#include "program.hpp"

#include <cmath>
#include <functional>

namespace itspace::cli_test {
namespace {

class Verify : public ProgramTest {
 protected:
  Verify() {
    write("target.npy", power_law(10, 1));
    write("features.npy", gaussian(30, 10, 2));
  }

  void align(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"align", "--rank", "3", "--out", "Y.npy", "--trace", "T.json", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto done = run(arguments);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }

  // Changes the trace of a run and expects exactly that claim to be found false.
  void expect_caught(const std::string& claim, const std::function<void(Json&)>& falsify) const {
    align({"--target", "target.npy", "--steps", "3"});
    Json trace = json_of("T.json");
    falsify(trace);
    write_bytes("T.json", trace.dump());
    const auto caught = run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json", "--json"});
    EXPECT_EQ(caught.exit_code, 1) << claim << caught.err;
    EXPECT_TRUE(mentions(caught.err, {"claim about " + claim + " is false"}));
    EXPECT_EQ(caught.json()["holds"], false);
    for (const auto& entry : caught.json()["claims"]) EXPECT_TRUE(entry["name"] != claim || entry["holds"] == false);
  }
};

TEST_F(Verify, AcceptsHonestTraces) {
  const std::vector<std::vector<std::string>> targets{{"--target", "target.npy"},
                                                      {"--target", "features.npy"},
                                                      {"--target", "target.npy", "--ridge", "0.1"},
                                                      {"--target", "features.npy", "--precision", "float32"}};
  const std::vector<std::vector<std::string>> runs{{"--steps", "5"},
                                                   {"--steps", "0"},
                                                   {"--steps", "1"},
                                                   {"--steps", "4", "--alpha", "line-search"},
                                                   {"--steps", "4", "--alpha", "1.9"},
                                                   {"--steps", "3", "--skip-last-evaluation"},
                                                   {"--steps", "4", "--alpha", "1", "--probe"},
                                                   {"--steps", "3", "--solver", "ritz", "--guard", "6"},
                                                   {"--steps", "2", "--solver", "ritz", "--guard", "2"}};
  for (const auto& target : targets)
    for (const auto& options : runs) {
      auto arguments = target;
      arguments.insert(arguments.end(), options.begin(), options.end());
      align(arguments);
      std::vector<std::string> verify{"verify", "Y.npy", "--trace", "T.json", "--floor"};
      verify.insert(verify.end(), target.begin(), target.end());
      const auto done = run(verify);
      EXPECT_EQ(done.exit_code, 0) << ::testing::PrintToString(arguments) << done.out << done.err;
      EXPECT_TRUE(
          mentions(done.out, {"claims of the trace hold", "objective", "floor", "certificate gap", "feasibility"}));
    }
}

TEST_F(Verify, CatchesFalseClaims) {
  const auto best = [](Json& trace) -> Json& { return trace["steps"][trace["best"].get<std::size_t>()]; };
  expect_caught("dimension", [](Json& trace) { trace["dim"] = 11; });
  expect_caught("rank", [](Json& trace) { trace["rank"] = 2; });
  expect_caught("target trace", [](Json& trace) { trace["target_trace"] = 1.5; });
  expect_caught("objective",
                [&](Json& trace) { best(trace)["objective"] = 0.9 * best(trace)["objective"].get<double>(); });
  expect_caught("monotone objective", [](Json& trace) { trace["steps"][1]["objective"] = 100; });
  expect_caught("promised descent", [](Json& trace) { trace["steps"][2]["promised_descent"] = 1; });
  expect_caught("finite length", [](Json& trace) { trace["steps"][2]["step_squared"] = 10; });
  expect_caught("certified flags", [](Json& trace) { trace["steps"][2]["promised_descent"] = 1; });
  expect_caught("objective", [](Json& trace) { trace["best"] = 0; });
}

TEST_F(Verify, ATraceThatOwnsUpToABrokenPromiseTellsTheTruth) {
  align({"--target", "target.npy", "--steps", "3"});
  Json trace = json_of("T.json");
  Json row = trace["steps"][3];
  row["index"] = 4;
  row["objective"] = 1.0 + row["objective"].get<double>();
  row["actual_descent"] = -1.0;
  row["certified"] = false;
  trace["steps"].push_back(row);
  const auto verify = [&](const std::string& status) {
    trace["status"] = status;
    write_bytes("T.json", trace.dump());
    return run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"});
  };
  EXPECT_EQ(verify("certificate_failed").exit_code, 0);
  const auto caught = verify("step_limit");
  EXPECT_EQ(caught.exit_code, 1);
  EXPECT_TRUE(mentions(caught.err, {"certified flags", "step_limit"}));
}

TEST_F(Verify, AnotherFactorDoesNotMatchTheTrace) {
  align({"--target", "target.npy"});
  write("other.npy", gaussian(10, 3, 8));
  const auto caught = run({"verify", "other.npy", "--target", "target.npy", "--trace", "T.json"});
  EXPECT_EQ(caught.exit_code, 1);
  EXPECT_TRUE(mentions(caught.out, {"FALSE", "objective"}));
  // Nor does another target.
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "features.npy", "--trace", "T.json"}).exit_code, 1);
}

TEST_F(Verify, WithoutATraceItReports) {
  align({"--target", "features.npy"});
  const auto done = run({"verify", "Y.npy", "--target", "features.npy", "--floor", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json json = done.json();
  EXPECT_EQ(json["route"], "factor");
  EXPECT_EQ(json["rank"], 3);
  EXPECT_GE(json["above_floor"].get<double>(), -1e-12);
  EXPECT_GE(json["certificate_gap"].get<double>(), 0);
  EXPECT_NEAR(json["feasibility"].get<double>(), 1, 1e-10);
  EXPECT_EQ(json["holds"], true);
  EXPECT_FALSE(json.contains("claims"));
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--json"}).json()["route"], "qr");
}

TEST_F(Verify, ZeroFactor) {
  write("zero.npy", Matrix::Zero(10, 2));
  const auto done = run({"verify", "zero.npy", "--target", "target.npy", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NEAR(done.json()["objective"].get<double>(), done.json()["target_trace"].get<double>(), 1e-12);
}

// Two runs whose files were mixed, even where the numbers are close enough.
TEST_F(Verify, AnotherFactorIsNotTakenForThis) {
  align({"--target", "target.npy", "--steps", "3"});
  Matrix factor = array_of("Y.npy");
  EXPECT_EQ(json_of("T.json")["factor_checksum"], io::checksum_of<double>(factor));
  factor(0, 0) = std::nextafter(factor(0, 0), 1);
  write("Y.npy", factor);
  const auto caught = run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"});
  EXPECT_EQ(caught.exit_code, 1);
  EXPECT_TRUE(mentions(caught.err, {"claim about factor checksum is false"}));
  EXPECT_TRUE(mentions(caught.out, {"1 of ", "FALSE   factor checksum"}));
  expect_caught("factor checksum", [](Json& trace) { trace["factor_checksum"] = "fnv1a64:0000000000000000"; });
  // A trace without one claims nothing about it.
  align({"--target", "target.npy"});
  Json trace = json_of("T.json");
  trace.erase("factor_checksum");
  write_bytes("T.json", trace.dump());
  EXPECT_EQ(run({"verify", "Y.npy", "--target", "target.npy", "--trace", "T.json"}).exit_code, 0);
}

}  // namespace
}  // namespace itspace::cli_test
