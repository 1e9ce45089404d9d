// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_sweeps.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace itspace::kernels {
namespace {

// visit(number, rows, columns) for the square tiles on and below the diagonal.
constexpr Index tile = 32;
Index tiles_of(Index n) {
  const Index down = (n + tile - 1) / tile;
  return down * (down + 1) / 2;
}
template <class Visit>
void for_lower_tiles(Index n, const Visit& visit) {
  run_parts(tiles_of(n), threads_for_entries(n * n), [&](Index number) {
    Index i = static_cast<Index>((std::sqrt(8.0 * static_cast<double>(number) + 1) - 1) / 2);
    while (i * (i + 1) / 2 > number) --i;
    while ((i + 1) * (i + 2) / 2 <= number) ++i;
    const Index j = number - i * (i + 1) / 2;
    visit(number, Range{i * tile, std::min(n, (i + 1) * tile)}, Range{j * tile, std::min(n, (j + 1) * tile)});
  });
}

}  // namespace

double squared_norm(const Small& a) {
  return sum_over_columns(a.rows(), a.cols(), [&](const Range& columns) { return at(a, columns).squaredNorm(); });
}

double squared_norm(const SmallOf<float>& a) {
  return sum_over_columns(a.rows(), a.cols(),
                          [&](const Range& columns) { return static_cast<double>(at(a, columns).squaredNorm()); });
}

double sum_of_products(const Small& a, const Small& b) {
  return sum_over_columns(a.rows(), a.cols(),
                          [&](const Range& columns) { return at(a, columns).cwiseProduct(at(b, columns)).sum(); });
}

double largest_entry(const Small& a) {
  std::array<double, most_column_groups> parts{};
  for_column_groups(a.rows(), a.cols(), [&](Index group, const Range& columns) {
    // 0 x is NaN where x is not finite.
    const auto entries = at(a, columns);
    parts[static_cast<std::size_t>(group)] = entries.cwiseAbs().maxCoeff() + (0.0 * entries).sum();
  });
  double largest = 0;
  for (const double part : parts) {
    if (!(part <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, part);
  }
  return largest;
}

bool all_finite(const Small& a) {
  return std::isfinite(largest_entry(a));
}

void copy(const Small& from, Small& to) {
  scaled_copy(from, 1, to);
}

void symmetric_part(const Small& a, double factor, Small& out) {
  const Index n = a.rows();
  out.resize(n, n);
  for_lower_tiles(n, [&](Index, const Range& rows, const Range& columns) {
    for (Index j = columns.begin; j < columns.end; ++j)
      for (Index i = std::max(j, rows.begin); i < rows.end; ++i)
        out(i, j) = out(j, i) = 0.5 * factor * (a(i, j) + a(j, i));
  });
}

Asymmetry asymmetry_of(const Small& a) {
  const Index n = a.rows();
  std::vector<Asymmetry> parts(static_cast<std::size_t>(tiles_of(n)), Asymmetry{0, 0});
  for_lower_tiles(n, [&](Index number, const Range& rows, const Range& columns) {
    double squares = 0, largest = 0;
    for (Index j = columns.begin; j < columns.end; ++j)
      for (Index i = std::max(j, rows.begin); i < rows.end; ++i) {
        const double half = 0.5 * (a(i, j) - a(j, i));
        squares += half * half;
        largest = std::max(largest, std::abs(half));
      }
    parts[static_cast<std::size_t>(number)] = {squares, largest};
  });
  Asymmetry all{0, 0};
  for (const Asymmetry& part : parts) {
    all.norm += 2 * part.norm;
    all.largest = std::max(all.largest, part.largest);
  }
  all.norm = std::sqrt(all.norm);
  return all;
}

}  // namespace itspace::kernels
