// SPDX-License-Identifier: Apache-2.0
//
// Whether to apply a map, by what a frozen classifier says of the target's samples before and after it. No label is
// used. The rule, its constants and what it is worth: docs/should-i-adapt.md.
//
//     const Predictions before = predictions_of(probabilities), after = predictions_of(probabilities_of_mapped);
//     const GateDecision decision = decide({.none = before, .scale = after});   // "scale", or "none" and why
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <optional>
#include <string>

namespace itspace {

// Shares of log K, K the number of classes.
struct Predictions {
  double spread = 0;                  // entropy of the histogram of the predicted classes
  std::optional<double> information;  // H(mean p) - mean H(p), which needs probabilities
};

// Of class probabilities, a sample in each row. @pre at least one row and two columns; finite, none negative, rows that
// sum to 1 within 1e-3.
ITSPACE_API Predictions predictions_of(const ConstBlockView<double>& probabilities);
// Of labels, whatever numbers they are; `classes` is K, at least the number of labels that occur (0: that number).
// @pre at least one label, whole numbers.
ITSPACE_API Predictions predictions_of_labels(const Eigen::VectorXd& labels, Index classes = 0);

namespace gate {
inline constexpr double clear_rise = 0.10;         // of the spread: the classifier had collapsed onto few classes
inline constexpr double lost_information = -0.10;  // lost more than this, and the rise is noise
inline constexpr double second_rise = 0.05;        // the same for the low-rank part on top of the scale
inline constexpr double second_information = 0.10;
inline constexpr double some_move = 0.05;  // left over of the mean's move: below it class shares explain it
inline constexpr double much_move = 0.30;  // above it they cannot
}  // namespace gate

// What was predicted for the target's samples as they are, under a map, and under the map that goes further.
struct GateEvidence {
  Predictions none = {}, scale = {};
  std::optional<Predictions> scale_monge = {};
  // The share of the mean's squared move that no mix of the source's own clusters explains, where it is known.
  std::optional<double> unexplained = {};
};

struct GateDecision {
  std::string choice;               // "none", "scale" or "scale+monge"
  std::string sentence;             // why, in words
  double rise = 0;                  // of the spread, by `scale`
  std::optional<double> gain = {};  // of the information
};
ITSPACE_API GateDecision decide(const GateEvidence& evidence);

}  // namespace itspace
