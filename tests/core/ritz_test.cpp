// SPDX-License-Identifier: Apache-2.0
//
// Ritz steps: the proven chain F(reported_k) <= tr Sigma - sum sigma_i^2 <= F(Ritz_k) <= F(reported_{k-1}), at least as
// good as the paper's step from the same Ritz state, one pass per step, recovery through a random guard column.
#include "problems.hpp"
#include "runs.hpp"

#include <itspace/align.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

namespace itspace::test {
namespace {

template <Storage Scalar>
Result<Scalar> ritz(TargetRef<Scalar> target, const Block<Scalar>& start, Index steps, Index guard, bool wide_polish) {
  return align_here<Scalar>(
      target, start,
      {.steps = steps, .solver = Solver::ritz, .guard = guard, .wide_polish = wide_polish, .keep_iterates = true});
}

// 10 eps (tr Sigma + ||Y||^2), the rounding of a promise.
template <Storage Scalar>
double units(const Oracle& oracle, const Block<Scalar>& y) {
  return 10 * double(std::numeric_limits<Scalar>::epsilon()) * (double(oracle.trace()) + wide(y).squaredNorm());
}

template <class Scalar>
class Ritz : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Ritz, Scalars);

// objective_bound is tr Sigma - sum sigma_i^2, the middle term of the chain; it must lie between the two objectives,
// and the trace's objective must be the true one.
TYPED_TEST(Ritz, ChainOfBounds) {
  using Scalar = TypeParam;
  for (const Spectrum spectrum : all_spectra) {
    for (const auto& [d, r] : {Size{1, 1}, Size{3, 2}, Size{17, 1}, Size{17, 5}, Size{17, 17}, Size{60, 8}}) {
      for (const Index guard : {0, 1, 8}) {
        for (const bool wide_polish : {false, true}) {
          const auto p = make_problem<Scalar>({.dim = d, .rank = r, .seed = 5, .spectrum = spectrum});
          const DenseTarget<Scalar> target(p.sigma);
          const auto result = ritz<Scalar>(target, p.start, 6, guard, wide_polish);
          SCOPED_TRACE(::testing::Message()
                       << spectrum << " d=" << d << " r=" << r << " guard=" << guard << " wide=" << wide_polish);
          ASSERT_FALSE(failed(result.status()));  // it may have converged to rounding
          EXPECT_EQ(result.trace.solver, "ritz");
          double before = 0;
          for (std::size_t k = 0; k < result.trace.steps.size(); ++k) {
            const Step& step = result.trace.steps[k];
            const double objective = double(p.oracle.objective(wide(result.iterates[k])));
            // Kept products carry the rounding of the passes before; the row says how much.
            const double unit = std::max(units(p.oracle, result.iterates[k]), step.resolution);
            EXPECT_NEAR(step.objective, objective, unit) << "step " << k;
            if (k > 0) {
              EXPECT_LE(objective, step.objective_bound + unit) << "step " << k;
              EXPECT_LE(step.objective_bound, before - step.promised_descent + unit) << "step " << k;
              EXPECT_GE(step.promised_descent, -unit);
              EXPECT_EQ(step.certified, true) << "step " << k;
            }
            before = objective;
          }
        }
      }
    }
  }
}

// The first reported iterate comes from the Ritz state of the start's own subspace (no guard), which can be formed:
// from there no step of the paper, whatever its alpha, does better.
TYPED_TEST(Ritz, AtLeastAsGoodAsThePapersStepFromTheSameRitzState) {
  using Scalar = TypeParam;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const auto p = make_problem<Scalar>({.dim = 40, .rank = 6, .seed = seed});
    const DenseTarget<Scalar> target(p.sigma);
    const auto reported = ritz<Scalar>(target, p.start, 1, 0, false);
    // Ritz_1: the best factor in the span of the start.
    const Matrix v = Eigen::HouseholderQR<Matrix>(wide(p.start)).householderQ() * Matrix::Identity(40, 6);
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(v.transpose() * wide(p.sigma) * v);
    const Matrix state = v * eigen.eigenvectors() * eigen.eigenvalues().cwiseSqrt().asDiagonal();
    const double reached = double(p.oracle.objective(wide(reported.factor)));
    for (const double alpha : {0.1, 0.5, 0.9, 1.0, 1.1, 1.3, 1.5, 1.9}) {
      const auto step =
          align_here<Scalar>(target, block<Scalar>(state), {.steps = 1, .step_size = StepSize::alpha(alpha)});
      const double unit = units(p.oracle, step.factor);
      // What is promised: the bound of a Ritz step is below that of the paper's for every alpha.
      EXPECT_LE(reported.trace.steps[1].objective_bound, step.trace.steps[1].objective_bound + unit) << alpha;
      // What is reached: never worse than a damped step. An over-relaxed one may be lucky and end lower.
      if (alpha <= 1) {
        EXPECT_LE(reached, double(p.oracle.objective(wide(step.factor))) + unit)
            << "alpha " << alpha << " seed " << seed;
      }
    }
  }
}

TYPED_TEST(Ritz, OnePassPerStep) {
  using Scalar = TypeParam;
  const auto p = make_problem<Scalar>({.dim = 50, .rank = 4});
  const DenseTarget<Scalar> dense(p.sigma);
  struct Counting {
    const DenseTarget<Scalar>& base;
    mutable Index applies = 0;
    Index dim() const { return base.dim(); }
    double trace() const { return base.trace(); }
    void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
      ++applies;
      base.apply(y, out);
    }
  };
  for (const Index steps : {0, 1, 2, 5}) {
    const Counting target{dense};
    const auto result = ritz<Scalar>(target, p.start, steps, 8, true);
    EXPECT_EQ(target.applies, steps + 1);
    EXPECT_EQ(result.trace.passes_total, steps + 1);
    for (const Step& step : result.trace.steps) EXPECT_EQ(step.passes, step.index);
    const Counting unevaluated{dense};
    align_here<Scalar>(unevaluated, p.start, {.steps = steps, .solver = Solver::ritz, .evaluate_last = false});
    EXPECT_EQ(unevaluated.applies, steps);
  }
}

