// SPDX-License-Identifier: Apache-2.0
//
// mpi::Space: blocks whose rows are spread over the ranks of a job, for the solvers that know no place (space.hpp).
//
// Rank p holds the rows [d p/P, d (p+1)/P) of a block of d rows in this machine's memory, so that nothing of size d is
// ever in one place. What ends in r x r numbers is summed over the ranks in one exchange of small messages, in the
// order of the ranks; everything else is done by each rank for itself.
#pragma once

#include <itspace/mpi/communicator.hpp>
#include <itspace/space.hpp>

#include <span>
#include <utility>

namespace itspace::mpi {

// The rows of this rank of a block that is written to: `local_rows` of them, from `first` on, of `rows` in all.
template <Storage Scalar>
struct View {
  Scalar* data = nullptr;
  Index local_rows = 0, width = 0, stride = 0;
  Index first = 0, rows = 0;

  Index cols() const { return width; }
  BlockView<Scalar> local() const { return {data, local_rows, width, stride}; }
};

// Of a block that is read.
template <Storage Scalar>
struct ConstView {
  const Scalar* data = nullptr;
  Index local_rows = 0, width = 0, stride = 0;
  Index first = 0, rows = 0;

  ConstView() = default;
  ConstView(const Scalar* memory, Index local_row_count, Index col_count, Index row_stride, Index first_row,
            Index all_rows)
      : data(memory),
        local_rows(local_row_count),
        width(col_count),
        stride(row_stride),
        first(first_row),
        rows(all_rows) {}
  ConstView(const View<Scalar>& view)  // NOLINT(google-explicit-constructor): as with every view
      : ConstView(view.data, view.local_rows, view.width, view.stride, view.first, view.rows) {}
  Index cols() const { return width; }
  ConstBlockView<Scalar> local() const { return {data, local_rows, width, stride}; }
};

// The rows of this rank, in memory of its own.
template <Storage Scalar>
class Block {
 public:
  Block() = default;
  Block(const Communicator& ranks, Index rows, Index cols)
      : local_(ranks.own_rows(rows), cols), first_(ranks.first_row(rows)), rows_(rows) {}

  Index rows() const { return rows_; }  // of all ranks
  Index cols() const { return local_.cols(); }
  Index first_row() const { return first_; }
  itspace::Block<Scalar>& local() { return local_; }
  const itspace::Block<Scalar>& local() const { return local_; }

  operator View<Scalar>() {  // NOLINT(google-explicit-constructor)
    return {local_.data(), local_.rows(), local_.cols(), local_.cols(), first_, rows_};
  }
  operator ConstView<Scalar>() const {  // NOLINT(google-explicit-constructor)
    return {local_.data(), local_.rows(), local_.cols(), local_.cols(), first_, rows_};
  }

 private:
  itspace::Block<Scalar> local_;
  Index first_ = 0, rows_ = 0;
};

// All rows, on every rank; and the share of this rank of rows that every rank has.
template <Storage Scalar>
itspace::Block<Scalar> gather(const Communicator& ranks, const std::type_identity_t<ConstView<Scalar>>& block) {
  itspace::Block<Scalar> all(block.rows, block.cols());
  ranks.gather_rows<Scalar>(block.local(), all);
  return all;
}
template <Storage Scalar>
Block<Scalar> spread(const Communicator& ranks, const std::type_identity_t<ConstBlockView<Scalar>>& all) {
  Block<Scalar> block(ranks, all.rows(), all.cols());
  block.local() = all.middleRows(block.first_row(), block.local().rows());
  return block;
}

template <Storage ScalarType>
class ITSPACE_API Space {
 public:
  using Scalar = ScalarType;
  using Block = mpi::Block<Scalar>;
  using View = mpi::View<Scalar>;
  using ConstView = mpi::ConstView<Scalar>;

  explicit Space(Communicator ranks) : ranks_(std::move(ranks)) {}

  const Communicator& ranks() const { return ranks_; }

  Block make_block(Index rows, Index cols) { return Block(ranks_, rows, cols); }
  View columns(Block& block, Index first, Index count) { return columns(View(block), first, count); }
  View columns(const View& block, Index first, Index count) {
    return {block.data + first, block.local_rows, count, block.stride, block.first, block.rows};
  }
  ConstView columns(const ConstView& block, Index first, Index count) {
    return {block.data + first, block.local_rows, count, block.stride, block.first, block.rows};
  }

  void grams(std::span<const GramRequest<ConstView>> requests);
  SmallVector column_norms(const ConstView& a);
  BlendNorms blend_norms(const ConstView& y, const ConstView& b);
  void multiply(const ConstView& a, const Small& m, const View& out, Write write);
  void multiply_roughly(const ConstView& a, const Small& m, const View& out);
  void blend(const ConstView& y, const ConstView& b, double alpha, const View& out);
  void scale_columns(const View& block, const SmallVector& factors);
  void subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, const View& out);
  void copy(const ConstView& from, const View& to);
  void set_zero(const View& block);
  void fill_normal(const Random& random, const View& out);
  void poison(const View& block);
  bool is_poisoned(const ConstView& block);

 private:
  Communicator ranks_;
  HostSpace<Scalar> here_;
};

static_assert(itspace::Space<Space<float>> && itspace::Space<Space<double>>);

}  // namespace itspace::mpi
