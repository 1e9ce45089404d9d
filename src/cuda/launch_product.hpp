// SPDX-License-Identifier: Apache-2.0
//
// Products of tall blocks with the data of targets and of maps, and the memory that they need on the way.
#pragma once

#include "cuda/views.hpp"

#include <Eigen/Core>
#include <memory>

namespace itspace::cuda {

enum class Op { plain, transposed };

struct RowFactors {
  const double* each = nullptr;
  double all = 1;
};

// c = diag(factors) op(a - 1 s') b, or c += that. What a faster kernel for some shape replaces.
template <Storage Scalar>
void launch_product(DeviceState& state, Op op, const ConstView<Scalar>& a, const Scalar* shift,
                    const ConstView<Scalar>& b, const View<Scalar>& c, const RowFactors& factors = {},
                    bool add = false) {
  const bool transposed = op == Op::transposed;
  const Index m = transposed ? a.cols() : a.rows, k = transposed ? a.rows : a.cols();
  Scalar* scratch = nullptr;
  if (const Index count = kernels::product_scratch(m, k, b.cols()); count > 0)
    scratch = state.scratch<Scalar>(Scratch::product, count);
  kernels::product<Scalar>(state.stream(),
                           {a.data, a.stride, transposed, shift, m, k, in(b), out(c), factors.each, factors.all, add},
                           scratch);
}

template <Storage Scalar>
View<Scalar> scratch_block(DeviceState& state, Scratch purpose, Index rows, Index cols) {
  return {state.scratch<Scalar>(purpose, rows * cols), rows, cols, cols};
}

// A vector of the host's, to stay on the device.
inline std::shared_ptr<const Block<double>> held(const Device& device, const Eigen::VectorXd& values) {
  if (values.size() == 0) return std::make_shared<const Block<double>>();
  return std::make_shared<const Block<double>>(to_device<double>(device, values));
}

}  // namespace itspace::cuda
