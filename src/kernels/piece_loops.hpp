// SPDX-License-Identifier: Apache-2.0
//
// What one thread does with a few rows that it has just read, while they are in its cache, in loops that are compiled
// for each instruction set. Sums are taken in order, column by column: their bits do not depend on the instruction set.
#pragma once

#include <itspace/block.hpp>

namespace itspace::kernels {

// Rows lie one after the other, `cols` values each.
template <Storage Data>
struct PieceLoops {
  // sums(j) += sum_i (x(i, j) - pivot(j)): about a row, so that no large mean takes the digits. Each difference is
  // added in double, or else eight of them in Data and then these in double, which rounds as Data does.
  void (*add)(const Data* rows, Index count, Index cols, const Data* pivot, bool in_double, double* sums);
  // squares(j) += sum_i (x(i, j) - pivot(j) - offset(j))^2, in double.
  void (*add_squares)(const Data* rows, Index count, Index cols, const Data* pivot, const double* offset,
                      double* squares);
  // x(i, j) = (x(i, j) - pivot(j)) - offset(j).
  void (*centre)(Data* rows, Index count, Index cols, const Data* pivot, const Data* offset);
  // to += factor from, and from = 0.
  void (*move)(Data* from, double factor, Index count, double* to);
};

// For the instruction set of this machine.
template <Storage Data>
const PieceLoops<Data>& piece_loops();

}  // namespace itspace::kernels
