// SPDX-License-Identifier: Apache-2.0
//
// Arrays at the door. What comes in is C-contiguous, on the host and float32 or float64 (the Python side sees to it),
// and is borrowed; what goes out is taken over by NumPy. Neither way copies.
#pragma once

#include <itspace/block.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <Eigen/Core>
#include <string>
#include <utility>
#include <vector>

namespace itspace::python {

namespace nb = nanobind;

template <class Scalar>
using Matrix = nb::ndarray<const Scalar, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Scalar>
using Stack = nb::ndarray<const Scalar, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class Scalar>
using WritableMatrix = nb::ndarray<Scalar, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // of whatever type
using AnyStack = nb::ndarray<nb::ro, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Scalar>
using MatrixView = Eigen::Map<const RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>>;

template <class Scalar>
MatrixView<Scalar> view(const Matrix<Scalar>& array) {
  const auto rows = static_cast<Index>(array.shape(0)), cols = static_cast<Index>(array.shape(1));
  return MatrixView<Scalar>(array.data(), rows, cols, Eigen::OuterStride<>(cols));
}

// @pre array.dtype() is that of Scalar.
template <class Scalar>
MatrixView<Scalar> view_as(const AnyArray& array) {
  const auto rows = static_cast<Index>(array.shape(0)), cols = static_cast<Index>(array.shape(1));
  return MatrixView<Scalar>(static_cast<const Scalar*>(array.data()), rows, cols, Eigen::OuterStride<>(cols));
}

template <class Scalar>
HeldBlock<Scalar> borrow(const Matrix<Scalar>& array) {
  const auto rows = static_cast<Index>(array.shape(0)), cols = static_cast<Index>(array.shape(1));
  return HeldBlock<Scalar>(itspace::borrow(array.data(), rows, cols, cols));
}

inline Eigen::VectorXd copy_of(const Vector& array) {
  return Eigen::Map<const Eigen::VectorXd>(array.data(), static_cast<Index>(array.shape(0)));
}

template <class Scalar>
nb::object to_numpy(Block<Scalar> block);
nb::object to_numpy(Eigen::VectorXd values);
template <class Value>
nb::object to_numpy(std::vector<Value> values);

}  // namespace itspace::python
