// SPDX-License-Identifier: Apache-2.0
//
// OnlineAligner: follows a stream of feature batches, a few steps for each.
//
//     OnlineAligner<float> aligner({.rank = 16, .stream = {.half_life = 20}});
//     const Observation seen = aligner.observe(batch);         // the target moves, then two steps from the last Y
//     aligner.factor();                                        // valid at once: positive semidefinite, of that rank
//     aligner.map(source).apply<float>(samples);               // into the frame of the source
//
// Each observation carries the record of its steps, certified against the target as it is at that batch: objectives of
// different batches are of different targets. The same batches in the same order give the same bits, whether or not the
// stream was saved and loaded in between (online_file.hpp).
#pragma once

#include <itspace/align.hpp>
#include <itspace/drift_alarm.hpp>
#include <itspace/export.hpp>
#include <itspace/online_target.hpp>
#include <itspace/transport_map.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string>

namespace itspace {

struct OnlineAlignerOptions {
  Index rank = 16;
  Index steps = 2;  // for each batch; 0: the target is followed, the factor is not moved
  StepSize step_size = {};
  OnlineOptions stream = {};
  std::optional<DriftOptions> drift = {};  // no alarm where it is empty
  std::uint64_t seed = 0;                  // of the first start and of completions
};

// What came of one batch.
struct Observation {
  std::uint64_t batch = 0;  // its number, from 1; that of the last one where it was skipped
  Index samples = 0;
  bool skipped = false;  // nothing in it: the state is as it was
  std::string warning;   // a sentence, where something was not as it should be
  double effective_samples = 0;
  double target_trace = 0;
  Vector class_shares = {};    // where the stream is balanced: OnlineTarget::class_shares
  std::optional<Trace> trace;  // of the steps; none while there are fewer than two samples, or none of them differ
  std::optional<DriftReport> drift;
};

template <Storage Scalar>
class ITSPACE_API OnlineAligner {
 public:
  // For files.
  struct Parts {
    OnlineAlignerOptions options;
    OnlineTarget<Scalar> target;
    Block<Scalar> factor = {};  // d x r; empty before the first step, unless it was told where to begin
    double objective = not_a_number;
    std::optional<DriftAlarm> drift = {};
  };

  // @pre rank >= 1, steps >= 0, and what the parts ask for.
  explicit OnlineAligner(const OnlineAlignerOptions& options = {});
  // @pre the parts agree.
  explicit OnlineAligner(Parts parts);
  const Parts& parts() const { return parts_; }

  // The factor that the steps of the first batch begin at, d x rank, such as the source's; without it a random one.
  // @pre no batch so far; finite. @throws std::invalid_argument otherwise.
  void begin_at(const ConstBlockView<Scalar>& start);

  // Rows are samples. A batch with nothing in it is skipped, with a warning. Strong guarantee: a batch that is refused
  // (other dimension, a value that is not finite, weights that do not fit, a class that the source does not have)
  // changes nothing. The classes of the samples are for streams that are balanced (OnlineOptions::balance).
  // The drift alarm looks at all samples alike, whatever their weights and classes.
  Observation observe(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights = {},
                      const Predicted& predicted = {});

  const OnlineTarget<Scalar>& target() const { return parts_.target; }
  // @throws std::invalid_argument before the first step.
  const Block<Scalar>& factor() const;
  double objective() const { return parts_.objective; }  // W2^2 of the factor and the target; NaN before the first step
  const OnlineAlignerOptions& options() const { return parts_.options; }

  // The model of the stream as it is now (one pass), with its deviations and its effective count; and the map from it
  // to a source. @throws std::invalid_argument before the first step.
  LowRankGaussian model(double floor = default_remainder_floor) const;
  TransportMap map(const LowRankGaussian& source, MapKind kind = MapKind::monge, const Kept& kept = {}) const;

  void relearn_drift();  // see DriftAlarm::relearn

 private:
  Parts parts_;
};

}  // namespace itspace
