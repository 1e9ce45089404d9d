// SPDX-License-Identifier: Apache-2.0
//
// What r x r data show of a target that is no covariance, at no extra pass.
#pragma once

#include "core/product.hpp"

#include <string>

namespace itspace {

// The reason why no symmetric positive semidefinite Sigma with trace `target_trace` has these products; empty where
// nothing speaks against it. What a covariance may show through rounding of its entries to float32, or through products
// that vanish in the type of the blocks, is no objection. `definite`: Y'Sigma Y is known to have a Cholesky factor.
ITSPACE_API std::string objection_to(const ProductData& data, double target_trace, Index dim,
                                     const StorageRounding& storage, bool definite = false);

}  // namespace itspace
