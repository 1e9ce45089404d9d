// SPDX-License-Identifier: Apache-2.0
//
// The classes that a balanced stream comes in: which there are, and what each sample weighs in each of them.
#pragma once

#include <itspace/online_target.hpp>

#include <Eigen/Core>
#include <vector>

namespace itspace {

// @throws std::invalid_argument unless there is a share above 0 for each class.
void check_balance(const ClassBalance& balance);

// @throws std::invalid_argument unless the classes are those of the source, one for each row; none where the stream
// knows none.
void check_predicted(const std::optional<ClassBalance>& balance, const Predicted& predicted, Index rows);

// What each sample weighs in each class, a vector for a class; the weights themselves (empty: all 1) without classes.
std::vector<Eigen::VectorXd> weights_by_class(const std::optional<ClassBalance>& balance, const Predicted& predicted,
                                              Index rows, const Eigen::VectorXd& weights);

}  // namespace itspace
