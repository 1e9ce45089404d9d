// SPDX-License-Identifier: Apache-2.0
//
// A few leading pairs of many: whichever way they are found, they are those of the spectrum that the covariance was
// built with. Dimensions are such that products with blocks are tried.
#include "runs.hpp"

#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

namespace itspace::test {
namespace {

constexpr Index dim = 480;

struct Named {
  std::string what;
  Vector lambda;  // descending
};

std::vector<Named> spectra() {
  const auto from = [](auto value) {
    Vector lambda(dim);
    for (Index i = 0; i < dim; ++i) lambda(i) = value(double(i));
    return lambda;
  };
  const auto ten_and_a_tail = [&](double apart) {
    return from([apart](double i) {
      return i < 10 ? 1 - apart * i : i < 11 ? 0.9 : i < 12 ? 0.8 : 0.3 * (1 - i / (2 * dim));
    });
  };
  return {{"1/i", from([](double i) { return 1 / (i + 1); })},
          {"geometric", from([](double i) { return std::pow(0.9, i); })},
          {"steep", from([](double i) { return std::pow(0.1, i); })},
          {"flat", from([](double i) { return 1 - 1e-3 * i / dim; })},
          {"identity", from([](double) { return 1.0; })},
          {"one of many", from([](double i) { return i < 1 ? 2.0 : 1.0; })},
          {"clusters", from([](double i) { return i < 3    ? 1.0
                                                  : i < 12 ? 0.5
                                                  : i < 40 ? 0.25
                                                           : 1e-3; })},
          // More often than a narrow block has columns, to the bit and nearly; the rest hides them from a probe.
          {"ten alike", ten_and_a_tail(0)},
          {"ten nearly alike", ten_and_a_tail(1e-14)},
          {"ten close", ten_and_a_tail(1e-11)},
          {"close pairs", from([](double i) { return std::pow(0.8, std::floor(i / 2)) * (1 - 1e-9 * i); })},
          {"noise", from([](double i) { return std::pow(1 + 0.8 * std::cos(std::numbers::pi * (i + 0.5) / dim), 2); })},
          {"of rank 5", from([](double i) { return i < 5 ? 1 / (i + 1) : 0.0; })},
          {"of rank 1", from([](double i) { return i < 1 ? 1.0 : 0.0; })}};
}

// ||Sigma - YY'|| over all of Sigma is as small as can be (Eckart-Young, no gap needed), the columns are orthogonal,
// and their squared lengths are the eigenvalues.
void expect_leading(const Matrix& y, const Matrix& sigma, const Vector& lambda) {
  const Index rank = y.cols();
  const double limit = 30 * double(dim) * eps<double> * lambda(0);
  const Matrix gram = y.transpose() * y;
  EXPECT_LE((Vector(gram.diagonal()) - lambda.head(rank)).cwiseAbs().maxCoeff(), limit);
  EXPECT_LE((gram - Matrix(gram.diagonal().asDiagonal())).cwiseAbs().maxCoeff(), limit);
  const double rest = rank < dim ? lambda.tail(dim - rank).norm() : 0.0;
  EXPECT_LE((sigma - y * y.transpose()).norm(), rest + std::sqrt(double(dim)) * limit);
}

TEST(LeadingPart, OfACovarianceAndOfAFactor) {
  Draw draw(11);
  const Matrix u = draw.orthonormal(dim, dim);
  for (const auto& [what, lambda] : spectra()) {
    const Block<double> factor = u * lambda.cwiseSqrt().asDiagonal();
    const Block<double> sigma = covariance_from(wide(factor));
    for (const Index rank : {1, 2, 5, 8, 10, 11, 64}) {
      SCOPED_TRACE(what + " rank " + std::to_string(rank));
      expect_leading(wide(truncate<double>(sigma, rank)), wide(sigma), lambda);
      expect_leading(wide(truncate_factor<double>(factor, rank)), wide(sigma), lambda);
      const double limit = 30 * double(dim) * eps<double> * lambda(0);
      const Vector head = lambda.head(rank);
      EXPECT_LE((Vector(leading_eigenvalues<double>(sigma, rank)) - head).cwiseAbs().maxCoeff(), limit);
      EXPECT_LE((Vector(leading_eigenvalues_of_factor(factor, rank)) - head).cwiseAbs().maxCoeff(), limit);
    }
  }
}

// Where there is a gap the subspace is determined: YY' is the truncation itself, turned by rounding over the gap.
TEST(LeadingPart, IsTheSubspaceWhereThereIsAGap) {
  Draw draw(12);
  const Matrix u = draw.orthonormal(dim, dim);
  Vector lambda(dim);
  for (Index i = 0; i < dim; ++i) lambda(i) = std::pow(0.7, double(i));
  const Block<double> sigma = covariance_from(u * lambda.cwiseSqrt().asDiagonal());
  for (const Index rank : {1, 3, 8}) {
    const Matrix y = wide(truncate<double>(sigma, rank));
    const Matrix expected = u.leftCols(rank) * lambda.head(rank).asDiagonal() * u.leftCols(rank).transpose();
    const double gap = lambda(rank - 1) - lambda(rank);
    EXPECT_LE((y * y.transpose() - expected).norm(), 30 * double(dim) * eps<double> / gap) << rank;
  }
}

// Features on either side of n = d, weights, means far from 0; float data under double; any scale. Against their own
// covariance, which is decomposed whole (all of its eigenvalues are asked for).
TEST(LeadingPart, OfFeatures) {
  Draw draw(13);
  for (const Index n : {400, 700}) {
    Matrix z = draw.gaussian(n, dim);
    for (Index j = 0; j < dim; ++j) z.col(j) *= std::pow(0.8, double(j));
    z.rowwise() += 100 * draw.gaussian(1, dim).row(0);
    for (const bool weighted : {false, true}) {
      const Vector weights = weighted ? Vector(draw.gaussian(n, 1).cwiseAbs()) : Vector();
      for (const double scale : {1.0, 1e-70, 1e70}) {
        SCOPED_TRACE(std::to_string(n) + (weighted ? " weighted " : " ") + std::to_string(scale));
        const Block<double> features = scale * z;
        const Block<double> sigma = covariance<double>(features, weights);
        const Vector all = leading_eigenvalues<double>(sigma, dim);
        const Matrix y = wide(start_from_features<double>(features, 6, weights));
        // Centring rounds to eps of the mean, which is 100 times the spread.
        const double limit = 100 * 30 * double(dim) * eps<double> * all(0);
        EXPECT_LE((Vector(y.colwise().squaredNorm()) - all.head(6)).cwiseAbs().maxCoeff(), limit);
        EXPECT_LE((wide(sigma) - y * y.transpose()).norm(), all.tail(dim - 6).norm() + std::sqrt(double(dim)) * limit);
      }
    }
    const Block<float> rounded = z.cast<float>();
    const Block<double> widened = rounded.cast<double>();
    EXPECT_EQ((start_from_features<double, float>(rounded, 6)), start_from_features<double>(widened, 6));
  }
}

TEST(LeadingPart, IsReproducible) {
  Draw draw(14);
  Vector lambda(dim);
  for (Index i = 0; i < dim; ++i) lambda(i) = 1 / double(i + 1);
  const Block<double> sigma = covariance_from(factor_with_spectrum(lambda, draw));
  EXPECT_EQ(truncate<double>(sigma, 8), truncate<double>(sigma, 8));
  const Block<float> narrow = sigma.cast<float>();
  EXPECT_EQ(truncate<float>(narrow, 8), (truncate<double, float>(narrow, 8).cast<float>()));
}

}  // namespace
}  // namespace itspace::test
