// SPDX-License-Identifier: Apache-2.0
//
// The truncation that every full-matrix method is charged for: as good as LAPACK's, also where eigenvalues repeat.
#include "baselines/partial_eigen.hpp"

#include "baselines/dense_algebra.hpp"
#include "baselines/dense_methods.hpp"
#include "expect_throw.hpp"
#include "problems.hpp"

#include <itspace/covariance.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace itspace::test {
namespace {

constexpr Index d = 300;  // large enough for the iteration

// Q diag(lambda) Q' and the exact leading pairs: lambda is descending.
struct Known {
  Vector lambda;
  Matrix q, matrix;
};
Known known(const Vector& lambda, std::uint64_t seed) {
  Draw draw(seed);
  Known out{lambda, draw.orthonormal(lambda.size(), lambda.size()), {}};
  const Matrix m = out.q * lambda.asDiagonal() * out.q.transpose();
  out.matrix = (m + m.transpose()) / 2;
  return out;
}

// The pairs are right: orthonormal, with small residuals, and with the right values, which no other pairs have.
void expect_leading(const baselines::LeadingPairs& pairs, const Known& problem, Index count) {
  ASSERT_TRUE(pairs.converged);
  ASSERT_EQ(pairs.vectors.cols(), count);
  const double size = problem.lambda.cwiseAbs().maxCoeff();
  EXPECT_LT((pairs.vectors.transpose() * pairs.vectors - Matrix::Identity(count, count)).norm(), 1e-12);
  EXPECT_LE((problem.matrix * pairs.vectors - pairs.vectors * pairs.values.asDiagonal()).colwise().norm().maxCoeff(),
            2e-8 * size);
  EXPECT_LE((pairs.values - problem.lambda.head(count)).cwiseAbs().maxCoeff(), 1e-12 * size);
}

Vector filled(std::initializer_list<std::pair<Index, double>> runs) {
  Vector out(d);
  Index next = 0;
  for (const auto& [times, value] : runs)
    for (Index i = 0; i < times && next < d; ++i) out(next++) = value;
  while (next < d) {
    out(next) = 0.01 / double(next);
    ++next;
  }
  return out;
}

TEST(PartialEigen, FindsTheLeadingPairs) {
  Vector hard(d);
  for (Index i = 0; i < d; ++i) hard(i) = -std::log(double(i + 1));  // a logarithm: negative, and evenly spread
  const std::vector<std::pair<const char*, Vector>> spectra{
      {"power law", eigenvalues_of(Spectrum::power_law, d)},
      {"clusters", eigenvalues_of(Spectrum::clustered, d)},
      {"graded", eigenvalues_of(Spectrum::graded, d)},
      {"rank deficient", eigenvalues_of(Spectrum::rank_deficient, d)},
      {"logarithm", hard},
      {"large", eigenvalues_of(Spectrum::power_law, d) * 1e100},
      {"small", eigenvalues_of(Spectrum::power_law, d) * 1e-100},
  };
  for (const auto& [name, lambda] : spectra)
    for (const Index count : {1, 16, 40}) {
      SCOPED_TRACE(::testing::Message() << name << ", " << count);
      const Known problem = known(lambda, 3);
      Index passes = 0;
      const auto pairs = baselines::leading_pairs(problem.matrix, count, passes);
      expect_leading(pairs, problem, count);
      EXPECT_GT(passes, 0);
    }
}

TEST(PartialEigen, RepeatedEigenvaluesAreFoundAsOftenAsTheyAre) {
  std::vector<std::pair<const char*, Vector>> spectra{
      {"identity", Vector::Ones(d)},
      {"zero", Vector::Zero(d)},
      {"a projector", filled({{5, 1.0}, {d, 0.0}})},
      {"many copies of the largest", filled({{40, 2.0}})},
      {"copies in the middle", filled({{3, 5.0}, {9, 2.0}, {4, 1.0}})},
      {"identity plus rank two", filled({{1, 9.0}, {1, 4.0}, {d, 1.0}})},
  };
  // The tail converges before a start of four columns can have shown more than four copies: only a fresh block does.
  Vector copies_first(d), copies_between(d);
  for (Index i = 0; i < d; ++i) {
    copies_first(i) = i < 16 ? 1 : std::pow(0.5, double(i - 15));
    copies_between(i) = i < 8 ? std::pow(2, double(8 - i)) : i < 16 ? 1 : std::pow(0.8, double(i - 15));
  }
  spectra.emplace_back("copies before a fast tail", copies_first);
  spectra.emplace_back("copies before a slower tail", copies_between);
  for (const auto& [name, lambda] : spectra) {
    SCOPED_TRACE(name);
    const Known problem = known(lambda, 4);
    Index passes = 0;
    expect_leading(baselines::leading_pairs(problem.matrix, 16, passes), problem, 16);
    EXPECT_LT(passes, d) << "the iteration did not do it";
  }
}

TEST(PartialEigen, AProductIsNotFormed) {
  const Known problem = known(eigenvalues_of(Spectrum::power_law, d), 5);
  Index passes = 0;
  const auto pairs = baselines::leading_pairs_of_product(problem.q, problem.lambda, 16, passes);
  expect_leading(pairs, problem, 16);
  EXPECT_EQ(passes, 2 * pairs.products);
  Index small_passes = 0;
  Draw draw(2);
  const Matrix w = draw.gaussian(7, 12);
  const Vector weights = draw.gaussian(12, 1);
  const Matrix formed = w * weights.asDiagonal() * w.transpose();
  const auto few = baselines::leading_pairs_of_product(w, weights, 3, small_passes);
  EXPECT_LT((few.values - eigenvalues(real(formed)).head(3).cast<double>()).norm(), 1e-13 * formed.norm());
}

TEST(PartialEigen, TheFactorIsLapacks) {
  for (const Index dim : {Index(1), Index(2), Index(30), d}) {
    for (const Index rank : {Index(1), std::min<Index>(dim, 16), dim}) {
      SCOPED_TRACE(::testing::Message() << dim << ", " << rank);
      const Known problem = known(eigenvalues_of(Spectrum::rank_deficient, dim), 6);  // rank > rank(X) too
      Index passes = 0;
      const Matrix y = baselines::leading_factor(problem.matrix, rank, passes);
      const Matrix lapack = truncate<double>(block<double>(problem.matrix), rank);
      // Both are 1e-8 and better; the gap at the edge of the truncation divides it.
      EXPECT_LT((y * y.transpose() - lapack * lapack.transpose()).norm(), 1e-5 * problem.matrix.norm());
      EXPECT_NEAR(y.squaredNorm(), lapack.squaredNorm(), 1e-12 * problem.matrix.trace());
    }
  }
  Index passes = 0;
  expect_throws_naming<std::invalid_argument>({"rank is 4", "3"},
                                              [&] { baselines::leading_factor(Matrix::Identity(3, 3), 4, passes); });
  expect_throws_naming<std::invalid_argument>({"3 x 2"},
                                              [&] { baselines::leading_factor(Matrix::Zero(3, 2), 1, passes); });
}

TEST(DenseAlgebra, TheHalvesOfAnEigendecompositionFit) {
  for (const Index n : {1, 2, 40}) {
    Draw draw(7);
    const Matrix a = baselines::plus_transpose(draw.gaussian(n, n));
    const baselines::SymmetricEigen eigen(a);
    const Matrix v = eigen.vectors();
    const double unit = double(eps<double>) * double(n) * a.norm();
    EXPECT_LT((v * eigen.values().asDiagonal() * v.transpose() - a).norm(), 30 * unit);
    EXPECT_LT((v.transpose() * v - Matrix::Identity(n, n)).norm(), 30 * double(n) * double(eps<double>));
    // Weights of both signs.
    EXPECT_LT((baselines::weighted_square(v, eigen.values()) - a).norm(), 30 * unit);
  }
}

TEST(DenseAlgebra, TheShiftIsThePapersRule) {
  EXPECT_EQ(baselines::positive_definite_shift(Vector::LinSpaced(4, 0.1, 1)), 0);
  Vector values(3);
  values << -0.25, 0.5, 1;
  EXPECT_EQ(baselines::positive_definite_shift(values), 0.25 + 1e-8);
  values << 0, 0.5, 1;
  EXPECT_EQ(baselines::positive_definite_shift(values), 1e-8);
  values << 1e-17, 0.5, 1;  // zero with a lucky sign
  EXPECT_EQ(baselines::positive_definite_shift(values), 1e-8);
  values << -0.25, 0.5, 1;
  const Matrix indefinite = values.asDiagonal();
  EXPECT_EQ(baselines::positive_definite(indefinite)(0, 0), -0.25 + (0.25 + 1e-8));
  const Matrix definite = values.cwiseAbs().asDiagonal();
  EXPECT_EQ(baselines::positive_definite(definite), definite);
}

}  // namespace
}  // namespace itspace::test
