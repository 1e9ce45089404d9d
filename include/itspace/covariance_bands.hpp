// SPDX-License-Identifier: Apache-2.0
//
// The covariance of a target as the matrix that it is, where no memory holds it: bands of its rows, one product with
// the target for each. No run needs it; it is for those who want the matrix itself.
//
//     io::RowWriter<double> file("S.npy", d, d);
//     covariance_bands<double>(target, band_rows(d, memory), [&](const auto& rows) { file.write(rows); });
//     file.commit();
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <cstdint>
#include <functional>

namespace itspace {

// What a row of a band takes while it is made, in bytes, with blocks of double.
ITSPACE_API std::uint64_t bytes_of_band_row(Index dim);

// The rows of a band within that memory: from 1, however little it is, to dim.
ITSPACE_API Index band_rows(Index dim, std::uint64_t memory);

// Calls `take` with rows 0, 1, ... of the covariance, `rows_in_band` at a time and fewer in the last band. Entry (i, j)
// and entry (j, i) come from different sums and agree up to rounding. Throws std::invalid_argument unless
// `rows_in_band` is 1 or more; what `take` throws ends it.
template <Storage Scalar>
ITSPACE_API void covariance_bands(const TargetArgument<Scalar>& target, Index rows_in_band,
                                  const std::function<void(const ConstBlockView<Scalar>& rows)>& take);

}  // namespace itspace
