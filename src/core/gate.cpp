// SPDX-License-Identifier: Apache-2.0
#include <itspace/gate.hpp>

#include "require.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace itspace {
namespace {

constexpr double sum_tolerance = 1e-3;

double entropy(const Eigen::ArrayXd& weights) {
  const double total = weights.sum();
  double value = 0;
  for (const double weight : weights)
    if (weight > 0) value -= weight / total * std::log(weight / total);
  return std::max(0.0, value);
}

template <class Counts>
double entropy_of_counts(const Counts& counts) {
  Eigen::ArrayXd weights(static_cast<Index>(counts.size()));
  Index next = 0;
  for (const auto& [label, count] : counts) weights[next++] = static_cast<double>(count);
  return entropy(weights);
}

double log_of_classes(Index classes) {
  return std::log(static_cast<double>(std::max<Index>(classes, 2)));
}

std::optional<double> difference(const std::optional<double>& from, const std::optional<double>& to) {
  if (!from || !to) return std::nullopt;
  return *to - *from;
}

struct Changes {
  double rise;
  std::optional<double> gain, agreement, shared;
};

Changes changes(const Predictions& before, const Predictions& after) {
  return {after.spread - before.spread, difference(before.information, after.information),
          difference(before.agreement, after.agreement), difference(before.shared, after.shared)};
}

// +0.12
std::string signed_share(double value) {
  const double rounded = std::round(100 * value) / 100;
  return text(rounded < 0 ? "" : "+", rounded);
}

std::string limit(double value) {
  return text("limit ", signed_share(value));
}

std::string percent(double share) {
  return text(std::round(100 * share), " %");
}

// What the map does to the predictions, beside the limits that it is held against.
std::string seen_changes(const Changes& change, double least_rise, double least_gain) {
  std::string seen =
      text("with the map the predicted classes spread ", signed_share(change.rise), " (", limit(least_rise), ")");
  if (change.gain)
    seen += text(" and tell ", signed_share(*change.gain), " more about a sample (", limit(least_gain),
                 "; both as shares of log K)");
  return seen;
}

std::string inexplicable_move(double unexplained) {
  return text(percent(unexplained), " of the mean's move is none that other class shares could make (limit ",
              percent(gate::much_move), ")");
}

bool is_clear(const Changes& change) {
  const bool rises = change.rise > gate::clear_rise;
  if (!change.gain) return rises;  // labels alone: the spread is all there is
  return rises && *change.gain > gate::lost_information &&
         (!change.agreement || *change.agreement > gate::lost_agreement) && (!change.shared || *change.shared >= 0);
}

bool opens(const Changes& change, std::optional<double> unexplained, std::string& why) {
  const auto& [rise, gain, agreement, shared] = change;
  std::string seen = seen_changes(change, gate::clear_rise, gate::lost_information);
  bool clear = is_clear(change);
  const bool no_worse = gain && rise >= 0 && *gain >= 0;
  if (!clear && no_worse && shared && *shared > gate::clear_shared) {
    clear = true;
    seen = text(seen_changes(change, 0, 0), "; they tell ", signed_share(*shared),
                " more about what a second classifier says (", limit(gate::clear_shared), ")");
  }
  if (clear) {
    const bool moved = !unexplained || *unexplained > gate::some_move;
    why = moved ? text("adapted: ", seen)
                : text("left alone: ", seen,
                       ", but other class shares alone explain how the mean moved: ", percent(*unexplained),
                       " of the move is left over (limit ", percent(gate::some_move), ")");
    return moved;
  }
  if (unexplained && *unexplained > gate::much_move && no_worse && (!shared || *shared >= 0)) {
    why = text("adapted: ", inexplicable_move(*unexplained), ", and ", seen_changes(change, 0, 0));
    return true;
  }
  const bool rises = gain && rise > gate::clear_rise;
  if (rises && agreement && *agreement <= gate::lost_agreement)
    why = text("left alone: ", seen, ", but a second classifier agrees ", signed_share(*agreement), " less often (",
               limit(gate::lost_agreement), ")");
  else if (rises && shared && *shared < 0)
    why = text("left alone: ", seen, ", but ", signed_share(*shared), " about what a second classifier says (",
               limit(0), ")");
  else
    why = text("left alone: ", seen, ", which is no clear gain");
  return false;
}

bool goes_further(const Changes& change) {
  if (change.rise <= gate::second_rise) return false;
  if (!change.shared) return change.gain && *change.gain > gate::second_information;
  if (!change.gain) return *change.shared > gate::second_shared;
  return *change.gain > gate::second_information_seen && *change.shared > 0;
}

constexpr auto covariance_drift =
    "adapted: the covariance drifted far beyond noise while the mean stayed, which a change of class shares does not "
    "do";

bool is_covariance_drift(const MomentEvidence& seen) {
  return seen.mean_share < gate::still_mean && seen.covariance_kept_scaled > gate::clear_covariance &&
         seen.covariance_kept > gate::more_than_noise && seen.covariance > gate::large_covariance;
}

}  // namespace

