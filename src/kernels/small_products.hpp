// SPDX-License-Identifier: Apache-2.0
//
// Products of r x r matrices at the speed of the machine: where r is large they cost as much as a pass, and Eigen's
// own, compiled for any processor, are serial and several times slower. Large ones go over all threads. Entries are
// summed in one order whatever the sizes and the threads. Blocks of zeros, as triangles have them, are left out.
//
// In single precision there are the products that a polar factor is made of (core/polar.hpp): twice as fast.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

template <Storage Scalar>
using SmallOf = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

// Those that return a matrix have a counterpart that fills one, in the memory that it has.
//
// a b
Small times(const Small& a, const Small& b);
// a b', which is as fast: these read `a` along its columns.
Small times_transposed(const Small& a, const Small& b);
void times_transposed_into(const Small& a, const Small& b, Small& out);
// a'b, from a transposed copy of `a`.
Small transposed_times(const Small& a, const Small& b);

Small transposed(const Small& a);
void transpose_into(const Small& a, Small& out);

// out = a a', symmetric to the last bit, at half the work where a has many rows.
template <Storage Scalar>
void outer_square(const SmallOf<Scalar>& a, SmallOf<Scalar>& out);
// out = a b', which is symmetric but for rounding: made by half, and to the last bit.
void symmetric_times_transposed(const Small& a, const Small& b, Small& out);
// out <- factor a + scale a a + shift I, for a symmetric `a`; symmetric to the last bit.
template <Storage Scalar>
void quadratic(const SmallOf<Scalar>& a, double shift, double factor, double scale, SmallOf<Scalar>& out);
// out = a b; out is neither.
template <Storage Scalar>
void multiply_into(const SmallOf<Scalar>& a, const SmallOf<Scalar>& b, SmallOf<Scalar>& out);

// The largest singular value of a, from below: a few powers of aa' on its longest column.
double estimated_norm(const Small& a);

}  // namespace itspace::kernels
