// SPDX-License-Identifier: Apache-2.0
//
// What every dense method does around its own step: check its input, report the start, truncate, report.
#pragma once

#include "baselines/dense_algebra.hpp"
#include "baselines/dense_methods.hpp"
#include "baselines/timed_log.hpp"

namespace itspace::baselines {

// Throws std::invalid_argument for a start that does not fit the target, a rank or a number of steps out of range.
void check_dense_input(const SpectralTarget& target, const ConstBlockView<double>& start, const DenseOptions& options);

// Row 0. False where the caller asked to stop at once.
bool report_start(TimedLog& log, const Small& start, Index rank);

// Row k: the rank-r truncation of x, on the projection's clock.
bool report_truncation(TimedLog& log, const Small& x, Index rank, double step_size = not_a_number);

// The optimal map from x to the target, T = S (S x S)^(-1/2) S with S = Sigma^(1/2), from the eigendecomposition of
// S x S. Both must be positive definite; eigenvalues below rounding, d eps lambda_max, are lifted to it, for they are
// noise there.
Small optimal_map(const SpectralTarget& target, const SymmetricEigen& sandwich);

}  // namespace itspace::baselines
