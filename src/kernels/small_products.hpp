// SPDX-License-Identifier: Apache-2.0
//
// Products of r x r matrices at the speed of the machine: where r is large they cost as much as a pass, and Eigen's
// own, compiled for any processor, are serial and several times slower than the loops over strips.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// a b
Small times(const Small& a, const Small& b);
// a'b
Small transposed_times(const Small& a, const Small& b);

}  // namespace itspace::kernels
