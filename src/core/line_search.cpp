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

// Steps in (0, 2) descend by the majorizer whatever the data; beyond, only what the data show is known.
constexpr std::array certified_grid{0.0, 0.25, 0.5, 0.75, 1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.95};
constexpr std::array wide_grid{1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0};
constexpr int golden_steps = 30;  // to the square root of double rounding, where F is flat

struct Found {
  double t, value;
};

// Golden section between two points.
Found refine(const Segment& segment, double low, double high) {
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
  return left_value < right_value ? Found{left, left_value} : Found{right, right_value};
}

// The best point between the ends of the grid: F may have several minima on the line, so each of the grid is refined.
template <std::size_t Count>
Found search(const Segment& segment, const std::array<double, Count>& grid) {
  std::array<double, Count> values{};
  for (std::size_t i = 0; i < Count; ++i) values[i] = value_at(segment, grid[i]);
  Found found{grid[1], values[1]};
  for (std::size_t i = 1; i < Count; ++i) {
    const bool last = i + 1 == Count;
    if (values[i] > values[i - 1] || (!last && values[i] > values[i + 1])) continue;
    if (values[i] < found.value) found = {grid[i], values[i]};
    const Found refined = refine(segment, grid[i - 1], last ? grid[i] : grid[i + 1]);
    if (refined.value < found.value) found = refined;
  }
  return found;
}

}  // namespace

double best_step(const Segment& segment) {
  const Found certified = search(segment, certified_grid);
  if (!(certified.value < value_at(segment, 1) - segment.noise)) return 1;
  if (certified.t < 1.7) return certified.t;
  const Found wide = search(segment, wide_grid);
  return wide.value < certified.value - segment.noise ? wide.t : certified.t;
}

}  // namespace itspace
