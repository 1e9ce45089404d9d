// SPDX-License-Identifier: Apache-2.0
//
// Between the public views and what kernels take, and the sums that several callers need.
#pragma once

#include <itspace/cuda/align.hpp>
#include <itspace/cuda/space.hpp>

#include "cuda/device_state.hpp"
#include "cuda/kernels.hpp"

namespace itspace::cuda {

template <Storage Scalar>
kernels::In<Scalar> in(const ConstView<Scalar>& view) {
  return {view.data, view.rows, view.width, view.stride};
}
template <Storage Scalar>
kernels::In<Scalar> in(const View<Scalar>& view) {
  return {view.data, view.rows, view.width, view.stride};
}
template <Storage Scalar>
kernels::Out<Scalar> out(const View<Scalar>& view) {
  return {view.data, view.rows, view.width, view.stride};
}

template <Storage Scalar>
kernels::FeaturesTerms<Scalar> terms(const CentredRows<Scalar>& features) {
  return {features.rows.rows, features.shift,  features.scale, features.weights,
          features.delta,     features.factor, features.total};
}

// Sums of columns into `sums` (x.cols() of them), on the device or in pinned memory. Nothing is waited for.
// @pre the device is current.
template <Storage Scalar>
void launch_column_sums(DeviceState& state, kernels::ColumnSum what, const ConstView<Scalar>& x,
                        const kernels::ColumnTerms<Scalar>& terms, double* sums) {
  const Index parts = kernels::column_parts(x.rows, x.cols());
  double* partials = state.scratch<double>(Scratch::partials, parts * x.cols());
  kernels::column_partials<Scalar>(state.stream(), what, in(x), terms, partials);
  const kernels::PartsList list{{{partials, parts, x.cols(), sums}}, 1};
  kernels::add_parts(state.stream(), list,
                     what == kernels::ColumnSum::largest ? kernels::Combine::largest : kernels::Combine::sum);
}

// The same, waited for.
template <Storage Scalar>
SmallVector column_sums(DeviceState& state, kernels::ColumnSum what, const ConstView<Scalar>& x,
                        const kernels::ColumnTerms<Scalar>& terms = {}) {
  if (x.cols() == 0) return {};
  double* sums = state.results(x.cols());
  launch_column_sums<Scalar>(state, what, x, terms, sums);
  state.synchronize();
  return Eigen::Map<const SmallVector>(sums, x.cols());
}

// Where values are not finite: in the first row, in another one. Waited for.
struct NotFinite {
  bool in_first_row = false, in_others = false;
};
template <Storage Scalar>
NotFinite find_not_finite(DeviceState& state, const ConstView<Scalar>& block) {
  int* flags = state.scratch<int>(Scratch::flags, 2);
  int* found = reinterpret_cast<int*>(state.results(1));  // two ints in one double
  check(cudaMemsetAsync(flags, 0, 2 * sizeof(int), state.stream()), "clearing flags");
  kernels::find_not_finite<Scalar>(state.stream(), in(block), flags);
  check(cudaMemcpyAsync(found, flags, 2 * sizeof(int), cudaMemcpyDeviceToHost, state.stream()), "reading flags");
  state.synchronize();
  return {found[0] != 0, found[1] != 0};
}

}  // namespace itspace::cuda
