// SPDX-License-Identifier: Apache-2.0
//
// The parts of a stream, each under its own key; what belongs to the batches that are kept is stacked. Whole numbers
// beyond 2^53 are texts.
#include <itspace/io.hpp>
#include <itspace/online_file.hpp>

#include "atomic_file.hpp"
#include "error.hpp"
#include "state_file.hpp"

#include <algorithm>

namespace itspace::io {
namespace {

constexpr StateKind stream_state{"state of a stream", online_format, "itspace follow"};
constexpr std::string_view stream_remedy = "the file is damaged: begin the stream again, or use an older copy";

std::string_view name_of(StepSize::Kind kind) {
  switch (kind) {
    case StepSize::Kind::fixed:
      return "fixed";
    case StepSize::Kind::line_search:
      return "line_search";
    case StepSize::Kind::by_steps:
      break;
  }
  return "by_steps";
}

// Groups of samples, one below the other.
template <Storage Scalar>
void write_groups(StateWriter& out, const std::string& prefix,
                  const std::vector<typename OnlineTarget<Scalar>::Group>& groups) {
  const auto count = static_cast<Index>(groups.size());
  if (count == 0) {
    return;
  }
  const Index d = groups.front().mean.size();
  Index total = 0;
  for (const auto& group : groups) {
    total += group.rows->rows();
  }
  Block<Scalar> rows(total, d);
  Block<double> means(count, d), variances(count, d), weights(count, 3);
  Eigen::VectorXd counts(count), labels(count), batches(count);
  Index row = 0;
  for (Index i = 0; i < count; ++i) {
    const auto& group = groups[static_cast<std::size_t>(i)];
    rows.middleRows(row, group.rows->rows()) = *group.rows;
    row += group.rows->rows();
    means.row(i) = group.mean.transpose();
    variances.row(i) = group.variances.transpose();
    weights.row(i) = Eigen::RowVector3d(group.weight, group.weight_squares, group.discount);
    counts(i) = static_cast<double>(group.rows->rows());
    labels(i) = static_cast<double>(group.label);
    batches(i) = static_cast<double>(group.batch);
  }
  out.matrix<Scalar>(prefix + "_rows", rows);
  out.vector(prefix + "_counts", counts);
  out.vector(prefix + "_labels", labels);
  out.vector(prefix + "_batches", batches);
  out.matrix<double>(prefix + "_means", means);
  out.matrix<double>(prefix + "_variances", variances);
  out.matrix<double>(prefix + "_weights", weights);
}

template <Storage Scalar>
std::vector<typename OnlineTarget<Scalar>::Group> read_groups(const StateReader& in, const std::string& prefix) {
  std::vector<typename OnlineTarget<Scalar>::Group> groups;
  if (!in.has(prefix + "_rows")) {
    return groups;
  }
  const Block<Scalar> rows = in.matrix<Scalar>(prefix + "_rows");
  const std::vector<Index> counts = in.counts(prefix + "_counts"), labels = in.counts(prefix + "_labels"),
                           batches = in.counts(prefix + "_batches");
  const auto count = static_cast<Index>(counts.size());
  in.require_shape(prefix + "_labels", std::ssize(labels), 1, count, 1);
  in.require_shape(prefix + "_batches", std::ssize(batches), 1, count, 1);
  const Block<double> means = in.table(prefix + "_means", count, rows.cols());
  const Block<double> variances = in.table(prefix + "_variances", count, rows.cols());
  const Block<double> weights = in.table(prefix + "_weights", count, 3);
  Index total = 0;
  for (const Index some : counts) {
    total += std::min(some, rows.rows() + 1);  // which is too many, and no sum of such overflows
  }
  in.require_shape(prefix + "_rows", rows.rows(), rows.cols(), total, rows.cols());
  Index row = 0;
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    auto& group = groups.emplace_back();
    group.rows = std::make_shared<const Block<Scalar>>(rows.middleRows(row, counts[at]));
    row += counts[at];
    group.mean = means.row(i).transpose();
    group.variances = variances.row(i).transpose();
    group.weight = weights(i, 0);
    group.weight_squares = weights(i, 1);
    group.discount = weights(i, 2);
    group.label = labels[at];
    group.batch = static_cast<std::uint64_t>(batches[at]);
  }
  return groups;
}

// Names are kept in one text, a line for each.
void write_balance(StateWriter& out, const ClassBalance& balance) {
  std::string names;
  for (const std::string& one : balance.classes) {
    names += one + '\n';
  }
  out.vector("class_shares", balance.shares);
  out.text("class_names", names.empty() ? "\n" : names);
}

ClassBalance read_balance(const StateReader& in) {
  ClassBalance balance{.shares = in.vector("class_shares"), .classes = {}};
  const std::string names = in.text("class_names");
  for (std::size_t from = 0, to = 0; names != "\n" && (to = names.find('\n', from)) != std::string::npos;
       from = to + 1) {
    balance.classes.push_back(names.substr(from, to - from));
  }
  return balance;
}

template <Storage Scalar>
void write_stream(StateWriter& out, const typename OnlineTarget<Scalar>::Parts& stream) {
  const OnlineOptions& options = stream.options;
  out.scalar("half_life", options.half_life);
  out.text("half_life_unit", name(options.unit));
  out.scalar("window", static_cast<double>(options.window));
  out.scalar("exact_batches", static_cast<double>(options.exact_batches));
  out.scalar("kept_rank", static_cast<double>(options.kept_rank.value()));
  out.whole("stream_seed", options.seed);
  out.whole("version", stream.version);
  if (options.balance) {
    write_balance(out, *options.balance);
  }
  write_groups<Scalar>(out, "old", stream.old);
  write_groups<Scalar>(out, "recent", stream.recent);
}

template <Storage Scalar>
typename OnlineTarget<Scalar>::Parts read_stream(const StateReader& in) {
  typename OnlineTarget<Scalar>::Parts stream;
  OnlineOptions& options = stream.options;
  options.half_life = in.scalar("half_life");
  options.unit =
      in.text("half_life_unit") == name(HalfLifeUnit::samples) ? HalfLifeUnit::samples : HalfLifeUnit::batches;
  options.window = in.count("window");
  options.exact_batches = in.count("exact_batches");
  options.kept_rank = in.count("kept_rank");
  options.seed = in.whole("stream_seed");
  stream.version = in.whole("version");
  if (in.has("class_shares")) {
    options.balance = read_balance(in);
  }
  stream.old = read_groups<Scalar>(in, "old");
  stream.recent = read_groups<Scalar>(in, "recent");
  return stream;
}

void write_drift(StateWriter& out, const DriftAlarm::Parts& drift) {
  out.scalar("drift_run_length", drift.options.run_length);
  out.scalar("drift_reference_batches", static_cast<double>(drift.options.reference_batches));
  out.scalar("drift_rank", static_cast<double>(drift.options.rank));
  out.scalar("drift_block", static_cast<double>(drift.options.block));
  out.whole("drift_seed", drift.options.seed);
  out.whole("drift_alarms", drift.alarms);
  if (!drift.counts.empty()) {
    Eigen::VectorXd counts(static_cast<Index>(drift.counts.size()));
    std::ranges::copy(drift.counts, counts.begin());
    out.matrix<double>("drift_samples", drift.samples);
    out.vector("drift_counts", counts);
  }
  if (drift.mean.size() > 0) {
    out.scalar("drift_size", static_cast<double>(drift.size));
    out.vector("drift_mean", drift.mean);
    out.matrix<double>("drift_whitening", drift.whitening);
    out.matrix<double>("drift_basis", drift.basis);
    out.scalar("drift_outside", drift.outside);
    out.vector("drift_drawn_in",
               Eigen::Vector4d(drift.longest, drift.inside_scale, drift.most_energy, drift.energy_scale));
    out.matrix<double>("drift_pool", drift.pool);
    out.scalar("drift_threshold", drift.threshold);
    out.scalar("drift_mean_sum", drift.mean_sum);
    out.scalar("drift_covariance_sum", drift.covariance_sum);
  }
}

DriftAlarm::Parts read_drift(const StateReader& in) {
  DriftAlarm::Parts drift;
  drift.options.run_length = in.scalar("drift_run_length");
  drift.options.reference_batches = in.count("drift_reference_batches");
  drift.options.rank = in.count("drift_rank");
  drift.options.block = in.count("drift_block");
  drift.options.seed = in.whole("drift_seed");
  drift.alarms = in.whole("drift_alarms");
  if (in.has("drift_counts")) {
    drift.samples = in.matrix<double>("drift_samples");
    drift.counts = in.counts("drift_counts");
  }
  if (in.has("drift_mean")) {
    drift.size = in.count("drift_size");
    drift.mean = in.vector("drift_mean");
    drift.whitening = in.matrix<double>("drift_whitening");
    drift.basis = in.matrix<double>("drift_basis");
    drift.outside = in.scalar("drift_outside");
    const Eigen::VectorXd drawn_in = in.vector("drift_drawn_in");
    in.require_shape("drift_drawn_in", drawn_in.size(), 1, 4, 1);
    drift.longest = drawn_in(0);
    drift.inside_scale = drawn_in(1);
    drift.most_energy = drawn_in(2);
    drift.energy_scale = drawn_in(3);
    drift.pool = in.matrix<double>("drift_pool");
    drift.threshold = in.scalar("drift_threshold");
    drift.mean_sum = in.scalar("drift_mean_sum");
    drift.covariance_sum = in.scalar("drift_covariance_sum");
  }
  return drift;
}

void write_gate(StateWriter& out, const FollowGate::Parts& gate) {
  std::string maps;
  for (const MapKind kind : gate.options.maps) {
    maps += std::string(maps.empty() ? "" : ",") + std::string(name(kind));
  }
  out.text("gate_maps", maps);
  out.scalar("gate_samples", static_cast<double>(gate.options.samples));
  out.scalar("gate_patience", static_cast<double>(gate.options.patience));
  out.text("gate_choice", gate.choice);
  out.text("gate_proposed", gate.proposed);
  out.scalar("gate_times", static_cast<double>(gate.times));
  if (!gate.options.classes.empty()) {
    const auto count = static_cast<Index>(gate.options.classes.size());
    out.vector("gate_classes", Eigen::Map<const Eigen::VectorXd>(gate.options.classes.data(), count));
  }
  if (!gate.counts.empty()) {
    Eigen::VectorXd counts(static_cast<Index>(gate.counts.size()));
    std::ranges::copy(gate.counts, counts.begin());
    out.vector("gate_counts", counts);
    out.matrix<double>("gate_answers", gate.answers);
  }
}

FollowGate::Parts read_gate(const StateReader& in) {
  FollowGate::Parts gate;
  gate.options.maps.clear();
  std::string maps = in.text("gate_maps");
  while (!maps.empty()) {
    const std::string first = maps.substr(0, maps.find(','));
    const auto kind = map_kind_named(first);
    if (!kind) {
      throw std::invalid_argument("its gate has the map '" + first + "', which there is not");
    }
    gate.options.maps.push_back(*kind);
    maps.erase(0, first.size() + 1);
  }
  gate.options.samples = in.count("gate_samples");
  gate.options.patience = in.count("gate_patience");
  gate.choice = in.text("gate_choice");
  gate.proposed = in.text("gate_proposed");
  gate.times = in.count("gate_times");
  if (in.has("gate_classes")) {
    const Eigen::VectorXd classes = in.vector("gate_classes");
    gate.options.classes.assign(classes.begin(), classes.end());
  }
  if (in.has("gate_counts")) {
    gate.counts = in.counts("gate_counts");
    gate.answers = in.matrix<double>("gate_answers");
  }
  return gate;
}

StepSize step_size_of(const StateReader& in) {
  const std::string kind = in.text("step_size");
  if (kind == name_of(StepSize::Kind::fixed)) {
    return StepSize::alpha(in.scalar("alpha"));
  }
  return kind == name_of(StepSize::Kind::line_search) ? StepSize::line_search() : StepSize();
}

}  // namespace

