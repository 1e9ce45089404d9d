// SPDX-License-Identifier: Apache-2.0
//
// Blocks: the tall matrices that everything moves.
//
// A Block is a d x r matrix, row-major: a row is one coordinate of the feature space and holds r contiguous values
// (NumPy's order, so nothing is transposed at any door). Feature sets are blocks too, one sample per row. Views borrow
// the caller's memory, with any row stride >= cols. r x r matrices are Small: on the host, always double.
#pragma once

#include <Eigen/Core>
#include <concepts>

// A block made in the library may be freed in a program that was compiled for wider vectors or with a sanitizer, where
// Eigen would allocate in another way. The CMake target itspace::itspace brings these two definitions.
static_assert(EIGEN_MAX_ALIGN_BYTES == 16 && EIGEN_MALLOC_ALREADY_ALIGNED == 1,
              "compile with -DEIGEN_MAX_ALIGN_BYTES=16 -DEIGEN_MALLOC_ALREADY_ALIGNED=1, as libitspace is");

namespace itspace {

using Index = Eigen::Index;

template <class Scalar>
concept Storage = std::same_as<Scalar, float> || std::same_as<Scalar, double>;

template <Storage Scalar>
using Block = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Binding a column-major expression to a ConstBlockView copies it; a Block, or a Map of one, is borrowed as it is.
template <Storage Scalar>
using BlockView = Eigen::Ref<Block<Scalar>, 0, Eigen::OuterStride<>>;
template <Storage Scalar>
using ConstBlockView = Eigen::Ref<const Block<Scalar>, 0, Eigen::OuterStride<>>;

using Small = Eigen::MatrixXd;
using SmallVector = Eigen::VectorXd;

// A matrix that is either borrowed (the caller keeps it alive) or owned. Targets hold their data this way: an lvalue
// Block is borrowed, a temporary is taken over, and raw memory (a mapped file, a NumPy array) is borrowed by pointer.
template <Storage Scalar>
class HeldBlock {
 public:
  using View = Eigen::Map<const Block<Scalar>, 0, Eigen::OuterStride<>>;

  HeldBlock(const Block<Scalar>& borrowed)  // NOLINT(google-explicit-constructor): the conversion is the point
      : HeldBlock(borrowed.data(), borrowed.rows(), borrowed.cols(), borrowed.cols()) {}
  HeldBlock(Block<Scalar>&& owned)  // NOLINT(google-explicit-constructor)
      : owned_(std::move(owned)), rows_(owned_.rows()), cols_(owned_.cols()), stride_(owned_.cols()) {}
  HeldBlock(const Scalar* data, Index rows, Index cols, Index stride)
      : borrowed_(data), rows_(rows), cols_(cols), stride_(stride) {}

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  View view() const { return View(borrowed_ ? borrowed_ : owned_.data(), rows_, cols_, Eigen::OuterStride<>(stride_)); }

 private:
  Block<Scalar> owned_;
  const Scalar* borrowed_ = nullptr;
  Index rows_, cols_, stride_;
};

}  // namespace itspace
