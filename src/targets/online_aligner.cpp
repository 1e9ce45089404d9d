// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/online.hpp>

#include "core/require.hpp"

#include <utility>

namespace itspace {
namespace {

constexpr Index kept_per_rank = 4;

OnlineOptions stream_options(const OnlineAlignerOptions& options) {
  require(options.rank >= 1, "rank is ", options.rank, "; it must be at least 1");
  require(options.steps >= 0, "steps is ", options.steps, "; it must be 0 or more");
  OnlineOptions stream = options.stream;
  if (!stream.kept_rank) stream.kept_rank = kept_per_rank * options.rank;
  return stream;
}

}  // namespace

template <Storage Scalar>
OnlineAligner<Scalar>::OnlineAligner(const OnlineAlignerOptions& options)
    : parts_{.options = options, .target = OnlineTarget<Scalar>(stream_options(options))} {
  parts_.options.stream = parts_.target.options();
  if (options.drift) parts_.drift.emplace(*options.drift);
}

template <Storage Scalar>
OnlineAligner<Scalar>::OnlineAligner(Parts parts) : parts_(std::move(parts)) {
  stream_options(parts_.options);
  parts_.options.stream = parts_.target.options();
  parts_.options.drift.reset();
  if (parts_.drift) parts_.options.drift = parts_.drift->parts().options;
  const Index d = parts_.target.dim();
  require(d == 0 || parts_.options.rank <= d, "rank is ", parts_.options.rank, " and the stream has dimension ", d,
          "; the rank can be no more than that");
  require(parts_.factor.size() == 0 ||
              ((d == 0 || parts_.factor.rows() == d) && parts_.factor.cols() == parts_.options.rank),
          "the factor is ", parts_.factor.rows(), " x ", parts_.factor.cols(), " for a stream of dimension ", d,
          " and rank ", parts_.options.rank, "; it must be one of the other");
  check_finite<Scalar>(parts_.factor, "factor");
}

template <Storage Scalar>
void OnlineAligner<Scalar>::begin_at(const ConstBlockView<Scalar>& start) {
  require(parts_.target.version() == 0, "the stream has had ", parts_.target.version(),
          " batches already; a start is for its beginning");
  require(start.cols() == parts_.options.rank && start.rows() >= start.cols(), "the start is ", start.rows(), " x ",
          start.cols(), "; it must have a row for each feature and rank = ", parts_.options.rank, " columns");
  check_finite<Scalar>(start, "start");
  parts_.factor = start;
}

template <Storage Scalar>
Observation OnlineAligner<Scalar>::observe(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights,
                                           const Predicted& predicted) {
  const Index rank = parts_.options.rank;
  require(batch.rows() == 0 || rank <= batch.cols(), "rank is ", rank, " and the batch has ", batch.cols(),
          " columns; the rank can be no more than the dimension: give a smaller one");
  require(
      batch.rows() == 0 || parts_.factor.size() == 0 || parts_.target.dim() > 0 || batch.cols() == parts_.factor.rows(),
      "the batch has ", batch.cols(), " columns and the start ", parts_.factor.rows(), " rows; they must agree");
  // On another stream, which shares the samples; nothing below the last line can be refused.
  std::optional<OnlineTarget<Scalar>> next = parts_.target.updated(batch, weights, predicted);
  const OnlineTarget<Scalar>& target = next ? *next : parts_.target;
  Observation seen;
  seen.samples = batch.rows();
  seen.skipped = !next;
  seen.batch = target.version();
  seen.effective_samples = target.effective_samples();
  seen.target_trace = target.trace();
  if (target.options().balance) seen.class_shares = target.class_shares();
  if (seen.skipped) {
    seen.warning = batch.rows() == 0 ? "the batch has no rows and was skipped; the state is as it was"
                                     : "the weights of the batch are all 0 and it was skipped; the state is as it was";
    return seen;
  }
  std::optional<DriftAlarm> drift = parts_.drift;
  if (drift) seen.drift = drift->observe<Scalar>(batch);
  std::optional<Result<Scalar>> result;
  if (target.trace() > 0) {
    const AlignOptions options{
        .steps = parts_.options.steps, .step_size = parts_.options.step_size, .seed = parts_.options.seed};
    result =
        parts_.factor.size() > 0 ? align<Scalar>(target, parts_.factor, options) : align<Scalar>(target, rank, options);
    if (failed(result->status()))
      seen.warning =
          text("the steps of the batch failed (", name(result->status()), result->trace.reason.empty() ? "" : ": ",
               result->trace.reason, "); the factor is the best one before that");
    else if (const Step& best = result->trace.steps[static_cast<std::size_t>(result->trace.best)];
             std::same_as<Scalar, float> && unresolved(best))
      seen.warning =
          text("float32 resolves W2^2 only to ", best.resolution, " here, where it is reported as ", best.objective,
               ": the factor may be far from what float64 finds. Follow the stream in float64, "
               "or standardise its features first");
  }
  parts_.target = std::move(*next);
  parts_.drift = std::move(drift);
  if (result) {
    const Trace& trace = result->trace;
    parts_.objective = trace.steps.empty() ? not_a_number : trace.steps[static_cast<std::size_t>(trace.best)].objective;
    parts_.factor = std::move(result->factor);
    seen.trace = std::move(result->trace);
  }
  return seen;
}

template <Storage Scalar>
const Block<Scalar>& OnlineAligner<Scalar>::factor() const {
  require(parts_.factor.size() > 0, "the stream has had ", parts_.target.version(),
          " batches and no factor yet; observe one with at least two samples that differ");
  return parts_.factor;
}

template <Storage Scalar>
LowRankGaussian OnlineAligner<Scalar>::model(double floor) const {
  return model_of<Scalar>(
      parts_.target, factor(), parts_.target.mean(),
      ModelOptions{
          .floor = floor, .deviations = parts_.target.deviations(), .samples = parts_.target.effective_samples()});
}

template <Storage Scalar>
TransportMap OnlineAligner<Scalar>::map(const LowRankGaussian& source, MapKind kind, const Kept& kept) const {
  return TransportMap(model(), source, kind, kept);
}

template <Storage Scalar>
void OnlineAligner<Scalar>::relearn_drift() {
  if (parts_.drift) parts_.drift->relearn();
}

template class OnlineAligner<float>;
template class OnlineAligner<double>;

}  // namespace itspace
