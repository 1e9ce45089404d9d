// SPDX-License-Identifier: Apache-2.0
//
// itspace gate: the decision of the library's rule, from files.
#include "program.hpp"

namespace itspace::cli_test {
namespace {

class GateCommand : public ProgramTest {
 protected:
  GateCommand() {
    write("one_class.npy", Matrix::Zero(8, 1));
    write("labels.npy", Matrix{{0}, {1}, {2}, {3}, {0}, {1}, {2}, {3}});
    Matrix sure = Matrix::Zero(4, 4);
    sure.diagonal().setOnes();
    write("sure.npy", sure);
    write("unsure.npy", Matrix::Constant(4, 4, 0.25));
  }

  Json gate(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "gate");
    arguments.emplace_back("--json");
    const auto done = run(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.exit_code == 0 ? done.json() : Json{};
  }
};

TEST_F(GateCommand, LabelsThatSpreadOpenIt) {
  const Json json = gate({"--before", "one_class.npy", "--after", "labels.npy"});
  EXPECT_EQ(json["choice"], "after");
  EXPECT_EQ(json["evidence"], "labels");
  EXPECT_EQ(json["candidates"]["none"]["spread"], 0.0);
  EXPECT_NEAR(json["candidates"]["after"]["spread"].get<double>(), 1, 1e-15);
  EXPECT_TRUE(json["candidates"]["after"]["information"].is_null());
  EXPECT_NEAR(
      gate({"--before", "one_class.npy", "--after", "labels.npy", "--classes", "16"})["candidates"]["after"]["spread"]
          .get<double>(),
      0.5, 1e-15);
  EXPECT_EQ(gate({"--before", "labels.npy", "--after", "one_class.npy"})["choice"], "none");
}

TEST_F(GateCommand, ProbabilitiesAndWhatIsLeftOver) {
  EXPECT_EQ(gate({"--before", "unsure.npy", "--after", "sure.npy"})["choice"], "after");
  EXPECT_EQ(gate({"--before", "unsure.npy", "--after", "sure.npy", "--left-over", "0.01"})["choice"], "none");
  EXPECT_EQ(gate({"--before", "sure.npy", "--after", "sure.npy"})["choice"], "none");
  EXPECT_EQ(gate({"--before", "sure.npy", "--after", "sure.npy", "--left-over", "0.5"})["choice"], "after");
  EXPECT_EQ(gate({"--before", "unsure.npy", "--after", "sure.npy", "--further", "sure.npy"})["choice"], "after");
}

TEST_F(GateCommand, ASecondClassifierHasASay) {
  write("other.npy", Matrix{{0}, {1}, {2}, {3}});
  const Json denied = gate({"--before", "unsure.npy", "--after", "sure.npy", "--second", "other.npy,unsure.npy"});
  EXPECT_EQ(denied["candidates"]["none"]["agreement"], 0.25);
  EXPECT_EQ(denied["candidates"]["after"]["agreement"], 0.25);
  const Json agreed = gate({"--before", "unsure.npy", "--after", "sure.npy", "--second", "other.npy,other.npy"});
  EXPECT_EQ(agreed["choice"], "after");
  EXPECT_EQ(agreed["candidates"]["after"]["agreement"], 1.0);
  EXPECT_NEAR(agreed["candidates"]["after"]["shared"].get<double>(), 1, 1e-15);
  auto done = run({"gate", "--before", "unsure.npy", "--after", "sure.npy", "--second", "other.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--second names 1 files", "2"}));
  done = run({"gate", "--before", "unsure.npy", "--after", "sure.npy", "--second", "labels.npy,labels.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--second has 8 predictions", "4"}));
}

TEST_F(GateCommand, PeopleGetASentence) {
  const auto done = run({"gate", "--before", "sure.npy", "--after", "unsure.npy"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"choice  none", "left alone"}));
}

TEST_F(GateCommand, MisuseIsNamed) {
  auto done = run({"gate", "--before", "sure.npy", "--after", "labels.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--before is 4 x 4", "--after is 8 x 1"}));
  write("logits.npy", Matrix::Constant(4, 4, 3));
  done = run({"gate", "--before", "sure.npy", "--after", "logits.npy"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--after", "sums to 12", "softmax"}));
  EXPECT_EQ(run({"gate", "--before", "sure.npy"}).exit_code, 2);
  done = run({"gate", "--before", "one_class.npy", "--after", "labels.npy", "--classes", "1"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"--classes is 1", "different labels", "or leave it out"})) << done.err;
}

}  // namespace
}  // namespace itspace::cli_test
