// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_triangles.hpp"

#include "kernels/small_dense.hpp"
#include "kernels/small_sweeps.hpp"

#include <algorithm>

namespace itspace::kernels {
namespace {

// Smaller ones are made as a whole, by one thread.
constexpr Index fewest_for_blocks = 128;
constexpr Index widest_block = 64;
// Rows and columns of a tile of what is left.
constexpr Index tile = 64;

Index threads_for(double multiply_adds) {
  return parts_for(multiply_adds / 3);
}

// The rows x cols matrix at `at` becomes itself times corner', corner being cols x cols.
void multiply_in_place(Index rows, Index cols, const double* corner, Index corner_stride, double* at, Index stride) {
  alignas(64) double aside[tile * widest_block];
  for (Index j = 0; j < cols; ++j) std::copy_n(at + j * stride, rows, aside + j * tile);
  small_product({.rows = rows,
                 .cols = cols,
                 .inner = cols,
                 .a = aside,
                 .a_stride = tile,
                 .b = corner,
                 .b_stride = corner_stride,
                 .b_transposed = true,
                 .c = at,
                 .c_stride = stride});
}

// L of the block on the diagonal, the rows below it times L^(-1)', and what these take away from all that is right of
// them; then the next block.
bool factor_blocks(Index n, double* a) {
  constexpr Index block = widest_block;  // of wide ones, for few rounds of all threads
  alignas(64) double corner[block * block];
  for (Index first = 0; first < n; first += block) {
    const Index cols = std::min(block, n - first), next = first + cols, left = n - next;
    double* diagonal = a + first + first * n;
    if (!small_cholesky(cols, diagonal, n)) return false;
    if (left == 0) break;
    small_lower_inverse(cols, diagonal, n, corner, cols);
    const Index tiles = (left + tile - 1) / tile;
    const auto rows_of = [&](Index number) {
      return Range{next + number * tile, std::min(n, next + (number + 1) * tile)};
    };
    const double work = static_cast<double>(left) * static_cast<double>(cols);
    run_parts(tiles, threads_for(work * static_cast<double>(cols)), [&](Index number) {
      const Range rows = rows_of(number);
      multiply_in_place(rows.end - rows.begin, cols, corner, cols, a + rows.begin + first * n, n);
    });
    run_parts(tiles * (tiles + 1) / 2, threads_for(0.5 * work * static_cast<double>(left)), [&](Index number) {
      Index i = 0;
      while (number > i) number -= ++i;
      const Range rows = rows_of(i), columns = rows_of(number);
      small_product({.rows = rows.end - rows.begin,
                     .cols = columns.end - columns.begin,
                     .inner = cols,
                     .a = a + rows.begin + first * n,
                     .a_stride = n,
                     .b = a + columns.begin + first * n,
                     .b_stride = n,
                     .b_transposed = true,
                     .c = a + rows.begin + columns.begin * n,
                     .c_stride = n,
                     .scale = -1,
                     .add_scale = 1,
                     .lower = i == number});
    });
  }
  return true;
}

}  // namespace

bool cholesky_factor(const Small& a, Small& lower) {
  const Index n = a.rows();
  lower.resize(n, n);
  set_columns(lower, [&](const Range& columns) { return at(a, columns); });
  if (!(n < fewest_for_blocks ? small_cholesky(n, lower.data(), n) : factor_blocks(n, lower.data()))) return false;
  for_column_groups(n, n, [&](Index, const Range& columns) {
    for (Index j = columns.begin; j < columns.end; ++j) std::fill_n(lower.data() + j * n, j, 0.0);
  });
  return true;
}

// Rows I of the inverse from those above: -L_II^(-1) L(I, J..I) X(J..I, J), columns J by themselves.
void invert_triangle(const Small& lower, Small& inverse) {
  const Index n = lower.rows(), block = n < 512 ? widest_block / 2 : widest_block, group = block / 2;
  inverse.resize(n, n);
  if (n < fewest_for_blocks) {
    small_lower_inverse(n, lower.data(), n, inverse.data(), n);
    return;
  }
  const double* l = lower.data();
  double* x = inverse.data();
  const Index threads = threads_for(static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / 6);
  run_parts((n + block - 1) / block, threads, [&](Index number) {
    const Index first = number * block;
    small_lower_inverse(std::min(block, n - first), l + first + first * n, n, x + first + first * n, n);
  });
  run_parts((n + group - 1) / group, threads, [&](Index number) {
    alignas(64) double aside[widest_block * widest_block / 2];
    const Index begin = number * group, cols = std::min(group, n - begin), top = begin / block * block;
    for (Index j = begin; j < begin + cols; ++j) std::fill_n(x + j * n, top, 0.0);
    for (Index first = top + block; first < n; first += block) {
      const Index rows = std::min(block, n - first);
      small_product({.rows = rows,
                     .cols = cols,
                     .inner = first - top,
                     .a = l + first + top * n,
                     .a_stride = n,
                     .b = x + top + begin * n,
                     .b_stride = n,
                     .b_transposed = false,
                     .c = aside,
                     .c_stride = block});
      small_product({.rows = rows,
                     .cols = cols,
                     .inner = rows,
                     .a = x + first + first * n,
                     .a_stride = n,
                     .b = aside,
                     .b_stride = block,
                     .b_transposed = false,
                     .c = x + first + begin * n,
                     .c_stride = n,
                     .scale = -1});
    }
  });
}

}  // namespace itspace::kernels