Predictions predictions_of(const ConstBlockView<double>& probabilities) {
  const Index samples = probabilities.rows(), classes = probabilities.cols();
  require(samples >= 1 && classes >= 2, "the probabilities are ", samples, " x ", classes,
          "; they need a row per sample and two classes at least");
  Eigen::ArrayXd counts = Eigen::ArrayXd::Zero(classes), mean = Eigen::ArrayXd::Zero(classes);
  double own = 0;
  for (Index i = 0; i < samples; ++i) {
    const Eigen::ArrayXd row = probabilities.row(i).transpose().array();
    const double least = row.minCoeff(), sum = row.sum();
    require(row.allFinite() && least >= 0 && std::abs(sum - 1) <= sum_tolerance, "row ", i,
            " of the probabilities has the least value ", least, " and sums to ", sum,
            "; it needs values from 0 on that sum to 1: apply softmax, or give labels");
    Index likeliest = 0;
    row.maxCoeff(&likeliest);
    counts[likeliest] += 1;
    mean += row;
    own += entropy(row);
  }
  const double log_classes = log_of_classes(classes);
  const double information = entropy(mean) - own / static_cast<double>(samples);
  return {entropy(counts) / log_classes, std::max(0.0, information / log_classes)};
}

Predictions predictions_of_labels(const Eigen::VectorXd& labels, Index classes) {
  std::map<double, Index> seen;
  for (const double label : labels) {
    require(label == std::trunc(label), "a label is ", label, "; it must be a whole number");
    ++seen[label];
  }
  require(!seen.empty(), "there are no labels; give one per sample");
  return {entropy_of_counts(seen) / log_of_classes(std::max(classes, static_cast<Index>(seen.size())))};
}

Eigen::VectorXd labels_of(const ConstBlockView<double>& probabilities) {
  Eigen::VectorXd labels(probabilities.rows());
  for (Index i = 0; i < probabilities.rows(); ++i) {
    Index likeliest = 0;
    probabilities.row(i).maxCoeff(&likeliest);
    labels(i) = static_cast<double>(likeliest);
  }
  return labels;
}

Predictions beside(Predictions numbers, const Eigen::VectorXd& labels, const Eigen::VectorXd& second, Index classes) {
  require(labels.size() == second.size() && labels.size() > 0, "there are ", labels.size(), " labels and ",
          second.size(), " of a second classifier; both must be of the same samples");
  std::map<double, Index> first_counts, second_counts;
  std::map<std::pair<double, double>, Index> joint_counts;
  for (Index i = 0; i < labels.size(); ++i) {
    ++first_counts[labels(i)];
    ++second_counts[second(i)];
    ++joint_counts[{labels(i), second(i)}];
  }
  const double shared =
      entropy_of_counts(first_counts) + entropy_of_counts(second_counts) - entropy_of_counts(joint_counts);
  numbers.agreement =
      static_cast<double>((labels.array() == second.array()).count()) / static_cast<double>(labels.size());
  numbers.shared = std::max(0.0, shared) / log_of_classes(classes);
  return numbers;
}

GateDecision decide(const GateEvidence& evidence) {
  const Changes change = changes(evidence.none, evidence.scale);
  GateDecision decision{"none", "", change.rise, change.gain};
  if (!opens(change, evidence.unexplained, decision.sentence)) return decision;
  decision.choice = "scale";
  if (!evidence.scale_monge) return decision;
  const Changes more = changes(evidence.scale, *evidence.scale_monge);
  if (goes_further(more)) {
    decision.choice = "scale+monge";
    decision.sentence +=
        text("; the low-rank map on top adds ", signed_share(more.rise), " (", limit(gate::second_rise), ")");
    if (more.gain)
      decision.sentence += text(" and ", signed_share(*more.gain), " of mutual information (",
                                limit(more.shared ? gate::second_information_seen : gate::second_information), ")");
  }
  return decision;
}

GateDecision decide(const MomentEvidence& moments) {
  if (is_covariance_drift(moments)) return {"monge", covariance_drift};
  if (moments.unexplained && *moments.unexplained > gate::much_move && moments.mean_kept > 0)
    return {"scale", text("adapted without a classifier to ask: ", inexplicable_move(*moments.unexplained),
                          "; a change of class shares cannot be excluded")};
  return {"none",
          "left alone without a classifier to ask: what moved is within noise, or other class shares alone explain it"};
}

GateDecision decide(const MomentEvidence& moments, GateEvidence evidence) {
  if (is_covariance_drift(moments) && evidence.monge && evidence.monge->spread >= evidence.none.spread)
    return {"monge", text(covariance_drift, ", and with the Monge map the predicted classes are spread no worse"),
            evidence.monge->spread - evidence.none.spread,
            difference(evidence.none.information, evidence.monge->information)};
  evidence.unexplained = moments.unexplained;
  return decide(evidence);
}

}  // namespace itspace
