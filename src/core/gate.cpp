// SPDX-License-Identifier: Apache-2.0
#include <itspace/gate.hpp>

#include "require.hpp"

#include <algorithm>
#include <cmath>
#include <map>

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

double log_of_classes(Index classes) {
  return std::log(static_cast<double>(std::max<Index>(classes, 2)));
}

std::optional<double> difference(const Predictions& from, const Predictions& to) {
  if (!from.information || !to.information) return std::nullopt;
  return *to.information - *from.information;
}

// +0.12
std::string signed_share(double value) {
  const double rounded = std::round(100 * value) / 100;
  return text(rounded < 0 ? "" : "+", rounded);
}

bool opens(double rise, std::optional<double> gain, std::optional<double> unexplained, std::string& why) {
  std::string seen = text("with the map the predicted classes spread ", signed_share(rise));
  if (gain) seen += text(" and tell ", signed_share(*gain), " more about a sample (both as shares of log K)");
  if (rise > gate::clear_rise && (!gain || *gain > gate::lost_information)) {
    const bool moved = !unexplained || *unexplained > gate::some_move;
    why = moved ? text("adapted: ", seen)
                : text("left alone: ", seen, ", but other class shares alone explain how the mean moved");
    return moved;
  }
  if (unexplained && *unexplained > gate::much_move && rise >= 0 && gain && *gain >= 0) {
    why = text("adapted: ", std::round(100 * *unexplained),
               " % of the mean's move is none that other class shares could make, and ", seen);
    return true;
  }
  why = text("left alone: ", seen, ", which is no clear gain");
  return false;
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
  Eigen::ArrayXd counts(static_cast<Index>(seen.size()));
  Index next = 0;
  for (const auto& [label, count] : seen) counts[next++] = static_cast<double>(count);
  return {entropy(counts) / log_of_classes(std::max<Index>(classes, counts.size())), std::nullopt};
}

GateDecision decide(const GateEvidence& evidence) {
  GateDecision decision{"none", "", evidence.scale.spread - evidence.none.spread,
                        difference(evidence.none, evidence.scale)};
  if (!opens(decision.rise, decision.gain, evidence.unexplained, decision.sentence)) return decision;
  decision.choice = "scale";
  if (!evidence.scale_monge) return decision;
  const double rise = evidence.scale_monge->spread - evidence.scale.spread;
  const auto gain = difference(evidence.scale, *evidence.scale_monge);
  if (rise > gate::second_rise && gain && *gain > gate::second_information) {
    decision.choice = "scale+monge";
    decision.sentence += "; the low-rank map on top adds " + signed_share(rise) + " and " + signed_share(*gain) +
                         " of mutual information";
  }
  return decision;
}

}  // namespace itspace
