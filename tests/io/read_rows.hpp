// SPDX-License-Identifier: Apache-2.0
//
// All rows of a source, from the first, read a piece at a time.
#pragma once

#include <gtest/gtest.h>

#include <itspace/row_source.hpp>

namespace fixtures {

template <itspace::Storage Data>
itspace::Block<Data> read_all(itspace::RowSource<Data>& source, itspace::Index piece) {
  source.restart();
  itspace::Block<Data> whole(*source.rows(), source.cols()), rows(piece, source.cols());
  itspace::Index first = 0;
  while (const itspace::Index count = source.read(rows)) {
    whole.middleRows(first, count) = rows.topRows(count);
    first += count;
  }
  EXPECT_EQ(first, whole.rows());
  return whole;
}

}  // namespace fixtures
