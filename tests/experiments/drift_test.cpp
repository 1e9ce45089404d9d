// SPDX-License-Identifier: Apache-2.0
#include "drift.hpp"

#include <itspace/covariance.hpp>
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <limits>
#include <stdexcept>

namespace itspace::experiments {
namespace {

constexpr double rounding = Eigen::NumTraits<double>::epsilon();
constexpr Index d = 9, r = 4, n = 50;

Block<double> samples() {
  Block<double> z(n, d);
  Random(1).fill_normal<double>(z);
  return z;
}

Block<double> directions() {
  Small v(d, r);
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < r; ++j) v(i, j) = Random(2).normal(static_cast<std::uint64_t>(i * r + j));
  return Eigen::HouseholderQR<Small>(v).householderQ() * Small::Identity(d, r);
}

// What a drift is as a matrix, read off the unit vectors: row i of the moved identity is A e_i.
Small matrix_of(const Drift& drift) {
  Block<double> moved = Block<double>::Identity(d, d);
  drift.apply(moved);
  return moved.transpose();
}

TEST(Drift, ScaleStretchesEachDirectionByItsOwnFactor) {
  const Block<double> v = directions();
  const Small a = matrix_of(Drift(DriftKind::scale, v, 4, 0));
  const SmallVector s{{1, 2, 3, 4}};  // linear from 1 to s_max
  EXPECT_LE((a * v - v * s.asDiagonal()).norm(), 30 * rounding * s.norm());
  // What is orthogonal to V stays.
  const Small rest = Small::Identity(d, d) - v * v.transpose();
  EXPECT_LE((a * rest - rest).norm(), 30 * rounding * rest.norm());
}

TEST(Drift, MixAddsToOtherOrthonormalDirections) {
  const Block<double> v = directions();
  const Small a = matrix_of(Drift(DriftKind::mix, v, 4, 11));
  const Small u = (a - Small::Identity(d, d)) * v;  // U diag(0, 1, 2, 3)
  const SmallVector squares{{0, 1, 4, 9}};
  EXPECT_LE((u.transpose() * u - Small(squares.asDiagonal())).norm(), 100 * rounding * squares.norm());
  EXPECT_GT((u - v * SmallVector{{0, 1, 2, 3}}.asDiagonal()).norm(), 0.1);  // not the same ones
  EXPECT_GT((a - matrix_of(Drift(DriftKind::mix, v, 4, 12))).norm(), 0.1);  // by seed
  EXPECT_EQ(a, matrix_of(Drift(DriftKind::mix, v, 4, 11)));
}

TEST(Drift, MovesTheCovarianceAsALinearMap) {
  for (const DriftKind kind : {DriftKind::scale, DriftKind::mix}) {
    const Drift drift(kind, directions(), 2.5, 3);
    const Small a = matrix_of(drift);
    Block<double> moved = samples();
    drift.apply(moved);
    const Small expected = a * covariance<double>(samples()) * a.transpose();
    EXPECT_LE((covariance<double>(moved) - expected).norm(), 100 * rounding * expected.norm());
  }
}

TEST(Drift, NoneAndSeverityOneChangeNothing) {
  for (const Drift& drift : {Drift(DriftKind::none, directions(), 5, 0), Drift(DriftKind::scale, directions(), 1, 0),
                             Drift(DriftKind::mix, directions(), 1, 0)}) {
    Block<double> moved = samples();
    drift.apply(moved);
    EXPECT_EQ(moved, samples());
  }
}

TEST(Drift, OneDirectionTakesTheWholeSeverity) {
  const Block<double> v = directions().leftCols(1);
  EXPECT_LE((matrix_of(Drift(DriftKind::scale, v, 3, 0)) * v - 3 * v).norm(), 30 * rounding);
}

TEST(Drift, RefusesOtherNamesAndSeverities) {
  EXPECT_EQ(drift_kind_named("mix"), DriftKind::mix);
  EXPECT_THROW(drift_kind_named("Mix"), std::invalid_argument);
  EXPECT_THROW(Drift(DriftKind::scale, directions(), 0.9, 0), std::invalid_argument);
  EXPECT_THROW(Drift(DriftKind::scale, directions(), std::numeric_limits<double>::infinity(), 0),
               std::invalid_argument);
  EXPECT_THROW(Drift(DriftKind::scale, directions(), std::numeric_limits<double>::quiet_NaN(), 0),
               std::invalid_argument);
}

}  // namespace
}  // namespace itspace::experiments
