// SPDX-License-Identifier: Apache-2.0
//
// Leading pairs from products alone: what they cost, when they are given up, and that a direction which the start does
// not see is not missed. What they are worth is tests/core/leading_part_test.cpp.
#include "core/leading_pairs.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>
#include <string>

namespace itspace {
namespace {

constexpr Index krylov_dim = 800, count = 4;

// diag(lambda) + size w w' that counts the columns it is multiplied with.
struct Counted {
  Eigen::VectorXd lambda = Eigen::VectorXd::Zero(krylov_dim);
  Eigen::VectorXd w = Eigen::VectorXd::Zero(krylov_dim);
  double size = 0;
  Index columns = 0;

  std::optional<LeadingPairs> leading() {
    return leading_pairs(krylov_dim, count, [this](const ConstBlockView<double>& in, BlockView<double> out) {
      columns += in.cols();
      out = lambda.asDiagonal() * in;
      if (size != 0) out += size * w * (w.transpose() * in);
    });
  }
};

TEST(LeadingPairs, CostAThirdOfTheDimensionAtMost) {
  Counted falling, flat;
  for (Index i = 0; i < krylov_dim; ++i) {
    falling.lambda(i) = 1 / double(i + 1);
    flat.lambda(i) = 1 - 1e-3 * double(i) / krylov_dim;
  }
  const auto found = falling.leading();
  ASSERT_TRUE(found);
  EXPECT_LT(falling.columns, krylov_dim / 4);
  const double limit = double(krylov_dim) * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < count; ++i) {
    const Eigen::VectorXd v = found->vectors.col(i);
    EXPECT_NEAR(found->values(i), falling.lambda(i), limit);
    EXPECT_LE((falling.lambda.asDiagonal() * v - found->values(i) * v).norm(), 2 * limit);
  }
  EXPECT_LE((found->vectors.transpose() * found->vectors - Dense::Identity(count, count)).norm(), limit);
  EXPECT_FALSE(flat.leading());
  EXPECT_LE(flat.columns, krylov_dim / 4);
}

// An eigenvector that is orthogonal to the seeded start, and so to its whole Krylov space up to rounding.
TEST(LeadingPairs, AreNotWithoutALeadingOneThatTheStartDoesNotSee) {
  Block<double> start(krylov_dim, 8);
  for (Index i = 0; i < start.size(); ++i) start.data()[i] = 2 * Random(0, 3).uniform(std::uint64_t(i)) - 1;
  // On coordinates of equal variance, so that w stays an eigenvector.
  constexpr Index support = 40;
  Counted target;
  for (Index i = 0; i < krylov_dim; ++i) target.lambda(i) = i < support ? 1e-3 : 1 / double(i - support + 2);
  const Dense seen = start.topRows(support);
  Eigen::VectorXd w = Eigen::VectorXd::Ones(support);
  w -= seen * (seen.transpose() * seen).ldlt().solve(seen.transpose() * w);
  target.w.head(support) = w.normalized();
  ASSERT_TRUE(target.leading()) << "without it";
  target.size = 0.75;  // it would be the first
  const auto found = target.leading();
  ASSERT_TRUE(found);  // rounding is a random direction too, and enters the space as one
  EXPECT_NEAR(found->values(0), 0.751, 1e-12);
}

TEST(LeadingPairs, GiveUpWhereThereIsNothingToFind) {
  Counted nothing;
  EXPECT_FALSE(nothing.leading());
  nothing.lambda.setConstant(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(nothing.leading());
  nothing.lambda.setConstant(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(nothing.leading());
  EXPECT_FALSE(worth_iterating(300, 4));
  EXPECT_FALSE(worth_iterating(2048, 0));
  EXPECT_FALSE(worth_iterating(2048, 500));
  EXPECT_TRUE(worth_iterating(2048, 16));
}

// Against the definition: eigenvalues are known, residuals and orthogonality are measured. Spectra whose blocks nearly
// repeat the space (low rank, repeated values, a steep fall) and those that take all columns; scales whose squares
// leave the range.
TEST(LeadingPairs, AreThoseOfTheSpectrumAtAnyScale) {
  const auto from = [](auto value) {
    Eigen::VectorXd lambda(krylov_dim);
    for (Index i = 0; i < krylov_dim; ++i) lambda(i) = value(double(i));
    return lambda;
  };
  const struct {
    const char* what;
    Eigen::VectorXd lambda;  // descending
    bool must_be_found;
  } spectra[] = {{"1/i", from([](double i) { return 1 / (i + 1); }), true},
                 {"steep", from([](double i) { return std::pow(0.2, i); }), true},
                 {"geometric", from([](double i) { return std::pow(0.97, i); }), true},
                 {"twice each", from([](double i) { return std::pow(0.8, std::floor(i / 2)); }), true},
                 {"eight times each", from([](double i) { return std::pow(0.5, std::floor(i / 8)); }), false},
                 {"of rank 12", from([](double i) { return i < 12 ? 1 + 1 / (i + 1) : 0.0; }), false},
                 {"of rank 3", from([](double i) { return i < 3 ? 1 / (i + 1) : 0.0; }), false},
                 {"tiny beside the first", from([](double i) { return i < 1 ? 1.0 : 1e-9 * std::pow(0.9, i); }), true},
                 {"a slope", from([](double i) { return 4 - 4 * std::sqrt((i + 1) / krylov_dim); }), false},
                 {"negative ones", from([](double i) { return std::pow(0.9, i) - 0.5 * i / krylov_dim; }), false}};
  for (const auto& [what, lambda, must_be_found] : spectra)
    for (const double scale : {1.0, 1e-150, 1e150, 3e-70, 7e70}) {
      SCOPED_TRACE(std::string(what) + " times " + std::to_string(scale));
      Counted target;
      target.lambda = scale * lambda;
      const auto found = target.leading();
      EXPECT_LE(target.columns, 2 * (krylov_dim / 3) + 8);
      if (must_be_found) {
        EXPECT_TRUE(found);
      }
      if (!found) continue;
      const double limit = double(krylov_dim) * std::numeric_limits<double>::epsilon();
      const Dense& v = found->vectors;
      const Eigen::VectorXd values = found->values / scale;
      EXPECT_LE((values - lambda.head(count)).cwiseAbs().maxCoeff(), limit * lambda(0));
      const Dense residual = lambda.asDiagonal() * v - v * values.asDiagonal();
      EXPECT_LE(residual.colwise().norm().maxCoeff(), 1.1 * limit * lambda.cwiseAbs().maxCoeff());
      EXPECT_LE((v.transpose() * v - Dense::Identity(count, count)).norm(), limit);
    }
}

// Though the memory of the space is what an earlier call has left.
TEST(LeadingPairs, AreTheSameAgain) {
  Counted target;
  for (Index i = 0; i < krylov_dim; ++i) target.lambda(i) = 1 / std::sqrt(double(i + 1));
  const auto once = target.leading(), again = target.leading();
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->values, again->values);
  EXPECT_EQ(once->vectors, again->vectors);
}

}  // namespace
}  // namespace itspace
