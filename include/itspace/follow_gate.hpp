// SPDX-License-Identifier: Apache-2.0
//
// FollowGate: whether the map from a followed stream to its source is applied, decided anew with each batch by what a
// frozen classifier says of the last samples as they are and under the map. No label is used. While it is closed
// samples are left alone. docs/online.md says what it is worth.
//
//     FollowGate gate({.maps = {MapKind::scale}});
//     aligner.observe(batch);
//     const FollowedShift shift = followed_shift(source, aligner.model());
//     gate.observe({.before = probabilities, .after = {probabilities_of_mapped}}, shift.moments);
//     if (gate.is_open()) aligner.map(source, MapKind::scale, shift.kept(MapKind::scale)).apply<float>(batch);
//
// The rule is decide() of gate.hpp. What is added is a memory: the answers for the last samples, since a histogram of
// classes cannot be read off one small batch, and how often in a row the rule has said otherwise.
#pragma once

#include <itspace/export.hpp>
#include <itspace/gate.hpp>
#include <itspace/transport_map.hpp>

#include <Eigen/Core>
#include <string>
#include <vector>

namespace itspace {

struct FollowGateOptions {
  // One map, or scale and others beside it, of which the rule knows monge.
  std::vector<MapKind> maps = {MapKind::scale};
  Index samples = 512;  // it decides by the last so many, of however many batches
  Index patience = 1;   // so many batches in a row must speak for another choice before it is made
  // The labels that the source has, in the order of columns of probabilities; empty: not known, any label is one.
  std::vector<double> classes = {};
};

// What a classifier says of the samples of a batch: labels (n x 1) or class probabilities (n x K).
struct GateAnswers {
  Block<double> before;              // of the samples as they are
  std::vector<Block<double>> after;  // under each of the maps, in their order
};

// What came of the answers for one batch.
struct FollowVerdict {
  std::string choice = "none";  // what is applied from here on: the name of a map, or "none"
  GateDecision decision = {};   // what the last samples speak for, which patience may hold back
  Index samples = 0;            // those it was decided by
  bool are_labels = false;
  std::vector<Predictions> predictions = {};  // of the samples as they are, then under each map
};

class ITSPACE_API FollowGate {
 public:
  // For files.
  struct Parts {
    FollowGateOptions options = {};
    Block<double> answers = {};      // for the last samples, oldest first: before, then under each map, side by side
    std::vector<Index> counts = {};  // its rows, batch by batch
    std::string choice = "none";     // what is applied
    std::string proposed = "none";   // what the last decisions in a row said
    Index times = 0;                 // how many of them, up to the patience
  };

  // @pre one map, or several with scale among them; never scale+monge, of which a stream has no model; samples and
  // patience at least 1; classes that differ, whole numbers.
  explicit FollowGate(const FollowGateOptions& options = {});
  // @pre the parts agree.
  explicit FollowGate(Parts parts);
  const Parts& parts() const { return parts_; }
  const FollowGateOptions& options() const { return parts_.options; }

  const std::string& choice() const { return parts_.choice; }  // "none" at first
  bool is_open() const { return parts_.choice != "none"; }

  // The answers for a batch join those for the last samples: whole batches, as few as have that many samples; of a
  // batch that has more its last rows. A batch of no rows changes nothing. Strong guarantee.
  // @throws std::invalid_argument where `check` does.
  FollowVerdict observe(const GateAnswers& batch, const MomentEvidence& moments = {});

  // The same by these answers alone, of samples that the caller keeps and asks about anew under the maps as they are
  // now; none of them is kept. `classes` is K for labels where it is known.
  FollowVerdict judge(const GateAnswers& all, const MomentEvidence& moments = {}, Index classes = 0);

  // Refuses what is no set of answers for the same samples, what does not fit the answers before, labels that are no
  // whole numbers or none of the source's, rows that are no probabilities; by value, place and remedy.
  void check(const GateAnswers& batch) const;

 private:
  FollowVerdict decide_by(const std::vector<Block<double>>& answers, const MomentEvidence& moments, Index classes);

  Parts parts_;
};

}  // namespace itspace
