// SPDX-License-Identifier: Apache-2.0
//
// Singular cases: Proposition "Matched-Rank PSD Contraction", the counterexample of the remark after it, Y = 0 and
// rank-deficient factors. The certificate is not unique there, and its completion inside the range of the target is
// what keeps the run moving.
#include "runs.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

template <class Scalar>
class Singular : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Singular, Scalars);

// A target of rank r (its exact factor beside it) and a start of the kind named.
enum class Start { generic, one_column, zero, outside_the_range };

template <Storage Scalar>
void check_contraction(Index dim, Index rank, Start kind, double alpha, std::uint64_t seed) {
  Draw draw(seed);
  Vector lambda = Vector::Zero(dim);
  lambda.head(rank) = eigenvalues_of(Spectrum::power_law, rank);
  const Block<Scalar> factor = block<Scalar>(factor_with_spectrum(lambda, draw));
  const Block<Scalar> sigma = block<Scalar>(covariance_from(wide(factor)));
  const Oracle oracle = Oracle::of_factor(wide(factor));

  Block<Scalar> start = block<Scalar>(factor_near_range(wide(factor), rank, 10, 2 * lambda.sum(), draw));
  if (kind == Start::one_column) start.rightCols(rank - 1).setZero();
  if (kind == Start::zero) start.setZero();
  if (kind == Start::outside_the_range) {
    const RealMatrix u = polar(real(factor));
    const RealMatrix anywhere = real(factor_with_condition(dim, rank, 10, 2 * lambda.sum(), draw));
    start = block<Scalar>(anywhere - u * (u.transpose() * anywhere));
  }

  const DenseTarget<Scalar> target(sigma);
  const auto result = run<Scalar>(target, start, 3, StepSize::alpha(alpha));
  const std::vector<Real> f = objectives(oracle, result);
  for (std::size_t k = 1; k < f.size(); ++k) {
    const Real unit = eps_units<Scalar>(oracle, wide(result.iterates[k - 1]));
    // B B' = Sigma up to Promise 1, and that is how far from 0 the floor of this contraction can lie.
    const Real floor = 2 * ratio_limit * Real(rank) * eps<Scalar> * oracle.trace();
    REQUIRE_LE(f[k], (1 - Real(alpha)) * (1 - Real(alpha)) * f[k - 1] + floor + descent_limit * unit);
    REQUIRE_TRUE(result.trace.steps[k].certified.value());
  }
}

// Eq. matched-rank-contraction: F(Y_{k+1}) <= (1 - alpha)^2 F(Y_k) when rank Sigma = r.
TYPED_TEST(Singular, MatchedRankContracts) {
  for (const auto [dim, rank] : all_sizes()) {
    for (const double alpha : {0.5, 0.9, 1.0, 1.4}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank) + " alpha=" + std::to_string(alpha));
      check_contraction<TypeParam>(dim, rank, Start::generic, alpha, 1);
    }
  }
}

TYPED_TEST(Singular, MatchedRankContractsFromOneColumn) {
  for (const auto [dim, rank] : all_sizes()) {
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    check_contraction<TypeParam>(dim, rank, Start::one_column, 0.8, 2);
  }
}

TYPED_TEST(Singular, MatchedRankContractsFromZero) {
  for (const auto [dim, rank] : all_sizes()) {
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    check_contraction<TypeParam>(dim, rank, Start::zero, 0.8, 3);
  }
}

// The target shows nothing at all in the span of the start: products with it are rounding, and must be taken as such.
TYPED_TEST(Singular, MatchedRankContractsFromOutsideTheRange) {
  for (const auto [dim, rank] : all_sizes()) {
    if (2 * rank > dim) continue;
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    check_contraction<TypeParam>(dim, rank, Start::outside_the_range, 0.8, 4);
  }
}

// Remark "Why the Certificate Condition Is Necessary": Sigma = diag(1, 1, 0), Y_0 = [e_1, 0].
TYPED_TEST(Singular, TheStallCounterexample) {
  const Block<TypeParam> sigma = Eigen::Vector3<TypeParam>(1, 1, 0).asDiagonal().toDenseMatrix();
  const DenseTarget<TypeParam> target(sigma);
  Block<TypeParam> start = Block<TypeParam>::Zero(3, 2);
  start(0, 0) = 1;
  const double unit = 3 * double(eps<TypeParam>);  // tr Sigma + ||Y||^2 = 3
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::root}) {
    SCOPED_TRACE(name(route));
    AlignOptions options;
    options.route = route;

    options.completion = false;
    const auto stalled = run<TypeParam>(target, start, 5, StepSize::alpha(0.9), options);
    EXPECT_LE((wide(stalled.iterates.back()) - wide(start)).norm(), 30 * 2 * double(eps<TypeParam>));
    EXPECT_NEAR(stalled.trace.steps.back().objective, 1, 10 * unit);
    EXPECT_EQ(stalled.trace.steps.back().gram_rank, 1);

    options.completion = true;
    const auto escaped = run<TypeParam>(target, start, 1, StepSize::alpha(1), options);
    EXPECT_EQ(escaped.trace.steps[0].gram_rank, 1);
    EXPECT_EQ(escaped.trace.steps[1].gram_rank, 2);
    EXPECT_LE(escaped.trace.steps[1].objective, 10 * unit);
    const RealMatrix x = real(escaped.factor) * real(escaped.factor).transpose();
    EXPECT_LT(ratio<TypeParam>((x - real(sigma)).norm(), 2, real(sigma).norm()), ratio_limit);
  }
}

