// SPDX-License-Identifier: Apache-2.0
//
// What one thread does with its columns of the rows of a stream, in loops that are compiled for each instruction set.
// Sums over rows are taken in order and without fused operations: their bits depend on neither the instruction set nor
// how columns are cut.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// Rows about their weighted mean, each times the root of its share.
template <Storage Scalar>
struct CentreRows {
  const Scalar* const* rows;  // `count` of them, at least one
  const double *shares, *roots;
  Index count;
  double total;  // of the shares
  double* mean;
  double* squares;  // the sums of squares of the columns of what is made
  Scalar* centred;
  Index stride;
};

// A row, which of several sums it is added to, and how often.
template <Storage Scalar>
struct AddedRow {
  const Scalar* row;
  Index to;
  Scalar factor;
};

template <Storage Scalar>
struct StreamLoops {
  void (*centre)(const CentreRows<Scalar>& request, Index begin, Index end);  // columns [begin, end)
  // Columns [begin, end) of the rows to their sums, which lie `stride` values after each other.
  void (*add)(const AddedRow<Scalar>* rows, Index count, Index begin, Index end, Scalar* sums, Index stride);
  // to += from^2.
  void (*add_squares)(const Scalar* from, Index count, double* to);
  // to(j, i) = factor from(i, j).
  void (*transpose)(const Scalar* from, Index from_stride, Index rows, Index cols, double factor, Scalar* to,
                    Index to_stride);
};

// For the instruction set of this machine.
template <Storage Scalar>
const StreamLoops<Scalar>& stream_loops();

}  // namespace itspace::kernels
