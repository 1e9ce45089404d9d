// SPDX-License-Identifier: Apache-2.0
//
// cuda::Space: blocks in the memory of a GPU, for the solvers that know no place (space.hpp).
//
// A block is row-major as on the host, d x r with its rows one after the other, so that a C-contiguous tensor is one
// without a copy: wrap its address in a View. Gram matrices and norms are summed in double, by kernels that cut the
// rows into the same parts on every GPU and add the parts up in one order: same inputs, same bits. Those that are asked
// for together cost two launches and one wait. Matrices of r x r size that come from the host go through pinned memory
// that the device holds; nothing is allocated in a solver's loop.
#pragma once

#include <itspace/cuda/device.hpp>
#include <itspace/space.hpp>

#include <memory>
#include <span>
#include <utility>

namespace itspace::cuda {

// Device memory that is written to: element (i, j) is data[i stride + j]. @pre stride >= cols.
template <Storage Scalar>
struct View {
  Scalar* data = nullptr;
  Index rows = 0, width = 0, stride = 0;

  View() = default;
  View(Scalar* memory, Index row_count, Index col_count, Index row_stride)
      : data(memory), rows(row_count), width(col_count), stride(row_stride) {}
  Index cols() const { return width; }
};

// Device memory that is read.
template <Storage Scalar>
struct ConstView {
  const Scalar* data = nullptr;
  Index rows = 0, width = 0, stride = 0;

  ConstView() = default;
  ConstView(const Scalar* memory, Index row_count, Index col_count, Index row_stride)
      : data(memory), rows(row_count), width(col_count), stride(row_stride) {}
  ConstView(const View<Scalar>& view)  // NOLINT(google-explicit-constructor): as with every view
      : ConstView(view.data, view.rows, view.width, view.stride) {}
  Index cols() const { return width; }
};

// Device memory of its own. Its values are whatever was there.
template <Storage Scalar>
class ITSPACE_API Block {
 public:
  Block() = default;
  Block(Device device, Index rows, Index cols);
  Block(Block&& other) noexcept { swap(other); }
  Block& operator=(Block&& other) noexcept {
    Block(std::move(other)).swap(*this);
    return *this;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  Scalar* data() { return data_; }
  const Scalar* data() const { return data_; }

  operator View<Scalar>() { return {data_, rows_, cols_, cols_}; }             // NOLINT(google-explicit-constructor)
  operator ConstView<Scalar>() const { return {data_, rows_, cols_, cols_}; }  // NOLINT(google-explicit-constructor)

  void swap(Block& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
  }

 private:
  std::shared_ptr<Device> device_;  // none for an empty block
  Scalar* data_ = nullptr;
  Index rows_ = 0, cols_ = 0;
};

// Between the memories; both wait until the copy is done.
template <Storage Scalar>
ITSPACE_API void copy_to_device(const Device& device, const std::type_identity_t<ConstBlockView<Scalar>>& from,
                                View<Scalar> to);
template <Storage Scalar>
ITSPACE_API void copy_to_host(const Device& device, const ConstView<Scalar>& from,
                              std::type_identity_t<BlockView<Scalar>> to);
template <Storage Scalar>
Block<Scalar> to_device(const Device& device, const std::type_identity_t<ConstBlockView<Scalar>>& from) {
  Block<Scalar> block(device, from.rows(), from.cols());
  copy_to_device<Scalar>(device, from, block);
  return block;
}
template <Storage Scalar>
itspace::Block<Scalar> to_host(const Device& device, const std::type_identity_t<ConstView<Scalar>>& from) {
  itspace::Block<Scalar> block(from.rows, from.cols());
  copy_to_host<Scalar>(device, from, block);
  return block;
}

template <Storage ScalarType>
class ITSPACE_API Space {
 public:
  using Scalar = ScalarType;
  using Block = cuda::Block<Scalar>;
  using View = cuda::View<Scalar>;
  using ConstView = cuda::ConstView<Scalar>;
  static constexpr bool runs_ahead = true;

  explicit Space(Device device) : device_(std::move(device)) {}

  const Device& device() const { return device_; }

  Block make_block(Index rows, Index cols) { return Block(device_, rows, cols); }
  View columns(Block& block, Index first, Index count) { return columns(View(block), first, count); }
  View columns(const View& block, Index first, Index count) {
    return {block.data + first, block.rows, count, block.stride};
  }
  ConstView columns(const ConstView& block, Index first, Index count) {
    return {block.data + first, block.rows, count, block.stride};
  }

  void grams(std::span<const GramRequest<ConstView>> requests);
  void ask_grams(std::span<const GramRequest<ConstView>> requests);  // at most eight
  void answer_grams(std::span<const GramRequest<ConstView>> requests);
  SmallVector column_norms(const ConstView& a);
  BlendNorms blend_norms(const ConstView& y, const ConstView& b);
  void multiply(const ConstView& a, const Small& m, const View& out, Write write);
  void multiply_roughly(const ConstView& a, const Small& m, const View& out) { multiply(a, m, out, Write::assign); }
  void blend(const ConstView& y, const ConstView& b, double alpha, const View& out);
  void scale_columns(const View& block, const SmallVector& factors);
  void subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, const View& out);
  void copy(const ConstView& from, const View& to);
  void set_zero(const View& block);
  void fill_normal(const Random& random, const View& out);
  void poison(const View& block);
  bool is_poisoned(const ConstView& block);

 private:
  Device device_;
};

static_assert(itspace::Space<Space<float>> && itspace::Space<Space<double>>);

}  // namespace itspace::cuda
