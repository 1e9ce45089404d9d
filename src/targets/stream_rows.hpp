// SPDX-License-Identifier: Apache-2.0
//
// What a stream does to the rows of its batches: centring them as they come, and keeping the leading part of them when
// they grow old. Each is a few sweeps over all threads; the bits depend on neither their number nor the instruction set
// more than a product does.
#pragma once

#include <itspace/block.hpp>
#include <itspace/random.hpp>

#include <Eigen/Core>
#include <span>

namespace itspace {

// Rows about their weighted mean, each times the root of its share; rows of share 0 are left out. `squares` are the
// sums of squares of its columns.
template <Storage Scalar>
struct CentredRows {
  Block<Scalar> rows;
  Eigen::VectorXd mean, squares;
};
// shares: empty (all 1), or one for each row. @pre one of them is above 0.
template <Storage Scalar>
CentredRows<Scalar> centred_about_mean(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& shares);

// Rows that count `factor` times as long.
template <Storage Scalar>
struct ScaledRows {
  ConstBlockView<Scalar> rows;
  double factor = 1;
};

// A factor R of at most `kept` rows with R'R nearly that of all the given rows and, up to rounding, R'R <= rows'rows,
// by Nystroem's formula in the space of the rows: for V with orthonormal columns R = V'rows splits rows'rows into R'R
// and what V leaves, without a cross term.
//
// V = orth(rows Q'), where Q are the first rows, which led before (`known` of them, the leading ones first), the last
// of them with the others added, each to one and with a random sign: what is new is found wherever it lies. That is one
// step of simultaneous iteration for each batch; the QR of V, in order, sorts the directions by what they weigh.
// `size` is the root of the sum of all squares: products of what is divided by it do not overflow.
template <Storage Scalar>
Block<Scalar> leading_rows(std::span<const ScaledRows<Scalar>> pieces, Index known, Index kept, double size,
                           const Random& random);

// The pieces below each other.
template <Storage Scalar>
Block<Scalar> stacked(std::span<const ScaledRows<Scalar>> pieces);

}  // namespace itspace