template <Storage Scalar>
void save_online(const std::filesystem::path& path, const OnlineAligner<Scalar>& aligner,
                 const std::optional<FollowGate>& gate) {
  const auto& parts = aligner.parts();
  AtomicFile file(path);
  StateWriter out(file, path);
  out.text("format", online_format);
  out.text("precision", precision_name<Scalar>());
  out.scalar("rank", static_cast<double>(parts.options.rank));
  out.scalar("steps", static_cast<double>(parts.options.steps));
  out.text("step_size", name_of(parts.options.step_size.kind()));
  out.scalar("alpha", parts.options.step_size.resolve(parts.options.steps));
  out.whole("seed", parts.options.seed);
  if (parts.factor.size() > 0) {
    out.matrix<Scalar>("factor", parts.factor);
  }
  out.scalar("objective", parts.objective);
  write_stream<Scalar>(out, parts.target.parts());
  if (parts.drift) {
    write_drift(out, parts.drift->parts());
  }
  if (gate) {
    write_gate(out, gate->parts());
  }
  out.finish();
  file.commit();
}

std::string online_precision(const std::filesystem::path& path) {
  check_format(path, stream_state);
  const std::string found = read_text(path, "precision");
  if (found != precision_name<float>() && found != precision_name<double>()) {
    fail("{}: its precision is {}, float32 or float64 was expected; {}", in_quotes(path), in_quotes(found),
         stream_remedy);
  }
  return found;
}

