// SPDX-License-Identifier: Apache-2.0
//
// Products of r x r matrices at the speed of the machine: where r is large they cost as much as a pass, and Eigen's
// own, compiled for any processor, are serial and several times slower. Large ones go over all threads. Entries are
// summed in one order whatever the sizes and the threads.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// a b
Small times(const Small& a, const Small& b);
// a b', which is as fast: these read `a` along its columns.
Small times_transposed(const Small& a, const Small& b);
// a'b, from a transposed copy of `a`.
Small transposed_times(const Small& a, const Small& b);

Small transposed(const Small& a);

// out = a a', symmetric to the last bit, at half the work where a has many rows.
void outer_square(const Small& a, Small& out);
// out <- factor a + scale a a + shift I, for a symmetric `a`; symmetric to the last bit.
void quadratic(const Small& a, double shift, double factor, double scale, Small& out);
// out = a b; out is neither.
void multiply_into(const Small& a, const Small& b, Small& out);

// The largest singular value of a, from below: a few powers of aa' on its longest column.
double estimated_norm(const Small& a);

}  // namespace itspace::kernels
