// SPDX-License-Identifier: Apache-2.0
//
// The oracle against itself: its forms of the same quantity agree, so that the other tests may lean on it.
#include "problems.hpp"

#include <gtest/gtest.h>

namespace itspace::test {
namespace {

constexpr Real eps_real = std::numeric_limits<Real>::epsilon();

// Eq. dc-form: W2^2(YY', Sigma) = ||Y||^2 + tr Sigma - 2 ||Sigma^(1/2) Y||_*. The left side, from the definition, takes
// roots of a matrix of rank r < d, whose zero eigenvalues carry eps*norm: it is good to sqrt(eps).
TEST(Oracle, FactorFormEqualsTheDefinition) {
  for (const auto [dim, rank] : small_sizes()) {
    const auto p = make_problem<double>({.dim = dim, .rank = rank, .seed = 1});
    const Matrix y = wide(p.start);
    const RealMatrix x = real(y) * real(y).transpose();
    const Real definition = w2_squared(x.cast<double>(), wide(p.sigma));
    const Real limit = Real(dim) * std::sqrt(eps<double>) * (p.oracle.trace() + real(y).squaredNorm());
    EXPECT_NEAR(double(p.oracle.objective(y)), double(definition), double(limit)) << dim << " " << rank;
    if (rank == dim) {  // no zero eigenvalue: full accuracy, up to the rounding of X to double
      const Real tight = 1000 * Real(dim) * eps<double> * (p.oracle.trace() + real(y).squaredNorm());
      EXPECT_NEAR(double(p.oracle.objective(y)), double(definition), double(tight)) << dim;
    }
  }
}

// The root of Sigma and Y'(Sigma Y): the form for large d is the form for small d.
TEST(Oracle, LargeAndSmallFormsAgree) {
  const Index dim = 40, rank = 5;
  const auto p = make_problem<double>({.dim = dim, .rank = rank, .seed = 2});
  // Two independent copies of the problem stacked to 80 dimensions: F adds up, B keeps its blocks.
  Matrix sigma = Matrix::Zero(2 * dim, 2 * dim);
  sigma.topLeftCorner(dim, dim) = wide(p.sigma);
  sigma.bottomRightCorner(dim, dim) = wide(p.sigma);
  Matrix y = Matrix::Zero(2 * dim, 2 * rank);
  y.topLeftCorner(dim, rank) = wide(p.start);
  y.bottomRightCorner(dim, rank) = wide(p.start);
  const Oracle large = Oracle::of_covariance(sigma);
  const Real unit = 1e4L * eps_real;
  EXPECT_LE(std::abs(large.objective(y) - 2 * p.oracle.objective(wide(p.start))), unit * large.trace());
  const RealMatrix b = p.oracle.certificate_factor(wide(p.start));
  EXPECT_LE((large.certificate_factor(y).topLeftCorner(dim, rank) - b).norm(), unit * b.norm());
  EXPECT_LE(std::abs(large.floor(0) - large.trace()), ratio_limit * Real(dim) * eps<double> * large.trace());
}

// The polar factor has orthonormal columns and turns A into a symmetric positive semidefinite Q'A.
TEST(Oracle, PolarFactor) {
  Draw draw(3);
  const RealMatrix a = real(draw.gaussian(9, 4));
  const RealMatrix q = polar(a);
  EXPECT_LE((q.transpose() * q - RealMatrix::Identity(4, 4)).norm(), 1e3L * eps_real);
  const RealMatrix h = q.transpose() * a;
  EXPECT_LE((h - h.transpose()).norm(), 1e3L * eps_real * h.norm());
  EXPECT_GT(eigenvalues((h + h.transpose()) / 2)(3), 0);
  EXPECT_EQ(polar(RealMatrix::Zero(3, 2)).norm(), 0);
}

}  // namespace
}  // namespace itspace::test
