// SPDX-License-Identifier: Apache-2.0
#include <itspace/space.hpp>

#include "core/stable_length.hpp"
#include "kernels/block_ops.hpp"

#include <cmath>
#include <limits>

namespace itspace {

template <Storage Scalar>
void HostSpace<Scalar>::grams(std::span<const GramRequest<ConstView>> requests) {
  kernels::grams<Scalar>(requests);
}

template <Storage Scalar>
SmallVector HostSpace<Scalar>::column_norms(const ConstView& a) {
  SmallVector norms;
  kernels::column_squares<Scalar>(a, norms);
  // Squares leave double's range before lengths do.
  constexpr double smallest = std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon();
  for (Index j = 0; j < a.cols(); ++j) {
    const bool in_range = norms(j) >= smallest && norms(j) <= std::numeric_limits<double>::max();
    norms(j) = in_range ? std::sqrt(norms(j)) : stable_length(a.col(j).template cast<double>());
  }
  return norms;
}

template <Storage Scalar>
BlendNorms HostSpace<Scalar>::blend_norms(const ConstView& y, const ConstView& b) {
  return kernels::blend_norms<Scalar>(y, b);
}

template <Storage Scalar>
void HostSpace<Scalar>::multiply(const ConstView& a, const Small& m, View out, Write write) {
  kernels::multiply<Scalar>(a, m, out, write);
}

template <Storage Scalar>
void HostSpace<Scalar>::multiply_roughly(const ConstView& a, const Small& m, View out) {
  kernels::multiply_roughly<Scalar>(a, m, out);
}

template <Storage Scalar>
void HostSpace<Scalar>::blend(const ConstView& y, const ConstView& b, double alpha, View out) {
  kernels::blend<Scalar>(y, b, alpha, out);
}

template <Storage Scalar>
void HostSpace<Scalar>::subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, View out) {
  kernels::subtract_scaled<Scalar>(a, b, factors, out);
}

template <Storage Scalar>
void HostSpace<Scalar>::copy(const ConstView& from, View to) {
  kernels::copy<Scalar>(from, to);
}

template <Storage Scalar>
void HostSpace<Scalar>::scale_columns(View block, const SmallVector& factors) {
  kernels::scale_columns<Scalar>(factors, block);
}

template <Storage Scalar>
void HostSpace<Scalar>::poison(View block) {
  if (block.rows() > 0) block.row(0).setConstant(std::numeric_limits<Scalar>::quiet_NaN());
}

template <Storage Scalar>
bool HostSpace<Scalar>::is_poisoned(const ConstView& block) {
  return block.rows() > 1 && !block.row(0).allFinite() && block.bottomRows(block.rows() - 1).allFinite();
}

template class HostSpace<float>;
template class HostSpace<double>;

}  // namespace itspace
