// SPDX-License-Identifier: Apache-2.0
#include <itspace/targets.hpp>

#include "core/require.hpp"

#include <cmath>

namespace itspace {

template <Storage Scalar>
ShiftedTarget<Scalar>::ShiftedTarget(TargetRef<Scalar> base, double delta) : base_(base), delta_(delta) {
  require(delta >= 0 && std::isfinite(delta), "the shift is ", delta, "; it must be 0 or more and finite");
}

template <Storage Scalar>
void ShiftedTarget<Scalar>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  base_.apply(y, out);
  out += static_cast<Scalar>(delta_) * y;
}

template class ShiftedTarget<float>;
template class ShiftedTarget<double>;

}  // namespace itspace