// Y_0 orthogonal to the leading eigenvector: no certificate at Y_0 sees it; one random guard column does.
TYPED_TEST(Ritz, RecoversALeadingDirectionThroughOneGuardColumn) {
  using Scalar = TypeParam;
  constexpr Index d = 30, r = 3;
  Block<Scalar> sigma = Block<Scalar>::Zero(d, d), start = Block<Scalar>::Zero(d, r);
  for (Index i = 0; i < d; ++i) sigma(i, i) = Scalar(1) / Scalar(1 + i);
  for (Index j = 0; j < r; ++j) start(j + 1, j) = Scalar(1);  // misses e_0
  const DenseTarget<Scalar> target(sigma);
  const Oracle oracle = Oracle::of_covariance(wide(sigma));
  const double floor = double(oracle.floor(r)), first = double(oracle.objective(wide(start)));
  const auto without = ritz<Scalar>(target, start, 8, 0, true), with = ritz<Scalar>(target, start, 8, 1, true);
  EXPECT_GT((double(oracle.objective(wide(without.factor))) - floor) / (first - floor), 0.5);
  EXPECT_LT((double(oracle.objective(wide(with.factor))) - floor) / (first - floor), 1e-3);
}

TYPED_TEST(Ritz, ReachesTheFloor) {
  using Scalar = TypeParam;
  const auto p = make_problem<Scalar>({.dim = 100, .rank = 5, .seed = 3});
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = ritz<Scalar>(target, p.start, 25, 8, true);
  const double floor = double(p.oracle.floor(5));
  EXPECT_NEAR(double(p.oracle.objective(wide(result.factor))), floor, units(p.oracle, result.factor));
}

TYPED_TEST(Ritz, DegenerateStarts) {
  using Scalar = TypeParam;
  auto p = make_problem<Scalar>({.dim = 20, .rank = 4});
  const DenseTarget<Scalar> target(p.sigma);
  Block<Scalar> zero = Block<Scalar>::Zero(20, 4), deficient = p.start;
  deficient.col(3) = deficient.col(0);
  for (const Block<Scalar>& start : {zero, deficient}) {
    const auto result = ritz<Scalar>(target, start, 12, 8, true);
    EXPECT_FALSE(failed(result.status())) << name(result.status());  // twelve steps may reach rounding
    EXPECT_LT(double(p.oracle.objective(wide(result.factor)) - p.oracle.floor(4)), 1e-2 * double(p.oracle.trace()));
  }
}

// Kept products are combined by orthonormal coefficients: their rounding adds up as squares do, and the rows say so.
TYPED_TEST(Ritz, KeptProductsGatherLittleRounding) {
  using Scalar = TypeParam;
  const auto p = make_problem<Scalar>({.dim = 150, .rank = 4, .seed = 2});
  const DenseTarget<Scalar> target(p.sigma);
  const auto result = ritz<Scalar>(target, p.start, 40, 2, false);
  ASSERT_FALSE(failed(result.status())) << result.trace.reason;
  for (std::size_t k = 0; k < result.trace.steps.size(); ++k) {
    const Step& step = result.trace.steps[k];
    EXPECT_NEAR(step.objective, double(p.oracle.objective(wide(result.iterates[k]))), step.resolution) << "step " << k;
    EXPECT_LE(step.resolution, 3 * result.trace.steps[1].resolution * std::sqrt(1 + 0.25 * double(k))) << "step " << k;
  }
}

// What is known of V is not measured again; an operator that ceases to be symmetric shows in what is new.
TYPED_TEST(Ritz, FindsAnOperatorThatCeasesToBeSymmetric) {
  using Scalar = TypeParam;
  const auto p = make_problem<Scalar>({.dim = 60, .rank = 4, .seed = 3});
  struct Changing {
    const Block<Scalar>& sigma;
    mutable Index applies = 0;
    Index dim() const { return sigma.rows(); }
    double trace() const { return double(sigma.trace()); }
    void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
      Block<Scalar> used = sigma;
      if (++applies > 2) used.template triangularView<Eigen::StrictlyUpper>() = Scalar(1.5) * sigma;
      out = used * y;
    }
  };
  const Changing target{p.sigma};
  const auto result = ritz<Scalar>(target, p.start, 6, 2, false);
  EXPECT_EQ(result.status(), Status::not_a_covariance) << name(result.status()) << ", " << result.trace.reason;
  EXPECT_EQ(target.applies, 3);
}

TEST(RitzOptions, RefusesWhatBelongsToThePapersStep) {
  const auto p = make_problem<double>({.dim = 10, .rank = 2});
  const DenseTarget<double> target(p.sigma);
  const auto with = [&](AlignOptions options) {
    options.solver = Solver::ritz;
    align_here<double>(target, p.start, options);
  };
  EXPECT_THROW(with({.step_size = StepSize::alpha(1)}), std::invalid_argument);
  EXPECT_THROW(with({.step_size = StepSize::line_search()}), std::invalid_argument);
  EXPECT_THROW(with({.route = Route::gram}), std::invalid_argument);
  EXPECT_THROW(with({.probe = true}), std::invalid_argument);
  EXPECT_THROW(with({.guard = -1}), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::test
