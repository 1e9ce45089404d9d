// SPDX-License-Identifier: Apache-2.0
//
// W2 between covariances: closed forms, the oracle, and the axioms of a metric. Errors count in W2, not in its square,
// wherever the sum-of-squares form should keep digits that the trace formula loses.
#include "runs.hpp"

#include <itspace/distance.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <Eigen/Cholesky>

#include <cmath>

namespace itspace::test {
namespace {

Block<double> diagonal(const Vector& entries) {
  return entries.asDiagonal().toDenseMatrix();
}

double dense(const Block<double>& a, const Block<double>& b) {
  return dense_distance_squared<double>(a, b);
}

TEST(Distance, OneDimension) {
  for (const double a : {1e-6, 0.25, 1.0, 9.0}) {
    for (const double b : {0.0, 1e-6, 1.0, 16.0}) {
      const double expected = (std::sqrt(a) - std::sqrt(b)) * (std::sqrt(a) - std::sqrt(b));
      const Block<double> ma = Block<double>::Constant(1, 1, a), mb = Block<double>::Constant(1, 1, b);
      EXPECT_LT(ratio<double>(dense(ma, mb) - expected, 1, a + b), ratio_limit);
      EXPECT_LT(ratio<double>(factor_distance_squared(ma.cwiseSqrt(), mb.cwiseSqrt()) - expected, 1, a + b),
                ratio_limit);
    }
  }
}

// d^2(I, 2I) = d (1 - sqrt 2)^2.
TEST(Distance, IdentityAndItsDouble) {
  for (const Index dim : {1, 2, 3, 17, 300}) {
    const double expected = double(dim) * (1 - std::sqrt(2.0)) * (1 - std::sqrt(2.0));
    const Block<double> identity = Block<double>::Identity(dim, dim), twice = 2 * identity;
    EXPECT_LT(ratio<double>(dense(identity, twice) - expected, dim, 3.0L), ratio_limit) << dim;
    const Block<float> identity32 = Block<float>::Identity(dim, dim), twice32 = 2 * identity32;
    EXPECT_LT(ratio<double>(dense_distance_squared<float>(identity32, twice32) - expected, dim, 3.0L), ratio_limit);
  }
}

// Diagonal: sum (sqrt a_i - sqrt b_i)^2. Commuting: the same in a common eigenbasis.
TEST(Distance, DiagonalAndCommuting) {
  for (const Index dim : {1, 2, 3, 17}) {
    Draw draw{std::uint64_t(dim)};
    const Vector a = eigenvalues_of(Spectrum::power_law, dim);
    Vector b = eigenvalues_of(Spectrum::graded, dim).reverse();
    const double expected = (a.cwiseSqrt() - b.cwiseSqrt()).squaredNorm();
    EXPECT_LT(ratio<double>(dense(diagonal(a), diagonal(b)) - expected, dim, a.sum() + b.sum()), ratio_limit);
    const Matrix u = draw.orthonormal(dim, dim);
    const Block<double> ua = covariance_from(u * a.cwiseSqrt().asDiagonal());
    const Block<double> ub = covariance_from(u * b.cwiseSqrt().asDiagonal());
    EXPECT_LT(ratio<double>(dense(ua, ub) - expected, dim, a.sum() + b.sum()), ratio_limit);
  }
}

template <Storage Scalar>
void check_against_the_oracle(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  auto other = shape;
  other.seed += 1;
  const auto q = make_problem<Scalar>(other);
  const Real size = p.oracle.trace() + q.oracle.trace();
  // Everything below is computed in double, whatever the storage.
  const Real by_factors = factor_w2_squared(real(p.factor), real(q.factor));
  const Block<double> fp = p.factor.template cast<double>(), fq = q.factor.template cast<double>();
  REQUIRE_LT(ratio<double>(factor_distance_squared(fp, fq) - by_factors, shape.dim, size), ratio_limit);

  const Real computed = dense_distance_squared<Scalar>(p.sigma, q.sigma);
  REQUIRE_GE(computed, Real(0));
  if (shape.spectrum == Spectrum::rank_deficient) {
    // Rounding a singular covariance moves it by W2 <= sqrt(||delta||_1) (Powers and Stoermer), and no less.
    const Real moved = 2 * std::sqrt(Real(shape.dim) * eps<Scalar> * size);
    REQUIRE_LE(std::abs(std::sqrt(computed) - std::sqrt(by_factors)), moved);
  } else {
    REQUIRE_LT(ratio<double>(computed - w2_squared(wide(p.sigma), wide(q.sigma)), shape.dim, size), ratio_limit);
  }
}

RC_GTEST_PROP(Distance, AgreesWithTheOracleFloat, ()) {
  check_against_the_oracle<float>(draw_shape(17, any_rank()));
}

RC_GTEST_PROP(Distance, AgreesWithTheOracleDouble, ()) {
  check_against_the_oracle<double>(draw_shape(17, any_rank()));
}

TEST(Distance, AgreesWithTheOracleInManyDimensions) {
  const auto p = make_problem<double>({.dim = 300, .rank = 1, .seed = 1});
  const auto q = make_problem<double>({.dim = 300, .rank = 1, .seed = 2, .spectrum = Spectrum::clustered});
  const Real expected = w2_squared(wide(p.sigma), wide(q.sigma));
  EXPECT_LT(ratio<double>(dense(p.sigma, q.sigma) - expected, 300, p.oracle.trace() + q.oracle.trace()), ratio_limit);
}

// Tall, square and wide factors, of either side.
TEST(Distance, FactorsOfAnyShape) {
  Draw draw(3);
  for (const Index dim : {1, 3, 17}) {
    for (const Index a : {1, 3, 17, 40}) {
      for (const Index b : {1, 5, 40}) {
        const Block<double> ta = draw.gaussian(dim, a), tb = draw.gaussian(dim, b);
        const Real expected = factor_w2_squared(real(ta), real(tb));
        const Real size = real(ta).squaredNorm() + real(tb).squaredNorm();
        EXPECT_LT(ratio<double>(factor_distance_squared(ta, tb) - expected, dim, size), ratio_limit)
            << dim << " " << a << " " << b;
      }
    }
  }
}

// d(A, A) = 0 to the square of rounding, where the trace formula leaves sqrt(eps).
TEST(Distance, ToItselfIsZero) {
  for (const Spectrum spectrum : all_spectra) {
    for (const Index dim : {1, 2, 3, 17, 300}) {
      const auto p = make_problem<double>({.dim = dim, .rank = 1, .seed = 4, .spectrum = spectrum});
      const Real limit = std::pow(ratio_limit * Real(dim) * eps<double>, 2) * real(p.sigma).trace();
      EXPECT_LE(Real(dense(p.sigma, p.sigma)), limit) << dim;
      EXPECT_LE(Real(factor_distance_squared(p.factor, p.factor)), limit) << dim;
      // Another factor of the same covariance: T R.
      if (p.factor.cols() > 100) continue;
      Draw draw(5);
      const Block<double> turned = wide(p.factor) * draw.orthonormal(p.factor.cols(), p.factor.cols());
      EXPECT_LE(Real(factor_distance_squared(p.factor, turned)), limit) << dim;
    }
  }
}

// Covariances that nearly agree: W2 comes out to rounding of sqrt(tr), 1e8 times finer than sqrt(eps tr).
TEST(Distance, NearlyEqualKeepTheirDigits) {
  for (const Index dim : {2, 17}) {
    for (const double distance : {1e-4, 1e-7, 1e-10}) {
      Draw draw(6);
      const auto p = make_problem<double>({.dim = dim, .rank = 1, .seed = 5});
      const Block<double> moved = wide(p.factor) + distance * draw.gaussian(dim, dim);
      const Real expected = procrustes_distance(real(p.factor), real(moved));
      const Real computed = std::sqrt(Real(factor_distance_squared(p.factor, moved)));
      EXPECT_GT(expected, 0);
      EXPECT_LT(ratio<double>(computed - expected, dim, std::sqrt(p.oracle.trace())), ratio_limit) << distance;

      // From dense covariances, whose roots cost sqrt(kappa).
      const Block<double> sigma = covariance_from(wide(moved));
      const Real truth = procrustes_distance(principal_root(real(p.sigma)), principal_root(real(sigma)));
      const Real by_dense = std::sqrt(Real(dense(p.sigma, sigma)));
      EXPECT_LT(ratio<double>(by_dense - truth, dim, std::sqrt(Real(dim) * p.oracle.trace())), ratio_limit) << distance;
    }
  }
}

RC_GTEST_PROP(Distance, IsSymmetric, ()) {
  const ProblemShape shape = draw_shape(17, any_rank());
  const auto p = make_problem<double>(shape);
  const Matrix y = wide(p.start);
  const double there = factor_distance_squared(p.factor, p.start), back = factor_distance_squared(p.start, p.factor);
  REQUIRE_LE(std::abs(there - back), double(ratio_limit * Real(shape.dim) * eps_units<double>(p.oracle, y)));
  const Block<double> other = make_problem<double>({.dim = shape.dim, .rank = 1, .seed = shape.seed + 1}).sigma;
  const Real a = std::sqrt(Real(dense(p.sigma, other))), b = std::sqrt(Real(dense(other, p.sigma)));
  REQUIRE_LT(ratio<double>(a * a - b * b, shape.dim, p.oracle.trace() + real(other).trace()), ratio_limit);
}

RC_GTEST_PROP(Distance, TriangleInequality, ()) {
  const ProblemShape shape = draw_shape(17, any_rank());
  const auto p = make_problem<double>(shape);
  const auto q = make_problem<double>({.dim = shape.dim, .rank = shape.rank, .seed = shape.seed + 1});
  const Real ab = std::sqrt(Real(factor_distance_squared(p.factor, q.factor)));
  const Real bc = std::sqrt(Real(factor_distance_squared(q.factor, p.start)));
  const Real ac = std::sqrt(Real(factor_distance_squared(p.factor, p.start)));
  REQUIRE_LE(ac, (ab + bc) * (1 + ratio_limit * Real(shape.dim) * eps<double>));
}

// Factor against target: the objective of a trace, through T where the target has one and through products elsewhere.
RC_GTEST_PROP(Distance, FactorToTarget, ()) {
  const ProblemShape shape = draw_shape(17, any_rank());
  const auto p = make_problem<double>(shape);
  const Matrix y = wide(p.start);
  const Real limit = descent_limit * eps_units<double>(p.oracle, y);
  const Real expected = p.oracle.objective(y);
  REQUIRE_LE(std::abs(target_distance_squared<double>(p.start, DenseTarget<double>(p.sigma)) - expected), limit);
  REQUIRE_LE(std::abs(target_distance_squared<double>(p.start, FactorTarget<double>(p.factor)) - expected), limit);
  // The target's own factor is at distance 0.
  REQUIRE_LE(Real(target_distance_squared<double>(p.factor, FactorTarget<double>(p.factor))),
             std::pow(ratio_limit * Real(shape.dim) * eps<double>, 2) * p.oracle.trace());
}

TEST(Distance, FactorToTargetFloat) {
  for (const auto [dim, rank] : all_sizes()) {
    const auto p = make_problem<float>({.dim = dim, .rank = rank, .seed = 7});
    const Matrix y = wide(p.start);
    const double computed = target_distance_squared<float>(p.start, DenseTarget<float>(p.sigma));
    EXPECT_LE(std::abs(computed - p.oracle.objective(y)), descent_limit * eps_units<float>(p.oracle, y));
  }
}

}  // namespace
}  // namespace itspace::test
