// SPDX-License-Identifier: Apache-2.0
//
// The parts of a stream, each under its own key; what belongs to the batches that are kept is stacked. Whole numbers
// beyond 2^53 are texts.
#include <itspace/io.hpp>
#include <itspace/online_file.hpp>

#include "atomic_file.hpp"
#include "error.hpp"
#include "npy_writer.hpp"
#include "text_member.hpp"
#include "zip_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace itspace::io {
namespace {

constexpr std::string_view family = "itspace.online/";
constexpr std::string_view remedy = "the file is damaged: begin the stream again, or use an older copy";

template <Storage Scalar>
constexpr std::string_view precision_name() {
  return std::is_same_v<Scalar, float> ? "float32" : "float64";
}

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

void check_format(const std::filesystem::path& path) {
  const auto keys = array_keys(path);
  if (keys.empty()) {
    fail(
        "{}: is no state of a stream but a plain array; expected an .npz with format {}, as `itspace follow` writes it",
        in_quotes(path), in_quotes(online_format));
  }
  if (std::ranges::find(keys, "format") == keys.end()) {
    fail(
        "{}: is no state of a stream: it has no key 'format' (its first key is {}); expected format {}, as `itspace "
        "follow` writes it",
        in_quotes(path), in_quotes(keys.front()), in_quotes(online_format));
  }
  const std::string found = read_text(path, "format");
  if (found == online_format) {
    return;
  }
  if (std::string_view(found).starts_with(family)) {
    fail("{}: is the state of a stream in format {}, this version reads {}; use an itspace that knows it",
         in_quotes(path), in_quotes(found), in_quotes(online_format));
  }
  fail("{}: is no state of a stream, its format is {}; expected {}, as `itspace follow` writes it", in_quotes(path),
       in_quotes(found), in_quotes(online_format));
}

class StateWriter {
 public:
  StateWriter(AtomicFile& file, const std::filesystem::path& path) : zip_(file, in_quotes(path)) {}

  void text(std::string_view key, std::string_view value) { zip_.add(member(key), npy_text(value), ""); }
  void whole(std::string_view key, std::uint64_t value) { text(key, std::to_string(value)); }
  void scalar(std::string_view key, double value) {
    zip_.add(member(key), npy_header<double>({}), bytes_of(&value, 1));
  }
  void vector(std::string_view key, const Eigen::VectorXd& values) {
    const Index shape[] = {values.size()};
    zip_.add(member(key), npy_header<double>(shape), bytes_of(values.data(), values.size()));
  }
  template <Storage Scalar>
  void matrix(std::string_view key, const Block<Scalar>& values) {
    const Index shape[] = {values.rows(), values.cols()};
    zip_.add(member(key), npy_header<Scalar>(shape), bytes_of(values.data(), values.size()));
  }
  void finish() { zip_.finish(); }

 private:
  static std::string member(std::string_view key) { return std::string(key) + ".npy"; }

  ZipWriter zip_;
};

class StateReader {
 public:
  explicit StateReader(const std::filesystem::path& path) : path_(path), keys_(array_keys(path)) {}

  bool has(std::string_view key) const { return std::ranges::find(keys_, key) != keys_.end(); }
  std::string text(std::string_view key) const { return read_text(path_, key); }
  std::uint64_t whole(std::string_view key) const {
    const std::string digits = text(key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail("{}: its {} is {}, a whole number was expected; {}", in_quotes(path_), in_quotes(key), in_quotes(digits),
           remedy);
    }
    return value;
  }
  double scalar(std::string_view key) const { return read<double>(key, 0)(0, 0); }
  Index count(std::string_view key, double value) const {
    constexpr double largest = 9007199254740992.0;  // 2^53
    if (!(value >= 0 && value <= largest && value == std::floor(value))) {
      fail("{}: holds {} in {}, a count was expected; {}", in_quotes(path_), value, in_quotes(key), remedy);
    }
    return static_cast<Index>(value);
  }
  Index count(std::string_view key) const { return count(key, scalar(key)); }
  std::vector<Index> counts(std::string_view key) const {
    const Eigen::VectorXd values = vector(key);
    std::vector<Index> out;
    for (Index i = 0; i < values.size(); ++i) {
      out.push_back(count(key, values(i)));
    }
    return out;
  }
  Eigen::VectorXd vector(std::string_view key) const { return read<double>(key, 1).reshaped(); }
  template <Storage Scalar>
  Block<Scalar> matrix(std::string_view key) const {
    return read<Scalar>(key, 2);
  }
  // @throws unless the array has that shape; by rows and columns as they are in the file.
  Block<double> table(std::string_view key, Index rows, Index cols) const {
    Block<double> values = matrix<double>(key);
    require_shape(key, values.rows(), values.cols(), rows, cols);
    return values;
  }
  void require_shape(std::string_view key, Index rows, Index cols, Index expected_rows, Index expected_cols) const {
    if (rows != expected_rows || cols != expected_cols) {
      fail("array {} of {}: is {} x {}, {} x {} was expected; {}", in_quotes(key), in_quotes(path_), rows, cols,
           expected_rows, expected_cols, remedy);
    }
  }

 private:
  template <Storage Scalar>
  Block<Scalar> read(std::string_view key, std::size_t dimensions) const {
    const Array array = open_array(path_, key);
    if (array.info().shape.size() != dimensions) {
      fail("array {} of {}: has {} dimensions, {} were expected; {}", in_quotes(key), in_quotes(path_),
           array.info().shape.size(), dimensions, remedy);
    }
    return array.as<Scalar>().view();
  }

  std::filesystem::path path_;
  std::vector<std::string> keys_;
};

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
    drift.pool = in.matrix<double>("drift_pool");
    drift.threshold = in.scalar("drift_threshold");
    drift.mean_sum = in.scalar("drift_mean_sum");
    drift.covariance_sum = in.scalar("drift_covariance_sum");
  }
  return drift;
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
void save_online(const std::filesystem::path& path, const OnlineAligner<Scalar>& aligner) {
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
  out.finish();
  file.commit();
}

std::string online_precision(const std::filesystem::path& path) {
  check_format(path);
  const std::string found = read_text(path, "precision");
  if (found != precision_name<float>() && found != precision_name<double>()) {
    fail("{}: its precision is {}, float32 or float64 was expected; {}", in_quotes(path), in_quotes(found), remedy);
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
  const StateReader in(path);
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
    fail("{}: {}; {}", in_quotes(path), error.what(), remedy);
  }
}

#define ITSPACE_INSTANTIATE(Scalar)                                                              \
  template void save_online<Scalar>(const std::filesystem::path&, const OnlineAligner<Scalar>&); \
  template OnlineAligner<Scalar> load_online<Scalar>(const std::filesystem::path&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::io
