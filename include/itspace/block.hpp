// SPDX-License-Identifier: Apache-2.0
//
// Blocks: the tall matrices that everything moves.
//
// A Block is a d x r matrix, row-major: a row is one coordinate of the feature space and holds r contiguous values
// (NumPy's order, so nothing is transposed at any door). Feature sets are blocks too, one sample per row. A Block is an
// Eigen matrix in all that one does with it; its memory is the library's own, so that a program may be compiled for
// another processor or with other Eigen settings than the library. Views borrow the caller's memory,
// with any row stride >= cols. r x r matrices are Small: on the host, always double.
#pragma once

#include <itspace/export.hpp>

#include <Eigen/Core>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace itspace {

using Index = Eigen::Index;

template <class Scalar>
concept Storage = std::same_as<Scalar, float> || std::same_as<Scalar, double>;

// Aligned to 64 bytes. Both are the library's: what one side of its boundary allocates, the other may free.
ITSPACE_API void* allocate_bytes(std::size_t bytes);  // throws std::bad_alloc
ITSPACE_API void free_bytes(void* memory) noexcept;

// An Eigen matrix of run-time size in memory of the library. It is assigned, copied and moved as a Matrix is. What of
// Eigen's own takes a Map that is to be written, such as Eigen::Ref, does not see that one is constant.
template <class Matrix>
class Owned : public Eigen::Map<Matrix> {
  using Map = Eigen::Map<Matrix>;

 public:
  using Scalar = typename Matrix::Scalar;

  Owned() : Map(nullptr, 0, initial_cols) {}
  explicit Owned(Index size) requires(Matrix::ColsAtCompileTime == 1) : Owned(size, 1) {}
  Owned(Index rows, Index cols) : Map(allocate(rows, cols), rows, cols) {}
  template <class Other>
  Owned(const Eigen::EigenBase<Other>& other)  // NOLINT(google-explicit-constructor): as a Matrix is
      : Owned(rows_for(other), cols_for(other)) {
    Map::operator=(other.derived());
  }
  Owned(std::initializer_list<std::initializer_list<Scalar>> rows) : Owned(Matrix(rows)) {}
  Owned(const Owned& other) : Owned(other.rows(), other.cols()) { Map::operator=(other.as_map()); }
  Owned(Owned&& other) noexcept : Owned() { swap(other); }
  ~Owned() { free_bytes(this->data()); }

  Owned& operator=(const Owned& other) { return *this = other.as_map(); }
  Owned& operator=(Owned&& other) noexcept {
    swap(other);
    return *this;
  }
  template <class Other>
  Owned& operator=(const Eigen::EigenBase<Other>& other) {
    if (rows_for(other) == this->rows() && cols_for(other) == this->cols()) {
      Map::operator=(other.derived());
    } else {
      Owned made(other);  // it may be an expression of this
      swap(made);
    }
    return *this;
  }

  // Values are lost where the size changes.
  void resize(Index rows, Index cols) {
    if (rows != this->rows() || cols != this->cols()) {
      Owned made(rows, cols);
      swap(made);
    }
  }
  void resize(Index size) requires(Matrix::ColsAtCompileTime == 1) { resize(size, 1); }

  // A Map would keep its size.
  struct Unaliased {
    Owned& block;
    template <class Other>
    Owned& operator=(const Eigen::MatrixBase<Other>& other) {
      block.resize(other.rows(), other.cols());
      static_cast<Map&>(block).noalias() = other.derived();
      return block;
    }
    template <class Other>
    Owned& operator+=(const Eigen::MatrixBase<Other>& other) {
      static_cast<Map&>(block).noalias() += other.derived();
      return block;
    }
    template <class Other>
    Owned& operator-=(const Eigen::MatrixBase<Other>& other) {
      static_cast<Map&>(block).noalias() -= other.derived();
      return block;
    }
  };
  Unaliased noalias() { return {*this}; }
  void transposeInPlace() = delete;  // write x = x.transpose().eval()

  using Map::setConstant;
  using Map::setIdentity;
  using Map::setZero;
  Owned& setIdentity(Index rows, Index cols) {
    resize(rows, cols);
    Map::setIdentity();
    return *this;
  }
  Owned& setZero(Index rows, Index cols) {
    resize(rows, cols);
    Map::setZero();
    return *this;
  }
  Owned& setZero(Index size) requires(Matrix::ColsAtCompileTime == 1) { return setZero(size, 1); }
  Owned& setConstant(Index rows, Index cols, Scalar value) {
    resize(rows, cols);
    Map::setConstant(value);
    return *this;
  }

