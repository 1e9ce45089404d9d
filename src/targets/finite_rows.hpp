// SPDX-License-Identifier: Apache-2.0
//
// Rows of a source that hold a value which is not finite are refused, with their place.
#pragma once

#include <itspace/row_source.hpp>

#include "core/require.hpp"

#include <cmath>
#include <type_traits>

namespace itspace {

// `rows` are those of the source from `first_row` on.
template <Storage Data>
void require_finite(const RowSource<Data>& source, const std::type_identity_t<ConstBlockView<Data>>& rows,
                    Index first_row) {
  for (Index i = 0; i < rows.rows(); ++i)
    for (Index j = 0; j < rows.cols(); ++j)
      require(std::isfinite(rows(i, j)), source.place_of(first_row + i), ", column ", j, " is ",
              static_cast<double>(rows(i, j)), "; all values must be finite. Remove or replace such rows first");
}

}  // namespace itspace
