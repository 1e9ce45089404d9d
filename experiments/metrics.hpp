// SPDX-License-Identifier: Apache-2.0
//
// What a prediction is worth, in percent.
#pragma once

#include <itspace/block.hpp>

#include <vector>

namespace itspace::experiments {

// The share of predictions that are right. @pre as many predictions as labels, at least one.
double accuracy(const std::vector<int>& predicted, const std::vector<int>& labels);

// The area under the ROC curve: how often a sample of the positive class scores higher than one of the other, a tie
// counting one half. @pre one score per sample; throws std::invalid_argument where a class has no sample, or a score is
// NaN, since no area exists then.
double auroc(const SmallVector& scores, const std::vector<bool>& is_positive);

}  // namespace itspace::experiments