  void swap(Owned& other) noexcept {
    const Map mine(this->data(), this->rows(), this->cols());
    seat(other.data(), other.rows(), other.cols());
    other.seat(const_cast<Scalar*>(mine.data()), mine.rows(), mine.cols());
  }
  friend void swap(Owned& a, Owned& b) noexcept { a.swap(b); }

 private:
  static constexpr bool is_vector = Matrix::ColsAtCompileTime == 1;
  static constexpr Index initial_cols = is_vector ? 1 : 0;

  // A row may become a vector, as with Eigen's own.
  template <class Other>
  static Index rows_for(const Eigen::EigenBase<Other>& other) {
    return is_vector ? other.size() : other.rows();
  }
  template <class Other>
  static Index cols_for(const Eigen::EigenBase<Other>& other) {
    return is_vector ? 1 : other.cols();
  }

  static Scalar* allocate(Index rows, Index cols) {
    if (rows < 0 || cols < 0 || (cols > 0 && rows > std::numeric_limits<Index>::max() / cols)) throw std::bad_alloc();
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    if (count > std::numeric_limits<std::size_t>::max() / (2 * sizeof(Scalar))) throw std::bad_alloc();
    return count == 0 ? nullptr : static_cast<Scalar*>(allocate_bytes(count * sizeof(Scalar)));
  }
  // The way Eigen documents for a Map that is to show other memory.
  void seat(Scalar* data, Index rows, Index cols) noexcept { new (static_cast<Map*>(this)) Map(data, rows, cols); }
  const Map& as_map() const { return *this; }
};

template <Storage Scalar>
using RowMajorMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <Storage Scalar>
using Block = Owned<RowMajorMatrix<Scalar>>;
using Vector = Owned<Eigen::VectorXd>;

using Small = Eigen::MatrixXd;
using SmallVector = Eigen::VectorXd;

namespace detail {

// The Eigen type that E is: of a Block, a Map.
template <class E>
using EigenType = std::remove_cvref_t<decltype(std::declval<std::remove_cvref_t<E>&>().derived())>;

// An expression whose values lie in memory as a block's do: by rows, each contiguous.
template <class Expression, class Scalar>
concept LiesByRows = std::same_as<typename Expression::Scalar, Scalar> && bool(Expression::IsRowMajor) &&
                     bool(int(Eigen::internal::traits<Expression>::Flags) & Eigen::DirectAccessBit) &&
                     int(Eigen::internal::inner_stride_at_compile_time<Expression>::ret) == 1;

template <class Expression>
inline constexpr bool is_writable = bool(int(Eigen::internal::traits<Expression>::Flags) & Eigen::LvalueBit);
template <class Expression>
inline constexpr bool owns_its_memory = false;
template <class S, int R, int C, int O, int MR, int MC>
inline constexpr bool owns_its_memory<Eigen::Matrix<S, R, C, O, MR, MC>> = true;
template <class Matrix>
inline constexpr bool owns_its_memory<Owned<Matrix>> = true;

}  // namespace detail

// Memory of the caller's that is written to: a Block, or any Eigen expression of a row-major matrix. Neither a constant
// nor a temporary that owns its memory binds to it.
template <Storage Scalar>
class BlockView : public Eigen::Map<RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>> {
  using Map = Eigen::Map<RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>>;

 public:
  BlockView(Scalar* data, Index rows, Index cols, Index stride) : Map(data, rows, cols, Eigen::OuterStride<>(stride)) {}
  template <class E>
  requires detail::LiesByRows<detail::EigenType<E>, Scalar> && detail::is_writable<detail::EigenType<E>> &&
      (!detail::owns_its_memory<std::decay_t<E>> ||
       (std::is_lvalue_reference_v<E> && !std::is_const_v<std::remove_reference_t<E>>)) &&
      (!std::same_as<std::decay_t<E>, BlockView>)
          BlockView(E&& block)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : BlockView(const_cast<Scalar*>(block.data()), block.rows(), block.cols(), block.outerStride()) {}
  BlockView(const BlockView&) = default;

