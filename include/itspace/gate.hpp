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

// Entropies are shares of log K, K the number of classes.
struct Predictions {
  double spread = 0;                       // entropy of the histogram of the predicted classes
  std::optional<double> information = {};  // H(mean p) - mean H(p), which needs probabilities
  // Beside those of a second classifier, where one was asked.
  std::optional<double> agreement = {};  // share of the samples of which both say the same
  std::optional<double> shared = {};     // mutual information of the two labels
};

// Of class probabilities, a sample in each row. @pre at least one row and two columns; finite, none negative, rows that
// sum to 1 within 1e-3.
ITSPACE_API Predictions predictions_of(const ConstBlockView<double>& probabilities);
// Of labels, whatever numbers they are; `classes` is K, at least the number of labels that occur (0: that number).
// @pre at least one label, whole numbers.
ITSPACE_API Predictions predictions_of_labels(const Eigen::VectorXd& labels, Index classes = 0);

// The likeliest class of each row, as a label.
ITSPACE_API Eigen::VectorXd labels_of(const ConstBlockView<double>& probabilities);
// The numbers with those of a second classifier's labels for the same samples; `classes` is K. @pre as many labels.
ITSPACE_API Predictions beside(Predictions numbers, const Eigen::VectorXd& labels, const Eigen::VectorXd& second,
                               Index classes);

namespace gate {
inline constexpr double clear_rise = 0.10;         // of the spread: the classifier had collapsed onto few classes
inline constexpr double lost_information = -0.10;  // lost more than this, and the rise is noise
inline constexpr double second_rise = 0.05;        // the same for the low-rank part on top of the scale
inline constexpr double second_information = 0.10;
// The same where a second classifier was asked too.
inline constexpr double lost_agreement = -0.15;          // they agree on so many samples less, and the rise is noise
inline constexpr double clear_shared = 0.10;             // they share so much more: as good as a clear rise
inline constexpr double second_shared = 0.05;            // the part on top, of labels, which know no information
inline constexpr double second_information_seen = 0.05;  // and of probabilities, if what is shared rises
inline constexpr double some_move = 0.05;  // left over of the mean's move: below it class shares explain it
inline constexpr double much_move = 0.30;  // above it they cannot
// A drift of the covariance alone: a change of class shares would have moved the mean.
inline constexpr double still_mean = 0.05;        // at most this share of the displacement is the mean's
inline constexpr double clear_covariance = 0.70;  // at least this share of the covariance's is beyond noise, scaled
inline constexpr double more_than_noise = 0.50;   // and this as the features are, where rare large values are noise
inline constexpr double large_covariance = 0.30;  // and it is that large, in units of the source's variance
}  // namespace gate

// What the moments of the two domains say. Shares are of squared displacements.
struct MomentEvidence {
  double mean_share = 0;                   // of the mean, in the displacement of the Monge map
  double mean_kept = 0;                    // of the mean's move, what is beyond noise
  double covariance = 0;                   // W2^2 of the covariance part, in units of the source's variance
  double covariance_kept = 0;              // of it, what is beyond noise
  double covariance_kept_scaled = 0;       // the same between the standardised domains
  std::optional<double> unexplained = {};  // of the mean's move, what no other mix of the source's clusters explains
};

// What was predicted for the target's samples as they are, under a map, and under the map that goes further.
struct GateEvidence {
  Predictions none = {}, scale = {};
  std::optional<Predictions> scale_monge = {};
  // The share of the mean's squared move that no mix of the source's own clusters explains, where it is known.
  std::optional<double> unexplained = {};
  std::optional<Predictions> monge = {};  // of use beside the moments
};

struct GateDecision {
  std::string choice;               // "none", "scale", "scale+monge" or "monge"
  std::string sentence;             // why, in words
  double rise = 0;                  // of the spread, by `scale`
  std::optional<double> gain = {};  // of the information
};
ITSPACE_API GateDecision decide(const GateEvidence& evidence);
// Without a classifier to ask: "none", "scale", or "monge" where the covariance drifted alone.
ITSPACE_API GateDecision decide(const MomentEvidence& moments);
// With both: "monge" where the covariance drifted alone and the classes are spread no worse by it; else by the
// predictions, with what the moments leave unexplained.
ITSPACE_API GateDecision decide(const MomentEvidence& moments, GateEvidence evidence);

}  // namespace itspace
