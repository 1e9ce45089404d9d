// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a GPU at the door: DLPack, float32 or float64, values of a row side by side (the Python side sees to it).
// They are borrowed where they lie; what comes out is written into tensors that the Python side made.
#pragma once

#include <itspace/cuda/space.hpp>
#include <itspace/threads.hpp>

#include "core/require.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace itspace::python {

namespace nb = nanobind;

template <class Scalar>
using DeviceMatrix = nb::ndarray<const Scalar, nb::ndim<2>, nb::device::cuda>;
template <class Scalar>
using WritableDeviceMatrix = nb::ndarray<Scalar, nb::ndim<2>, nb::device::cuda>;

// The stride of rows; one row may have any.
template <class Array>
Index row_stride(const Array& array) {
  const auto cols = static_cast<Index>(array.shape(1));
  require(array.shape(1) <= 1 || array.stride(1) == 1,
          "the values of a row do not lie side by side; make a copy of the tensor that is contiguous");
  const auto stride = static_cast<Index>(array.stride(0));
  require(array.shape(0) <= 1 || stride >= cols,
          "the rows of the tensor overlap; make a copy of it that is contiguous");
  return array.shape(0) <= 1 ? cols : stride;
}

template <class Scalar>
cuda::ConstView<Scalar> view(const DeviceMatrix<Scalar>& array) {
  return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1)), row_stride(array)};
}
template <class Scalar>
cuda::View<Scalar> view(const WritableDeviceMatrix<Scalar>& array) {
  return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1)), row_stride(array)};
}

// A tensor that `make`, a function of Python's, gives for a number of rows and columns. With the lock held.
template <class Scalar>
WritableDeviceMatrix<Scalar> made(const nb::object& tensor) {
  return nb::cast<WritableDeviceMatrix<Scalar>>(tensor, false);
}

// A copy of the block in a tensor of Python's own. With the lock held.
template <Storage Scalar>
nb::object handed_over(const cuda::Device& device, const cuda::ConstView<Scalar>& block, const nb::object& make) {
  nb::object tensor = make(block.rows, block.cols());
  cuda::Space<Scalar>(device).copy(block, view(made<Scalar>(tensor)));
  return tensor;
}

// This module has the library to itself, and threads of its own: those that itspace._core may use are for it to say. As
// many as there are anyway, and 0, leave them alone, and BLAS's with them.
inline Index told(Index threads) {
  return threads == itspace::threads() ? 0 : threads;
}

}  // namespace itspace::python
