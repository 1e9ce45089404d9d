// SPDX-License-Identifier: Apache-2.0
//
// Misspelt commands and options are named, with what was probably meant.
#include "program.hpp"

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;

class Spelling : public ProgramTest {
 protected:
  void expect_refused(const Texts& arguments, const Texts& texts) const {
    const auto refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_TRUE(mentions(refused.err, {"itspace: error: ", "--help"}));
    EXPECT_TRUE(mentions(refused.err, texts));
    EXPECT_EQ(files(), Texts{});
  }
};

TEST_F(Spelling, OfACommand) {
  expect_refused({"algin"}, {"unknown command 'algin'; did you mean 'align'?"});
  expect_refused({"allign", "--target", "x.npy"}, {"unknown command 'allign'; did you mean 'align'?"});
  expect_refused({"verfy", "Y.npy"}, {"'verfy'; did you mean 'verify'?"});
  expect_refused({"experiment", "covdrfit"}, {"'covdrfit'; did you mean 'covdrift'?", "itspace experiment --help"});
  expect_refused({"frobnicate"}, {"unknown command 'frobnicate'"});
  EXPECT_EQ(run({"frobnicate"}).err.find("did you mean"), std::string::npos);
}

TEST_F(Spelling, OfAnOption) {
  const Texts align{"align", "--target", "x.npy", "--rank", "2", "--out", "Y.npy"};
  const auto with = [&](Texts more) {
    Texts all = align;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  expect_refused(with({"--step", "3"}), {"unknown option '--step'; did you mean '--steps'?"});
  expect_refused(with({"--tolerence=3"}), {"unknown option '--tolerence'; did you mean '--tolerance'?"});
  expect_refused({"align", "--targte", "x.npy", "--rank", "2", "--out", "Y.npy"}, {"did you mean '--target'?"});
  expect_refused(with({"--colour"}), {"--colour", "align --help"});
}

}  // namespace
}  // namespace itspace::cli_test
