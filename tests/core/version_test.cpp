// SPDX-License-Identifier: Apache-2.0
//
// Targets that move: a change of version() between two steps voids what was kept of the old Sigma, and no row is
// compared with one of another version.
#include "runs.hpp"

#include <itspace/verify.hpp>

#include <gtest/gtest.h>
#include <vector>

namespace itspace::test {
namespace {

// One of two covariances.
class Moving {
 public:
  Moving(const Block<double>& first, const Block<double>& second) : sigma_{first, second} {}

  Index dim() const { return sigma_[0].rows(); }
  double trace() const { return sigma_[at_].trace(); }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out.noalias() = sigma_[at_] * y; }
  std::uint64_t version() const { return 5 + at_; }
  void move() { at_ = 1; }

 private:
  std::array<Block<double>, 2> sigma_;
  std::size_t at_ = 0;
};

class Version : public ::testing::TestWithParam<int> {};

// Kinds of run: plain, gram, line search (which keeps products), probe, Ritz (which keeps a whole subspace of them),
// and plain again on the way of few columns, which keeps no iterates.
AlignOptions options_of(int kind) {
  AlignOptions options;
  options.steps = 6;
  options.keep_iterates = kind != 5;
  options.step_size = kind == 2 ? StepSize::line_search() : StepSize();
  if (kind == 1) options.route = Route::gram;
  if (kind == 3) options.probe = true;
  if (kind == 4) options.solver = Solver::ritz;
  return options;
}

TEST_P(Version, RowsAreThoseOfTheTargetAtTheirTime) {
  const auto first = make_problem<double>({.dim = 30, .rank = 4, .seed = 1});
  // F rises with the change; where one way hands a run that does not descend to another, it falls.
  const auto second = make_problem<double>({.dim = 30, .rank = 4, .seed = 2, .scale = GetParam() == 5 ? 0.1 : 7});
  Moving target(first.sigma, second.sigma);
  constexpr Index moves_after = 2;
  std::vector<Block<double>> iterates;
  const auto result = align_here<double>(target, first.start, options_of(GetParam()),
                                         [&](const Step& step, const ConstBlockView<double>& y) {
                                           iterates.emplace_back(y);
                                           if (step.index == moves_after) target.move();
                                           return StepAction::proceed;
                                         });
  ASSERT_EQ(result.status(), Status::step_limit) << result.trace.reason;
  ASSERT_EQ(result.trace.steps.size(), 7u);
  for (std::size_t k = 0; k < 7; ++k) {
    SCOPED_TRACE(k);
    const Step& row = result.trace.steps[k];
    const bool moved = k > moves_after;
    const Oracle& oracle = moved ? second.oracle : first.oracle;
    EXPECT_EQ(row.target_version, moved ? 6 : 5);
    EXPECT_LE(std::abs(row.objective - oracle.objective(wide(iterates[k]))), row.resolution);
    // The step into the change is not judged; all others are, and hold.
    EXPECT_EQ(row.certified.has_value(), k > 0 && k != moves_after + 1);
    EXPECT_TRUE(row.certified.value_or(true));
  }
  EXPECT_TRUE(result.trace.certified());
  // The best is the best for the target there is now.
  EXPECT_EQ(result.trace.best, 6);
  EXPECT_EQ(result.trace.target_trace, second.sigma.trace());

  const Verification verification = verify<double>(result.factor, target, &result.trace);
  for (const Claim& claim : verification.claims) EXPECT_TRUE(claim.holds) << claim.name << ": " << claim.found;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Version, ::testing::Range(0, 6));

// A claim across a change of version is false, whatever the numbers.
TEST(Version, ARowAcrossTheChangeCannotBeCertified) {
  const auto p = make_problem<double>({.dim = 10, .rank = 2, .seed = 1});
  const DenseTarget<double> target(p.sigma);
  auto result = align<double>(target, p.start, {.steps = 2});
  for (std::size_t k = 1; k < 3; ++k) result.trace.steps[k].target_version = 1;
  const Verification verification = verify<double>(result.factor, target, &result.trace);
  EXPECT_FALSE(verification.holds());
}

}  // namespace
}  // namespace itspace::test
