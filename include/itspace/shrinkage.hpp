// SPDX-License-Identifier: Apache-2.0
//
// How far to shrink a sample covariance toward the multiple of the identity of its trace, by the samples themselves:
// (1 - rho) Sigma + rho (tr Sigma/d) I. With few samples for their dimension the large eigenvalues of a sample
// covariance are too large and the small ones too small; rho is what undoes most of it. ModelOptions::shrinkage takes
// it.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

namespace itspace {

// Ledoit and Wolf (2004), for any distribution with fourth moments: one sweep for sum_i ||z_i - mu||^4, and the squared
// sizes of the entries of the covariance through the smaller of n and d. The same number as scikit-learn's
// ledoit_wolf_shrinkage. @pre at least 2 rows, finite.
template <Storage Scalar>
ITSPACE_API double ledoit_wolf_shrinkage(const ConstBlockView<Scalar>& features);

// The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), for normal samples: the trace and
// ||Sigma||_F are all it needs, so that any target will do, whose n samples are behind it. One sweep with d columns, 64
// at a time; through the factor where it has one of fewer columns. The same number as scikit-learn's OAS. @pre samples
// >= 1.
template <Storage Scalar>
ITSPACE_API double oas_shrinkage(const TargetArgument<Scalar>& target, double samples);

}  // namespace itspace