template <Storage Scalar>
OnlineAligner<Scalar> load_online(const std::filesystem::path& path) {
  const std::string precision = online_precision(path);
  if (precision != precision_name<Scalar>()) {
    fail("{}: is the state of a stream in {}, and batches in {} were to be added; give batches of its own type",
         in_quotes(path), precision, precision_name<Scalar>());
  }
  const StateReader in(path, stream_remedy);
  try {
    typename OnlineAligner<Scalar>::Parts parts{.options = {}, .target = OnlineTarget<Scalar>(read_stream<Scalar>(in))};
    parts.options.rank = in.count("rank");
    parts.options.steps = in.count("steps");
    parts.options.step_size = step_size_of(in);
    parts.options.seed = in.whole("seed");
    if (in.has("factor")) {
      parts.factor = in.matrix<Scalar>("factor");
    }
    parts.objective = in.scalar("objective");
    if (in.has("drift_run_length")) {
      parts.drift.emplace(read_drift(in));
    }
    return OnlineAligner<Scalar>(std::move(parts));
  } catch (const std::invalid_argument& error) {
    fail("{}: {}; {}", in_quotes(path), error.what(), stream_remedy);
  }
}

std::optional<FollowGate> load_follow_gate(const std::filesystem::path& path) {
  check_format(path, stream_state);
  const StateReader in(path, stream_remedy);
  if (!in.has("gate_maps")) {
    return std::nullopt;
  }
  try {
    return FollowGate(read_gate(in));
  } catch (const std::invalid_argument& error) {
    fail("{}: {}; {}", in_quotes(path), error.what(), stream_remedy);
  }
}

#define ITSPACE_INSTANTIATE(Scalar)                                                             \
  template void save_online<Scalar>(const std::filesystem::path&, const OnlineAligner<Scalar>&, \
                                    const std::optional<FollowGate>&);                          \
  template OnlineAligner<Scalar> load_online<Scalar>(const std::filesystem::path&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::io
