// SPDX-License-Identifier: Apache-2.0
#include <itspace/follow_gate.hpp>

#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

namespace itspace {
namespace {

std::size_t place_of(const std::vector<MapKind>& maps, MapKind kind) {
  return static_cast<std::size_t>(std::find(maps.begin(), maps.end(), kind) - maps.begin());
}

std::string side_name(const std::vector<MapKind>& maps, std::size_t side) {
  return side == 0 ? "as they are" : text("under the map '", name(maps[side - 1]), "'");
}

bool is_whole(double value) {
  return std::isfinite(value) && value == std::trunc(value);
}

void check_options(const FollowGateOptions& options) {
  const auto& maps = options.maps;
  require(!maps.empty(), "the gate has no map to decide about; give it one, or scale and monge");
  require(maps.size() == 1 || place_of(maps, MapKind::scale) < maps.size(), "the gate has ", maps.size(),
          " maps and scale is none of them; give it one map, or scale and others beside it");
  require(std::set<MapKind>(maps.begin(), maps.end()).size() == maps.size(),
          "the gate has a map twice; name each once");
  require(
      place_of(maps, MapKind::scale_monge) == maps.size(),
      "the gate has the map scale+monge, and a stream has no standardised model; give mean, scale, monge or whiten");
  require(options.samples >= 1, "the gate is to decide by ", options.samples, " samples; it needs at least 1");
  require(options.patience >= 1, "patience is ", options.patience, "; it must be at least 1 batch");
  const auto& classes = options.classes;
  for (const double label : classes) require(is_whole(label), "a class is ", label, "; it must be a whole number");
  require(std::set<double>(classes.begin(), classes.end()).size() == classes.size(),
          "the gate has a class twice; name each once");
}

void check_labels(const Block<double>& labels, const std::vector<double>& classes, const std::string& side) {
  for (Index i = 0; i < labels.rows(); ++i) {
    const double label = labels(i, 0);
    require(is_whole(label), "row ", i, " of the labels ", side, " is ", label,
            "; it must be a whole number: give classes as numbers, or a row of class probabilities");
    if (classes.empty() || std::find(classes.begin(), classes.end(), label) != classes.end()) continue;
    std::string known;
    for (const double each : classes) known += text(known.empty() ? "" : ", ", each);
    require(false, "row ", i, " of the labels ", side, " is of class ", label,
            ", which the source does not have: its classes are ", known, "; leave such samples out");
  }
}

// The columns of one side of answers that lie side by side.
Block<double> side_of(const Block<double>& answers, Index side, Index width) {
  return answers.middleCols(side * width, width);
}

Index distinct_labels(const std::vector<Block<double>>& sides) {
  std::set<double> seen;
  for (const Block<double>& labels : sides) seen.insert(labels.data(), labels.data() + labels.size());
  return static_cast<Index>(seen.size());
}

GateDecision decide_among(const std::vector<MapKind>& maps, const std::vector<Predictions>& seen,
                          const MomentEvidence& moments) {
  const std::size_t scale = place_of(maps, MapKind::scale), monge = place_of(maps, MapKind::monge);
  GateEvidence evidence;
  evidence.none = seen.front();
  evidence.scale = seen[scale < maps.size() ? scale + 1 : 1];
  if (monge < maps.size()) evidence.monge = seen[monge + 1];
  GateDecision decision = decide(moments, evidence);
  // The rule speaks of the scale; of one map alone it says as much.
  if (scale == maps.size() && decision.choice == "scale") decision.choice = name(maps.front());
  return decision;
}

}  // namespace

FollowGate::FollowGate(const FollowGateOptions& options) : parts_{.options = options} {
  check_options(options);
}

FollowGate::FollowGate(Parts parts) : parts_(std::move(parts)) {
  check_options(parts_.options);
  const auto sides = static_cast<Index>(parts_.options.maps.size() + 1);
  const Block<double>& answers = parts_.answers;
  const Index rows = std::accumulate(parts_.counts.begin(), parts_.counts.end(), Index{0});
  require(rows == answers.rows() && answers.cols() % sides == 0, "the gate has answers of ", answers.rows(), " x ",
          answers.cols(), " for ", rows, " samples and ", sides - 1, " maps; they must agree");
  require(std::all_of(parts_.counts.begin(), parts_.counts.end(), [](Index count) { return count > 0; }),
          "the gate has a batch of no answers");
  require(parts_.times >= 0 && parts_.times <= parts_.options.patience, "the gate counts ", parts_.times,
          " decisions in a row; they can be no more than its patience, ", parts_.options.patience);
  for (const std::string* named : {&parts_.choice, &parts_.proposed}) {
    const auto kind = map_kind_named(*named);
    require(*named == "none" || (kind && place_of(parts_.options.maps, *kind) < parts_.options.maps.size()),
            "the gate has the choice '", *named, "', which is none of its maps");
  }
  if (rows == 0) return;
  const std::vector<Index> counts = std::exchange(parts_.counts, {});  // by themselves: nothing before them to fit
  const Index width = answers.cols() / sides;
  GateAnswers all{side_of(answers, 0, width), {}};
  for (Index side = 1; side < sides; ++side) all.after.push_back(side_of(answers, side, width));
  check(all);
  parts_.counts = counts;
}

void FollowGate::check(const GateAnswers& batch) const {
  const auto& [maps, samples, patience, classes] = parts_.options;
  const Index rows = batch.before.rows(), width = batch.before.cols();
  require(batch.after.size() == maps.size(), "there are answers under ", batch.after.size(), " maps, and the gate has ",
          maps.size(), "; give those under each, in their order");
  for (std::size_t side = 1; side <= maps.size(); ++side) {
    const Block<double>& after = batch.after[side - 1];
    require(after.rows() == rows && after.cols() == width, "the answers are ", rows, " x ", width,
            " for the samples as they are and ", after.rows(), " x ", after.cols(), " ", side_name(maps, side),
            "; they must be of the same samples and classes");
  }
  if (rows == 0) return;
  require(width >= 1, "the answers have no columns; give labels, or a row of class probabilities for each sample");
  if (!parts_.counts.empty()) {
    const Index before = parts_.answers.cols() / static_cast<Index>(maps.size() + 1);
    require(width == before, "the answers have ", width, " columns and those before had ", before,
            " (1: labels, more: class probabilities); they must stay the same along a stream");
  }
  const auto known = static_cast<Index>(classes.size());
  require(known == 0 || width == 1 || width == known, "the answers have ", width,
          " columns of probabilities and the source has ", known, " classes; give a column for each");
  for (std::size_t side = 0; side <= maps.size(); ++side) {
    const Block<double>& answers = side == 0 ? batch.before : batch.after[side - 1];
    if (width == 1) {
      check_labels(answers, classes, side_name(maps, side));
      continue;
    }
    try {
      predictions_of(answers);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(text("of the samples ", side_name(maps, side), ": ", error.what()));
    }
  }
}

FollowVerdict FollowGate::observe(const GateAnswers& batch, const MomentEvidence& moments) {
  check(batch);
  FollowVerdict verdict;
  verdict.choice = parts_.choice;
  if (batch.before.rows() == 0) return verdict;
  const Index width = batch.before.cols(), most = parts_.options.samples;
  const auto sides = static_cast<Index>(parts_.options.maps.size() + 1);
  const Index added = std::min(batch.before.rows(), most);
  // Of the oldest batches as many are dropped as leave enough without them.
  std::size_t dropped = 0;
  Index kept = parts_.answers.rows();
  while (dropped < parts_.counts.size() && added + kept - parts_.counts[dropped] >= most)
    kept -= parts_.counts[dropped++];
  Block<double> answers(kept + added, sides * width);
  if (kept > 0) answers.topRows(kept) = parts_.answers.bottomRows(kept);
  std::vector<Block<double>> all;
  for (Index side = 0; side < sides; ++side) {
    const Block<double>& given = side == 0 ? batch.before : batch.after[static_cast<std::size_t>(side - 1)];
    answers.block(kept, side * width, added, width) = given.bottomRows(added);
    all.push_back(side_of(answers, side, width));
  }
  verdict = decide_by(all, moments, static_cast<Index>(parts_.options.classes.size()));
  parts_.answers = std::move(answers);
  parts_.counts.erase(parts_.counts.begin(), parts_.counts.begin() + static_cast<std::ptrdiff_t>(dropped));
  parts_.counts.push_back(added);
  return verdict;
}

FollowVerdict FollowGate::judge(const GateAnswers& all, const MomentEvidence& moments, Index classes) {
  check(all);
  require(all.before.rows() > 0, "there are no answers to decide by; give those for one sample at least");
  std::vector<Block<double>> sides{all.before};
  sides.insert(sides.end(), all.after.begin(), all.after.end());
  return decide_by(sides, moments, std::max(classes, static_cast<Index>(parts_.options.classes.size())));
}

FollowVerdict FollowGate::decide_by(const std::vector<Block<double>>& answers, const MomentEvidence& moments,
                                    Index classes) {
  FollowVerdict verdict;
  verdict.samples = answers.front().rows();
  verdict.are_labels = answers.front().cols() == 1;
  // Classes that only some map makes appear count for all of them.
  const Index known = verdict.are_labels ? std::max(classes, distinct_labels(answers)) : 0;
  for (const Block<double>& side : answers)
    verdict.predictions.push_back(verdict.are_labels ? predictions_of_labels(side.col(0), known)
                                                     : predictions_of(side));
  verdict.decision = decide_among(parts_.options.maps, verdict.predictions, moments);
  parts_.times = verdict.decision.choice == parts_.proposed ? std::min(parts_.times + 1, parts_.options.patience) : 1;
  parts_.proposed = verdict.decision.choice;
  if (parts_.times >= parts_.options.patience) parts_.choice = parts_.proposed;
  verdict.choice = parts_.choice;
  if (verdict.choice != verdict.decision.choice)
    verdict.decision.sentence += text("; so far ", parts_.times, " of the ", parts_.options.patience,
                                      " batches in a row that it takes to change from '", verdict.choice, "'");
  return verdict;
}

}  // namespace itspace
