// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance_bands.hpp>

#include "core/require.hpp"

#include <algorithm>

namespace itspace {

std::uint64_t bytes_of_band_row(Index dim) {
  constexpr std::uint64_t blocks = 6;  // columns of the identity, their product, its sums, and the two that BLAS packs
  return blocks * static_cast<std::uint64_t>(std::max<Index>(dim, 1)) * sizeof(double);
}

Index band_rows(Index dim, std::uint64_t memory) {
  const auto most = static_cast<std::uint64_t>(std::max<Index>(dim, 1));
  return static_cast<Index>(std::clamp<std::uint64_t>(memory / bytes_of_band_row(dim), 1, most));
}

template <Storage Scalar>
void covariance_bands(const TargetArgument<Scalar>& given, Index rows_in_band,
                      const std::function<void(const ConstBlockView<Scalar>&)>& take) {
  const TargetRef<Scalar> target = given;
  require(rows_in_band >= 1, "a band is to have ", rows_in_band, " rows; it must have at least 1");
  using Rows = Eigen::Map<RowMajorMatrix<Scalar>>;
  const Index d = target.dim(), most = std::min(rows_in_band, d);
  Block<Scalar> first_memory(d, most), second_memory(d, most);  // of all bands, the last one included
  for (Index first = 0; first < d; first += most) {
    const Index count = std::min(most, d - first);
    Rows chosen(first_memory.data(), d, count), columns(second_memory.data(), d, count);
    chosen.setZero();
    chosen.middleRows(first, count).setIdentity();
    target.apply(chosen, columns);
    // Rows are columns, by symmetry; they take the place of the identity.
    Rows rows(first_memory.data(), count, d);
    rows = columns.transpose();
    take(rows);
  }
}

#define ITSPACE_INSTANTIATE(Scalar)                                            \
  template void covariance_bands<Scalar>(const TargetArgument<Scalar>&, Index, \
                                         const std::function<void(const ConstBlockView<Scalar>&)>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