// A rank-deficient factor under a full-rank target: the completed certificate is exact, its promise holds, and the
// next iterate uses the whole rank budget.
TYPED_TEST(Singular, RankDeficientFactorsRecover) {
  for (const Index dim : {3, 17, 300}) {
    for (const Index rank : {Index(2), Index(3), std::min<Index>(dim, 9)}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
      auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 5});
      p.start.rightCols(rank - 1).colwise() = p.start.col(0);  // the same column r times
      const DenseTarget<TypeParam> target(p.sigma);
      const auto result = run<TypeParam>(target, p.start, 3, StepSize::alpha(0.9));
      EXPECT_EQ(result.trace.steps[0].gram_rank, 1);
      EXPECT_EQ(result.trace.steps[1].gram_rank, rank);
      EXPECT_EQ(result.status(), Status::step_limit);
      // The oracle's small form sees the rank-deficient start; its large form needs a well-conditioned Gram matrix.
      if (dim <= 64) {
        EXPECT_LE(worst_broken_descent(p.oracle, result, 0.9), descent_limit);
      }
      for (std::size_t k = 1; k < 4; ++k) EXPECT_TRUE(result.trace.steps[k].certified.value());
      EXPECT_LT(ratio<TypeParam>(result.trace.steps[0].certificate_gap, rank, p.oracle.nuclear(wide(p.start))),
                ratio_limit);
    }
  }
}

// Without completion nothing random happens: the null direction stays as it is, and the step is still certified.
TYPED_TEST(Singular, CompactCertificatesAreCertifiedToo) {
  auto p = make_problem<TypeParam>({.dim = 17, .rank = 4, .seed = 6});
  p.start.col(2).setZero();
  const DenseTarget<TypeParam> target(p.sigma);
  AlignOptions options;
  options.completion = false;
  const auto result = run<TypeParam>(target, p.start, 4, StepSize::alpha(0.9), options);
  EXPECT_LE(worst_broken_descent(p.oracle, result, 0.9), descent_limit);
  for (const Step& step : result.trace.steps) EXPECT_EQ(step.gram_rank, 3);
  EXPECT_EQ(result.status(), Status::step_limit);
}

// Y_0 = 0 is a legitimate start: F = tr Sigma, and completion leaves it in one step for every size.
TYPED_TEST(Singular, ZeroStart) {
  for (const auto [dim, rank] : all_sizes()) {
    SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank));
    const auto p = make_problem<TypeParam>({.dim = dim, .rank = rank, .seed = 7});
    const DenseTarget<TypeParam> target(p.sigma);
    const Block<TypeParam> zero = Block<TypeParam>::Zero(dim, rank);
    const auto result = run<TypeParam>(target, zero, 2, StepSize::alpha(1));
    EXPECT_LT(ratio<TypeParam>(result.trace.steps[0].objective - p.oracle.trace(), dim, p.oracle.trace()), ratio_limit);
    EXPECT_EQ(result.trace.steps[1].gram_rank, rank);
    EXPECT_LT(result.trace.steps[1].objective, result.trace.steps[0].objective);
    EXPECT_LE(worst_broken_descent(p.oracle, result, 1), descent_limit);
    EXPECT_EQ(result.status(), Status::step_limit);
  }
}

// What completion draws may be ill-conditioned (rank = d: no draw to spare). Its energies come from a Gram matrix,
// whose rounding is that of the largest: what is filled in must be short enough for the promise all the same.
TYPED_TEST(Singular, IllConditionedDraws) {
  for (const Index dim : {2, 3}) {
    const auto p = make_problem<TypeParam>({.dim = dim, .rank = dim, .seed = 7});
    const FactorTarget<TypeParam> target(p.factor);
    const Block<TypeParam> zero = Block<TypeParam>::Zero(dim, dim);
    for (std::uint64_t seed = 0; seed < 10000; ++seed) {
      AlignOptions options;
      options.seed = seed;
      options.route = Route::factor;
      const auto result = run<TypeParam>(target, zero, 1, StepSize::alpha(1.3), options);
      ASSERT_EQ(result.status(), Status::step_limit) << "dimension " << dim << ", seed " << seed;
    }
  }
}

// Sigma = 0: everything is null, every certificate is exact, F = ||Y||^2 and the step shrinks Y by (1 - alpha).
TYPED_TEST(Singular, ZeroTarget) {
  const Block<TypeParam> sigma = Block<TypeParam>::Zero(4, 4);
  const DenseTarget<TypeParam> target(sigma);
  const Block<TypeParam> start = Block<TypeParam>::Identity(4, 2);
  const auto result = run<TypeParam>(target, start, 1, StepSize::alpha(0.5));
  EXPECT_TRUE(result.factor.allFinite());
  EXPECT_NEAR(result.trace.steps[0].objective, 2, 2 * 10 * double(eps<TypeParam>));
  EXPECT_NEAR(result.trace.steps[1].objective, 0.5, 2 * 10 * double(eps<TypeParam>));
  EXPECT_EQ(result.trace.steps[0].gram_rank, 0);
}

}  // namespace
}  // namespace itspace::test
