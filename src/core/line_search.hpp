// SPDX-License-Identifier: Apache-2.0
//
// The best point on the line through Y and B, from r x r data: with Y(t) = (1 - t) Y + t B,
//
//     F(Y(t)) = ||Y(t)||^2 + tr Sigma - 2 tr(G(t)^(1/2)),
//     G(t) = (1 - t)^2 Y'Sigma Y + t (1 - t)(Y'Sigma B + B'Sigma Y) + t^2 B'Sigma B.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

namespace itspace {

// All in units where Sigma and Y have order one (`unit` is what a nuclear norm in those units is worth, relative to
// squared lengths of Y), so that no scale of the problem overflows.
struct Segment {
  Small yy, yb, bb;  // Y'Sigma Y, Y'Sigma B + its transpose, B'Sigma B
  double y_squared = 0, y_dot_b = 0, b_squared = 0;
  double unit = 1;
  double noise = 0;  // differences of F up to this are rounding
};

// The minimiser of F over t in (0, 2), where every step descends by the majorizer; up to 8 where the data show more
// than rounding beyond. Where t = 1 is as good up to rounding, it is 1.
ITSPACE_API double best_step(const Segment& segment);

}  // namespace itspace
