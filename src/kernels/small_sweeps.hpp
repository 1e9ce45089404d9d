// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over the entries of r x r matrices, by groups of columns: those of large ones go over all threads, each of
// which has the columns that it has in other sweeps. One thread alone would have to bring them from the others' caches.
// Sums are added up in one order whatever the threads.
#pragma once

#include "kernels/pool.hpp"
#include "kernels/small_products.hpp"

#include <array>
#include <cmath>

namespace itspace::kernels {

// Threads for so many entries that each is read and written.
inline Index threads_for_entries(Index entries) {
  constexpr double work_of_an_entry = 16;
  return parts_for(work_of_an_entry * static_cast<double>(entries));
}

// Groups of columns, and how many of them a matrix has at most.
inline constexpr Index most_column_groups = 64;
inline Index columns_in_group(Index cols) {
  constexpr Index fewest = 16;
  return std::max(fewest, (cols + most_column_groups - 1) / most_column_groups);
}

// visit(group, columns) for all columns.
template <class Visit>
void for_column_groups(Index rows, Index cols, const Visit& visit) {
  if (rows == 0) return;
  const Index group = columns_in_group(cols), groups = (cols + group - 1) / group;
  run_parts(groups, threads_for_entries(rows * cols), [&](Index number) {
    visit(number, Range{number * group, std::min(cols, (number + 1) * group)});
  });
}

// The sum of what sum(columns) gives for groups of columns.
template <class Sum>
double sum_over_columns(Index rows, Index cols, const Sum& sum) {
  std::array<double, most_column_groups> parts{};
  for_column_groups(rows, cols,
                    [&](Index group, const Range& columns) { parts[static_cast<std::size_t>(group)] = sum(columns); });
  double total = 0;
  for (const double part : parts) total += part;
  return total;
}

// The entries of all that `of` says of some columns of `a`, into the same columns of out, which may be `a`:
// out(columns) = of(columns).
template <class Out, class Of>
void set_columns(Out& out, const Of& of) {
  for_column_groups(out.rows(), out.cols(), [&](Index, const Range& columns) {
    out.middleCols(columns.begin, columns.end - columns.begin) = of(columns);
  });
}

// Some columns.
template <class Matrix>
auto at(const Matrix& a, const Range& columns) {
  return a.middleCols(columns.begin, columns.end - columns.begin);
}

// to = factor from, in another type too.
template <Storage To, Storage From>
void scaled_copy(const SmallOf<From>& from, double factor, SmallOf<To>& to) {
  to.resize(from.rows(), from.cols());
  set_columns(
      to, [&](const Range& columns) { return (static_cast<From>(factor) * at(from, columns)).template cast<To>(); });
}

double squared_norm(const Small& a);
double squared_norm(const SmallOf<float>& a);
double sum_of_products(const Small& a, const Small& b);
// The largest |a_ij|; infinite or NaN where one is not finite.
double largest_entry(const Small& a);
ITSPACE_API bool all_finite(const Small& a);
ITSPACE_API void copy(const Small& from, Small& to);

// out = factor (a + a')/2.
void symmetric_part(const Small& a, double factor, Small& out);
// (a - a')/2 of a square matrix: its Frobenius norm and its largest entry.
struct Asymmetry {
  double norm, largest;
};
Asymmetry asymmetry_of(const Small& a);

}  // namespace itspace::kernels