  // Assignment copies values.
  using Map::operator=;
  BlockView& operator=(const BlockView& other) {
    Map::operator=(other);
    return *this;
  }
};

// Memory of the caller's that is read. Any Eigen expression of that scalar type binds to it; one whose values do not
// lie by rows is evaluated into memory that the view and its copies share.
template <Storage Scalar>
class ConstBlockView : public Eigen::Map<const RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>> {
  using Map = Eigen::Map<const RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>>;

 public:
  ConstBlockView(const Scalar* data, Index rows, Index cols, Index stride)
      : Map(data, rows, cols, Eigen::OuterStride<>(stride)) {}
  template <class E>
  requires std::same_as<typename E::Scalar, Scalar> ConstBlockView(
      const Eigen::DenseBase<E>& values)  // NOLINT(google-explicit-constructor)
      : ConstBlockView(values.derived(), std::bool_constant<detail::LiesByRows<E, Scalar>>()) {}
  ConstBlockView(const ConstBlockView&) = default;
  ConstBlockView& operator=(const ConstBlockView&) = delete;

 private:
  template <class E>
  ConstBlockView(const E& values, std::true_type)
      : ConstBlockView(values.data(), values.rows(), values.cols(), values.outerStride()) {}
  template <class E>
  ConstBlockView(const E& values, std::false_type) : ConstBlockView(std::make_shared<const Block<Scalar>>(values)) {}
  explicit ConstBlockView(std::shared_ptr<const Block<Scalar>> copy)
      : ConstBlockView(copy->data(), copy->rows(), copy->cols(), copy->cols()) {
    copy_ = std::move(copy);
  }

  std::shared_ptr<const void> copy_;
};

// The word for data that the caller keeps alive, and does not want copied: FeaturesTarget<float>(borrow(features)).
template <Storage Scalar>
struct Borrowed {
  const Scalar* data = nullptr;
  Index rows = 0, cols = 0, stride = 0;
};
template <class E>
requires detail::LiesByRows<E, typename E::Scalar> Borrowed<typename E::Scalar> borrow(
    const Eigen::DenseBase<E>& values) {
  return {values.derived().data(), values.rows(), values.cols(), values.derived().outerStride()};
}
template <class E>
requires detail::owns_its_memory<std::remove_cv_t<E>> &&
    (!std::is_lvalue_reference_v<E>)void borrow(E&& temporary) = delete;  // it would be gone
template <Storage Scalar>
Borrowed<Scalar> borrow(const Scalar* data, Index rows, Index cols, Index stride) {
  return {data, rows, cols, stride};
}

// The data of a target: its own, shared with copies of the target, or borrowed by that word. A Block that is moved in
// is taken over; any other Eigen expression is copied.
template <Storage Scalar>
class HeldBlock {
 public:
  using View = ConstBlockView<Scalar>;

  HeldBlock(Block<Scalar>&& owned)  // NOLINT(google-explicit-constructor): the conversions are the point
      : HeldBlock(std::make_shared<const Block<Scalar>>(std::move(owned))) {}
  template <class E>
  requires std::same_as<typename E::Scalar, Scalar> HeldBlock(
      const Eigen::DenseBase<E>& values)  // NOLINT(google-explicit-constructor)
      : HeldBlock(std::make_shared<const Block<Scalar>>(values.derived())) {}
  HeldBlock(const Borrowed<Scalar>& borrowed)  // NOLINT(google-explicit-constructor)
      : HeldBlock(nullptr, borrowed) {}
  // Memory that `keeper` keeps alive, such as a mapped file.
  HeldBlock(std::shared_ptr<const void> keeper, const Borrowed<Scalar>& memory)
      : keeper_(std::move(keeper)), memory_(memory) {}

  Index rows() const { return memory_.rows; }
  Index cols() const { return memory_.cols; }
  View view() const { return View(memory_.data, memory_.rows, memory_.cols, memory_.stride); }

 private:
  explicit HeldBlock(std::shared_ptr<const Block<Scalar>> block)
      : keeper_(block), memory_{block->data(), block->rows(), block->cols(), block->cols()} {}

  std::shared_ptr<const void> keeper_;
  Borrowed<Scalar> memory_;
};

}  // namespace itspace
