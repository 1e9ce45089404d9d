// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_sweeps.hpp"

#include "kernels/small_dense.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace itspace::kernels {
namespace {

// visit(number, rows, columns) for the square tiles on and below the diagonal.
constexpr Index tile_of(Index n) {
  constexpr Index alone = 96, usual = 32;
  return n <= alone ? alone : usual;
}
Index tiles_of(Index n) {
  const Index down = (n + tile_of(n) - 1) / tile_of(n);
  return down * (down + 1) / 2;
}
template <class Visit>
void for_lower_tiles(Index n, const Visit& visit) {
  const Index tile = tile_of(n);
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
    parts[static_cast<std::size_t>(group)] =
        small_largest((columns.end - columns.begin) * a.rows(), a.data() + columns.begin * a.rows());
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
    const Index down = rows.end - rows.begin, wide = columns.end - columns.begin;
    const Index at = rows.begin + columns.begin * n, across = columns.begin + rows.begin * n;
    small_symmetric_part(down, wide, a.data() + at, a.data() + across, n, factor, out.data() + at);
    if (at != across)
      small_symmetric_part(wide, down, a.data() + across, a.data() + at, n, factor, out.data() + across);
  });
}

Asymmetry asymmetry_of(const Small& a) {
  const Index n = a.rows();
  std::vector<Asymmetry> parts(static_cast<std::size_t>(tiles_of(n)), Asymmetry{0, 0});
  for_lower_tiles(n, [&](Index number, const Range& rows, const Range& columns) {
    const SmallAsymmetry part =
        small_asymmetry(rows.end - rows.begin, columns.end - columns.begin, a.data() + rows.begin + columns.begin * n,
                        a.data() + columns.begin + rows.begin * n, n);
    // Of a tile on the diagonal both halves are there.
    const double times = rows.begin == columns.begin ? 0.5 : 1;
    parts[static_cast<std::size_t>(number)] = {times * part.squares, part.largest};
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
