// SPDX-License-Identifier: Apache-2.0
//
// What one thread does of a product with few columns. All of it is made of three small loops over eight rows of a wide
// matrix (a strip) that are written once, with Highway, and compiled for each instruction set; the best one that the
// machine has is taken when the program runs.
//
// A block that is multiplied by, or summed into, lies in slabs: a few vectors' worth of its columns after another, each
// slab contiguous and padded with zero columns. A contiguous block that is one slab already is used as it lies.
#pragma once

#include <itspace/block.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace itspace::kernels {

inline constexpr Index strip_rows = 8;

// How columns are cut into slabs on this machine.
struct SlabWidths {
  Index lanes;         // values of a vector
  Index most_vectors;  // of a slab: as many as the registers hold the sums of
  bool has_halves;     // whether a slab may be half a vector

  constexpr Index next(Index left) const {
    if (left > 3 * lanes && most_vectors >= 4) return 4 * lanes;
    const Index half = has_halves ? lanes / 2 : 0;
    if (left <= half) return half;
    return left > lanes + half ? 2 * lanes : lanes;
  }
  Index padded(Index cols) const {
    Index total = 0;
    while (total < cols) total += next(cols - total);
    return total;
  }
  bool is_one_slab(Index cols) const { return cols > 0 && next(cols) == cols; }
};

// A wide matrix, read a strip at a time: its values, less those of `shift` where there is one.
template <Storage Scalar, Storage Data>
struct WideRows {
  const Data* data;
  Index stride, count, cols;
  const Scalar* shift = nullptr;
};

// The factors of rows: one for each, or one for all.
struct RowFactors {
  const double* data;
  bool one_for_each;
  double operator()(Index row) const { return data[one_for_each ? row : 0]; }
};

// A block in slabs that holds rows [first_row, first_row + rows) of a taller one.
template <Storage Scalar>
struct SlabSum {
  const Scalar* slabs;
  Index first_row, rows;
};

// Rows [top, bottom) and columns [left, right) of the upper triangle of a symmetric matrix; on the diagonal both are
// the same. w_top (+= tile y) has rows [top, bottom), w_left (+= tile' y) rows [left, right), and on the diagonal they
// are one. y has all rows.
template <Storage Scalar>
struct SymmetricTile {
  Index top, bottom, left, right;
  const Scalar* y;
  Scalar *w_top, *w_left;
};

// x <- scale (x - from) + to + scale ((x - from) basis) update, for rows x: an affine map that is a multiple of the
// identity but for a low rank.
template <Storage Scalar>
struct LowRankMap {
  Scalar scale;
  const Scalar *from, *to;
  const Scalar* basis;   // d x rank, in slabs
  const Scalar* update;  // rank x d, in slabs
  Index rank;
};

// The most columns of a block that these loops take.
inline constexpr Index most_strip_columns = 128;

// The loops for blocks of Scalar and wide matrices of Data. Ranges are of rows, begin to end; begin is a multiple of
// strip_rows, and end too or the last row. Slabs are of the type Scalar.
template <Storage Scalar, Storage Data>
struct StripLoops {
  SlabWidths widths;

  // Rows [begin, end) of `from`, into slabs.
  void (*pack)(const ConstBlockView<Scalar>& from, Index begin, Index end, Scalar* slabs);
  // to = old_scale to + the sum of `count` blocks in slabs, over rows [begin, end), which all of them have.
  void (*unpack_sum)(const SlabSum<Scalar>* terms, Index count, Index begin, Index end, Scalar old_scale,
                     BlockView<Scalar> to);
  // What one tile of a symmetric matrix, and its mirror image, add to the product with y.
  void (*symmetric)(const WideRows<Scalar, Data>& a, const SymmetricTile<Scalar>& tile, Index cols);
  // out(i) = alpha a(i) y + beta out(i).
  void (*times)(const WideRows<Scalar, Data>& a, Index begin, Index end, const Scalar* y, Scalar alpha, Scalar beta,
                BlockView<Scalar> out);
  // w(k) += alpha sum_i a(i, k) p(i) for columns k in [left, right).
  void (*transposed)(const WideRows<Scalar, Data>& a, Index begin, Index end, Index left, Index right, Scalar alpha,
                     const ConstBlockView<Scalar>& p, Scalar* w);
  // w += sum_i f_i^2 a(i)' (a(i) y), each row read from memory once.
  void (*squared)(const WideRows<Scalar, Data>& a, Index begin, Index end, const Scalar* y, Index cols,
                  const RowFactors& factors, Scalar* w);
  // Rows [begin, end) of `samples`, in place.
  void (*map)(const LowRankMap<Scalar>& map, Index begin, Index end, BlockView<Scalar> samples);
};

// The loops that end in a small matrix or multiply by one, in double.
template <Storage Scalar>
struct SmallLoops {
  SlabWidths widths;

  // out (a.cols x b.cols, in slabs) += a'b over rows [begin, end). What is below the diagonal of slabs is left out
  // where the first column of b belongs to column `diagonal` of a; with a.cols(), nothing is. b has at most
  // most_strip_columns; here and below `a` any number.
  void (*gram)(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, Index begin, Index end, Index diagonal,
               double* out);
  // out = a m, or out += a m; m has `cols` columns, in slabs. The blocks may share columns.
  void (*multiply)(const ConstBlockView<Scalar>& a, const double* m, Index begin, Index end, bool add,
                   BlockView<Scalar> out);
};

// For the instruction set of this machine.
template <Storage Scalar, Storage Data = Scalar>
const StripLoops<Scalar, Data>& strip_loops();
template <Storage Scalar>
const SmallLoops<Scalar>& small_loops();

// The instruction sets that this machine has and these loops were compiled for, the best one first.
std::vector<std::string> instruction_sets();

// All calls take the loops of one of them while it lives. Not while another thread computes.
class UseInstructionSetForTests {
 public:
  explicit UseInstructionSetForTests(std::size_t number);
  ~UseInstructionSetForTests();
  UseInstructionSetForTests(const UseInstructionSetForTests&) = delete;
};

}  // namespace itspace::kernels
