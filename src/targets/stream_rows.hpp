// SPDX-License-Identifier: Apache-2.0
//
// What a stream does to the rows of its batches: centring them as they come, and keeping the leading part of them when
// they grow old. Each is a few sweeps over all threads.
#pragma once

#include <itspace/block.hpp>
#include <itspace/random.hpp>

#include "kernels/stacked_rows.hpp"

#include <Eigen/Core>
#include <span>

namespace itspace {

// work(begin, end) for runs of columns of so many rows, over all threads: each thread has the same columns to itself in
// every sweep over the same stream.
template <class Work>
void for_columns(Index rows, Index cols, const Work& work) {
  // In multiply-adds; a column has more than its values, and they are to be found in the cache of the same thread.
  const double of_a_column = 500 + 8 * static_cast<double>(rows);
  const Index most = (cols + kernels::fewest_columns_of_a_part - 1) / kernels::fewest_columns_of_a_part;
  const Index parts = std::min(kernels::parts_for(of_a_column * static_cast<double>(cols)), most);
  kernels::run_parts(parts, [&](Index part) {
    const kernels::Range columns = kernels::columns_of_part(cols, parts, part);
    work(columns.begin, columns.end);
  });
}

// Rows about their weighted mean, each times the root of its share; rows of share 0 are left out. `squares` are the
// sums of squares of its columns.
template <Storage Scalar>
struct CentredRows {
  Block<Scalar> rows;
  Vector mean, squares;
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
// `size` is the root of the sum of all squares: products of what is divided by it do not overflow. `most` are the sums
// of squares of all columns, and those of R are kept within them.
template <Storage Scalar>
Block<Scalar> leading_rows(std::span<const ScaledRows<Scalar>> pieces, Index known, Index kept, double size,
                           const Eigen::VectorXd& most, const Random& random);

// Rounding may have given a column more squares than it has; it is scaled back, which keeps rows'rows positive
// semidefinite and the variances exact, however often it happens.
template <Storage Scalar>
void keep_within(const Eigen::VectorXd& most, Block<Scalar>& rows);

// One part of a stream: samples about a mean of their own. `rows`, where given, are all that is left of old ones, and
// what they lack of the variances is a diagonal.
template <Storage Scalar>
struct PartOfStream {
  const double *mean, *variances;
  const Block<Scalar>* rows;
  double weight, discount;
};
// What the parts are together, a value for each feature: the mean; those of the parts about it, a row for each; the
// variances; and what is left of them on the diagonal, where there are old parts.
template <Storage Scalar>
struct WholeStream {
  double* mean;
  BlockView<Scalar> means;
  double *variances, *diagonal;
};
// `weight`: of all parts. `unit`: what the weights and discounts are multiplied by.
template <Storage Scalar>
void gather_parts(std::span<const PartOfStream<Scalar>> parts, double weight, double unit, WholeStream<Scalar> whole);

// The pieces below each other.
template <Storage Scalar>
Block<Scalar> stacked(std::span<const ScaledRows<Scalar>> pieces);

}  // namespace itspace
