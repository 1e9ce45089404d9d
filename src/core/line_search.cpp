// SPDX-License-Identifier: Apache-2.0
#include "core/line_search.hpp"

#include "core/lapack.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace itspace {
namespace {

double value_at(const Segment& s, double t) {
  const double u = 1 - t;
  const Small gram = (u * u) * s.yy + (t * u) * s.yb + (t * t) * s.bb;
  SmallVector values;
  if (!symmetric_eigenvalues(gram, values)) return std::numeric_limits<double>::infinity();
  const double squared = u * u * s.y_squared + 2 * t * u * s.y_dot_b + t * t * s.b_squared;
  return squared - 2 * s.unit * values.cwiseMax(0.0).cwiseSqrt().sum();
}

constexpr std::array grid{0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0};
constexpr int golden_steps = 20;

}  // namespace

double best_step(const Segment& segment) {
  std::size_t best = 1;
  double best_value = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < grid.size(); ++i) {
    const double value = value_at(segment, grid[i]);
    if (value < best_value) {
      best_value = value;
      best = i;
    }
  }
  double low = grid[best - 1], high = grid[std::min(best + 1, grid.size() - 1)];
  constexpr double shrink = std::numbers::phi - 1;
  double left = high - shrink * (high - low), right = low + shrink * (high - low);
  double left_value = value_at(segment, left), right_value = value_at(segment, right);
  for (int i = 0; i < golden_steps; ++i) {
    if (left_value < right_value) {
      high = right;
      right = left;
      right_value = left_value;
      left = high - shrink * (high - low);
      left_value = value_at(segment, left);
    } else {
      low = left;
      left = right;
      left_value = right_value;
      right = low + shrink * (high - low);
      right_value = value_at(segment, right);
    }
  }
  double t = grid[best];
  if (std::min(left_value, right_value) < best_value) {
    t = left_value < right_value ? left : right;
    best_value = std::min(left_value, right_value);
  }
  return best_value < value_at(segment, 1) - segment.noise ? t : 1;
}

}  // namespace itspace
