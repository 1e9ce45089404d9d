// SPDX-License-Identifier: Apache-2.0
//
// What the products of wide matrices with tall blocks have in common: how they are cut into parts for the threads.
#pragma once

#include "kernels/block_ops.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <array>

namespace itspace::kernels {

// Blocks of more columns than this go to BLAS: the wide matrix is no longer what costs.
inline constexpr Index most_columns = most_strip_columns;

inline double work_of(Index rows, Index cols, Index columns) {
  return static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(columns);
}

template <Storage Scalar, Storage Data>
WideRows<Scalar, Data> wide_rows(const ConstBlockView<Data>& a, const Scalar* shift = nullptr) {
  return {a.data(), a.outerStride(), a.rows(), a.cols(), shift};
}

template <class View>
bool lies_as_a_slab(const View& block, const SlabWidths& widths) {
  return block.outerStride() == block.cols() && widths.is_one_slab(block.cols());
}

// The block in slabs: itself where it is one, else a copy in scratch.
template <Storage Scalar, Storage Data>
const Scalar* in_slabs(const ConstBlockView<Scalar>& b, const StripLoops<Scalar, Data>& loops, Index parts) {
  if (lies_as_a_slab(b, loops.widths)) return b.data();
  Scalar* slabs = thread_scratch<Scalar, Scratch::slabs>(b.rows() * loops.widths.padded(b.cols()));
  run_parts(parts, [&](Index part) {
    const Range range = part_of(b.rows(), parts, part);
    loops.pack(b, range.begin, range.end, slabs);
  });
  return slabs;
}

// c = beta c + the sum over parts of what work(part, w) adds to a block w of its own, in slabs.
template <Storage Scalar, Storage Data, class Work>
void sum_over_parts(const StripLoops<Scalar, Data>& loops, Index parts, Scalar beta, BlockView<Scalar>& c,
                    const Work& work) {
  if (parts == 1 && beta == Scalar(0) && lies_as_a_slab(c, loops.widths)) {
    c.setZero();
    work(Index(0), c.data());
    return;
  }
  const Index size = c.rows() * loops.widths.padded(c.cols());
  Scalar* sums = thread_scratch<Scalar, Scratch::partial_sums>(parts * size);
  run_parts(parts, [&](Index part) {
    Scalar* own = sums + part * size;
    std::fill_n(own, size, Scalar(0));
    work(part, own);
  });
  std::array<SlabSum<Scalar>, most_parts> terms;
  for (Index p = 0; p < parts; ++p) terms[static_cast<std::size_t>(p)] = {sums + p * size, 0, c.rows()};
  run_parts(parts, [&](Index part) {
    const Range range = part_of(c.rows(), parts, part);
    loops.unpack_sum(terms.data(), parts, range.begin, range.end, beta, c);
  });
}

}  // namespace itspace::kernels
