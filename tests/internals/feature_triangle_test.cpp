// SPDX-License-Identifier: Apache-2.0
//
// The triangle R of centred samples, R'R = Sigma: made of one run of rows or of several side by side, of long features
// and of wide ones.
#include "core/feature_moments.hpp"

#include <itspace/random.hpp>
#include <itspace/threads.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

Block<float> long_features(Index n, Index d) {
  Block<double> z(n, d);
  Random(3).fill_normal<double>(z);
  for (Index j = 0; j < d; ++j) z.col(j) = (z.col(j).array() / std::sqrt(double(j + 1)) + 50).matrix();
  return z.cast<float>();
}

TEST(FeatureTriangle, IsThatOfTheCovarianceHoweverManyThreads) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  struct Case {
    Index n, d;
    bool weighted;
  };
  for (const Case& c : {Case{400, 20, false}, {9000, 30, true}, {3001, 41, false}, {700, 1, false}, {30, 50, false}})
    for (const int count : {1, 2, 5}) {
      SCOPED_TRACE(::testing::Message() << c.n << " x " << c.d << ", " << count << " threads");
      const ThreadScope scope(count);
      const Block<float> z = long_features(c.n, c.d);
      Eigen::VectorXd weights;
      if (c.weighted)
        weights = Eigen::VectorXd::NullaryExpr(c.n, [](Index i) { return i % 3 == 1 ? 0.0 : 1.0 + i % 7; });
      const Moments moments = gather_moments<float>(z, weights);
      const Dense triangle = features_triangle<float>(z, moments);
      const Dense factor = centred_samples<float>(z, moments);  // d x n
      ASSERT_EQ(triangle.cols(), std::min(c.n, c.d));
      // Of long features R'R = T T', of wide ones T'T.
      const Dense expected = c.n > c.d ? Dense(factor * factor.transpose()) : Dense(factor.transpose() * factor);
      EXPECT_LE((triangle.transpose() * triangle - expected).norm(), 30 * double(c.d) * eps * expected.norm());
      EXPECT_EQ(triangle, features_triangle<float>(z, moments));  // the same bits
    }
}

// What is no number shows, whichever part it is in.
TEST(FeatureTriangle, KeepsWhatIsNoNumber) {
  const ThreadScope scope(3);
  for (const Index row : {0, 250, 499}) {
    Block<float> z = long_features(500, 10);
    z(row, 4) = std::numeric_limits<float>::quiet_NaN();
    EXPECT_FALSE(features_triangle<float>(z, gather_moments<float>(z, {})).allFinite()) << row;
  }
}

}  // namespace
}  // namespace itspace
