// SPDX-License-Identifier: Apache-2.0
//
// What one thread does with the rows of a stream, or with its columns of them, in loops that are compiled for each
// instruction set. Sums are taken in order and without fused operations: their bits do not depend on the instruction
// set.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// A batch whose rows are to be centred, each times the root of its share.
template <Storage Scalar>
struct CentredBatch {
  const Scalar* const* rows;  // at least one
  const double *shares, *roots;
  Index cols;
  Scalar* centred;  // row by row
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
  // Rows [begin, end) as they are to where they are centred, and sums += share (row - first row): where all rows are
  // equal the sums are 0, and the mean is theirs to the last bit.
  void (*copy)(const CentredBatch<Scalar>& batch, Index begin, Index end, double* sums);
  // The rows that were copied about the mean, and squares += theirs.
  void (*centre)(const CentredBatch<Scalar>& batch, Index begin, Index end, const double* mean, double* squares);
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
