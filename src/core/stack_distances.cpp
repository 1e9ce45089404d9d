// SPDX-License-Identifier: Apache-2.0
//
// Distances between many covariances, stacked one after the other.
#include <itspace/distance.hpp>

#include "core/coupling.hpp"
#include "core/distance_routes.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <vector>

namespace itspace {
namespace {

template <Storage Scalar>
ConstBlockView<Scalar> matrix_of(const StackView<Scalar>& stack, Index i) {
  return Eigen::Map<const RowMajorMatrix<Scalar>>(stack.data + i * stack.dim * stack.dim, stack.dim, stack.dim);
}

}  // namespace

template <Storage Scalar>
Block<double> cross_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b, const Accuracy& accuracy,
                                      const std::function<void()>& between) {
  check_same_dimension(a.dim, b.dim);
  // Columns a tile at a time, so that what is kept of them (up to four d x d matrices each) stays within about 256 MiB;
  // a row is factored once for each tile.
  const Index bytes = 4 * a.dim * a.dim * static_cast<Index>(sizeof(double));
  const Index tile = std::clamp<Index>((Index(1) << 28) / std::max<Index>(bytes, 1), 1, std::max<Index>(b.count, 1));
  Block<double> out(a.count, b.count);
  for (Index first = 0; first < b.count; first += tile) {
    const Index count = std::min(tile, b.count - first);
    std::vector<PreparedCovariance> columns;
    for (Index j = 0; j < count; ++j) columns.emplace_back(matrix_of(b, first + j));
    for (Index i = 0; i < a.count; ++i) {
      PreparedCovariance row(matrix_of(a, i));
      for (Index j = 0; j < count; ++j) {
        if (between) between();
        out(i, first + j) = distance_squared(row, columns[static_cast<std::size_t>(j)], accuracy);
      }
    }
  }
  return out;
}

template <Storage Scalar>
Vector paired_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b, const Accuracy& accuracy,
                                const std::function<void()>& between) {
  check_same_dimension(a.dim, b.dim);
  require(a.count == b.count, "there are ", a.count, " and ", b.count,
          " covariances; to pair them both stacks need the same number");
  Eigen::VectorXd out(a.count);
  for (Index i = 0; i < a.count; ++i) {
    if (between) between();
    out(i) = dense_distance_squared<Scalar>(matrix_of(a, i), matrix_of(b, i), accuracy);
  }
  return out;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                          \
  template Block<double> cross_distances_squared<Scalar>(const StackView<Scalar>&, const StackView<Scalar>&, \
                                                         const Accuracy&, const std::function<void()>&);     \
  template Vector paired_distances_squared<Scalar>(const StackView<Scalar>&, const StackView<Scalar>&,       \
                                                   const Accuracy&, const std::function<void()>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
