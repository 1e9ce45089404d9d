// SPDX-License-Identifier: Apache-2.0
//
// The sum of singular values by products, and its bound, beside the singular values that a matrix was made of.
#include "core/nuclear_norm.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <limits>
#include <random>

namespace itspace {
namespace {

struct HostWork {
  using Matrix = Eigen::MatrixXd;
  Index dim;

  Matrix make() const { return Matrix::Constant(dim, dim, std::numeric_limits<double>::quiet_NaN()); }
  void multiply(bool op_a, const Matrix& a, bool op_b, const Matrix& b, Matrix& c) const {
    const Matrix left = op_a ? Matrix(a.transpose()) : a, right = op_b ? Matrix(b.transpose()) : b;
    c = left * right;
  }
  void combine(double x, const Matrix& a, double y, double diagonal, Matrix& c) const {
    c = y != 0 ? Matrix(x * a + y * c) : Matrix(x * a);
    c.diagonal().array() += diagonal;
  }
  double inner(const Matrix& a, const Matrix& b) const { return a.cwiseProduct(b).sum(); }
};

Eigen::MatrixXd orthogonal(Index n, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Eigen::MatrixXd a(n, n);
  for (double& value : a.reshaped()) value = normal(random);
  return Eigen::HouseholderQR<Eigen::MatrixXd>(a).householderQ();
}

struct Case {
  Eigen::MatrixXd k;
  Eigen::VectorXd s;
};
Case with_condition(Index n, double condition, double size, std::mt19937_64& random) {
  Case made;
  made.s.resize(n);
  for (Index i = 0; i < n; ++i)
    made.s(i) = size * std::pow(condition, -static_cast<double>(i) / static_cast<double>(std::max<Index>(1, n - 1)));
  made.k = orthogonal(n, random) * made.s.asDiagonal() * orthogonal(n, random).transpose();
  return made;
}

constexpr auto never = [](double, double) { return false; };
constexpr auto at_once = [](double, double) { return true; };

double rounding(const Case& of) {
  const double n = static_cast<double>(of.s.size());
  return 20 * n * std::numeric_limits<double>::epsilon() * of.s(0);
}

TEST(NuclearNorm, IsTheSumWhereTheGuessIsRight) {
  std::mt19937_64 random(7);
  for (const Index n : {1, 2, 17, 60})
    for (const double condition : {1.0, 50.0, 1e4, 1e7, 1e10})
      for (const double size : {1.0, 1e-30, 1e25}) {
        SCOPED_TRACE(testing::Message() << n << ", " << condition << ", " << size);
        const Case of = with_condition(n, condition, size, random);
        HostWork work{n};
        const NuclearNorm found = nuclear_norm(work, of.k, 0.3 * of.s(n - 1), at_once);
        EXPECT_LE(std::abs(found.value - of.s.sum()), found.missed + rounding(of));
        EXPECT_LE(found.missed, 1e-11 * of.s.sum());
        // A polynomial of three products gains a factor of about 4.6, and some are needed at its end.
        EXPECT_LE(found.products, 3 * (5 + std::log(condition) / std::log(4.5)) + 3);
      }
}

// What a K of some condition numbers costs; docs/gpu.md quotes it.
TEST(NuclearNorm, TellsItsProducts) {
  std::mt19937_64 random(11);
  for (const double condition : {10.0, 1e3, 1e5, 1e7}) {
    const Case of = with_condition(40, condition, 1.0, random);
    HostWork work{40};
    const int products = nuclear_norm(work, of.k, 0.5 * of.s(39), at_once).products;
    RecordProperty("condition_1e" + std::to_string(std::lround(std::log10(condition))), products);
    EXPECT_LE(products, 45);
  }
}

TEST(NuclearNorm, BoundsWhatItMisses) {
  std::mt19937_64 random(8);
  for (const double condition : {1e3, 1e6, 1e9})
    for (const double guess : {0.3, 1e-2, 1e-4}) {
      SCOPED_TRACE(testing::Message() << condition << ", " << guess);
      const Case of = with_condition(40, condition, 3.0, random);
      HostWork work{40};
      const NuclearNorm found = nuclear_norm(work, of.k, guess * of.s(0), at_once);
      EXPECT_LE(found.value, of.s.sum() + rounding(of));
      EXPECT_LE(of.s.sum() - found.value, found.missed + rounding(of));
      EXPECT_LE(found.missed, 3 * 40 * of.s(0));  // it says something, however bad the guess
    }
}

TEST(NuclearNorm, LaterRoundsReachWhatTheGuessDidNot) {
  std::mt19937_64 random(9);
  const Case of = with_condition(40, 1e5, 3.0, random);
  HostWork work{40};
  const NuclearNorm first = nuclear_norm(work, of.k, of.s(0), at_once), last = nuclear_norm(work, of.k, of.s(0), never);
  EXPECT_GT(first.missed, 1e-4);
  EXPECT_LE(last.missed, 1e-3 * first.missed);
  EXPECT_LE(of.s.sum() - last.value, last.missed + rounding(of));
}

TEST(NuclearNorm, SingularMatricesAreNoProblemAndZeroSaysNothing) {
  std::mt19937_64 random(10);
  Case of = with_condition(30, 1e3, 1.0, random);
  of.s.tail(10).setZero();
  of.k = orthogonal(30, random) * of.s.asDiagonal() * orthogonal(30, random).transpose();
  HostWork work{30};
  const NuclearNorm found = nuclear_norm(work, of.k, 1e-4, at_once);
  EXPECT_LE(std::abs(found.value - of.s.sum()), found.missed + rounding(of));
  EXPECT_LE(found.missed, 1e-11 * of.s.sum());
  EXPECT_FALSE(std::isfinite(nuclear_norm(work, Eigen::MatrixXd::Zero(30, 30).eval(), 1e-4, at_once).missed));
}

}  // namespace
}  // namespace itspace
