// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/drift_alarm.hpp>
#include <itspace/random.hpp>
#include <itspace/start.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// What a sum loses with each batch, in units of the spread: what is usual makes it fall, a change by one spread rise.
constexpr double allowance = 0.5;
// Batches drawn for the threshold and for the moments of another size.
constexpr Index drawn_for_threshold = 4000, drawn_for_moments = 1000;

void check_options(const DriftOptions& options) {
  require(options.run_length >= 2 && std::isfinite(options.run_length), "run_length is ", options.run_length,
          "; it must be a number of batches of at least 2");
  require(options.reference_batches >= 4, "reference_batches is ", options.reference_batches,
          "; it must be at least 4: one half is held against the other");
  require(options.rank >= 1, "the rank of the drift alarm is ", options.rank, "; it must be at least 1");
  require(options.block >= 1, "block is ", options.block, "; it must be at least 1");
}

// x and its share t >= 0 of a noise-free length: t^2 = max(0, 1 - noise/|x|^2).
double debiased_share(double squared, double noise) {
  return squared > noise ? std::sqrt(1 - noise / squared) : 0.0;
}

Small symmetric_power(const Small& a, double exponent) {
  SmallVector values;
  Small vectors;
  require_converged(symmetric_eigen(a, values, vectors), "the covariance of the reference");
  const double least = std::numeric_limits<double>::epsilon() * std::max(values.maxCoeff(), 1.0);
  return vectors * values.cwiseMax(least).array().pow(exponent).matrix().asDiagonal() * vectors.transpose();
}

// The second half of the reference is itself a sample: its mean and covariance differ from those of the first half by
// its own noise on top of what the distribution does. Batches drawn from it as it is would all carry that difference,
// and the threshold would be too high. So it is moved to where the difference is as large as it is without that noise.
void remove_own_noise(BlockView<double> coordinates) {
  const double n = static_cast<double>(coordinates.rows());
  const Eigen::RowVectorXd mean = coordinates.colwise().mean();
  const Index q = coordinates.cols();
  Dense centred = coordinates.rowwise() - mean;
  const Small covariance = centred.transpose() * centred / (n - 1);
  // E|mean - mu|^2 = tr C/n; E||C^ - C||^2 = (E||xx'||^2 - ||C||^2)/n.
  const double mean_share = debiased_share(mean.squaredNorm(), covariance.trace() / n);
  const double fourth = centred.rowwise().squaredNorm().array().square().mean();
  const Small apart = covariance - Small::Identity(q, q);
  const double share = debiased_share(apart.squaredNorm(), std::max(0.0, fourth - covariance.squaredNorm()) / n);
  const Small wanted = Small::Identity(q, q) + share * apart;
  const Small move = symmetric_power(covariance, -0.5) * symmetric_power(wanted, 0.5);
  coordinates = (centred * move).rowwise() + mean_share * mean;
}

}  // namespace

DriftAlarm::DriftAlarm(const DriftOptions& options) : DriftAlarm(Parts{.options = options}) {}

DriftAlarm::DriftAlarm(Parts parts) : parts_(std::move(parts)) {
  check_options(parts_.options);
  Index rows = 0;
  for (const Index count : parts_.counts) {
    require(count >= 1, "a batch of the reference has ", count, " rows; it must have at least 1");
    rows += count;
  }
  require(parts_.samples.rows() == rows, "the reference has ", parts_.samples.rows(), " samples in batches of ", rows,
          " together; they must agree");
  check_finite<double>(parts_.samples, "the reference");
  if (!watching()) return;
  const Index d = parts_.mean.size(), q = parts_.basis.cols();
  require(parts_.basis.rows() == d && parts_.whitening.rows() == d && parts_.whitening.cols() == q &&
              parts_.pool.cols() == q + 1 && parts_.pool.rows() >= 2 && parts_.size >= 1,
          "the parts of the drift alarm do not fit each other");
  check_finite<double>(parts_.mean.transpose(), "the mean of the drift alarm");
  check_finite<double>(parts_.basis, "the basis of the drift alarm");
  check_finite<double>(parts_.whitening, "the whitening of the drift alarm");
  check_finite<double>(parts_.pool, "the pool of the drift alarm");
  require(parts_.longest > 0 && parts_.most_energy > 0 && parts_.inside_scale > 0 && parts_.energy_scale > 0 &&
              std::isfinite(parts_.inside_scale) && std::isfinite(parts_.energy_scale),
          "the drift alarm draws samples in to ", parts_.longest, " and ", parts_.most_energy,
          "; these must be positive, and their scales too");
  require(parts_.threshold > 0 && std::isfinite(parts_.threshold) && parts_.mean_sum >= 0 &&
              parts_.covariance_sum >= 0 && std::isfinite(parts_.mean_sum + parts_.covariance_sum) &&
              parts_.outside >= 0 && std::isfinite(parts_.outside),
          "the drift alarm has a threshold of ", parts_.threshold,
          "; it must be positive and finite, and its sums too");
}

void DriftAlarm::relearn() {
  *this = DriftAlarm(parts_.options);
}

template <Storage Scalar>
DriftReport DriftAlarm::observe(const ConstBlockView<Scalar>& batch) {
  const Index known = watching() ? parts_.mean.size() : parts_.samples.cols();
  require(batch.rows() >= 1, "the batch has no rows; leave it out");
  require(known == 0 || batch.cols() == known, "the batch has ", batch.cols(), " columns and the stream has dimension ",
          known, "; rows are samples of that dimension");
  check_finite<Scalar>(batch, "batch");
  DriftReport report;
  if (!watching()) {
    DriftAlarm next(parts_.options);
    next.parts_.samples.resize(parts_.samples.rows() + batch.rows(), batch.cols());
    if (parts_.samples.rows() > 0) next.parts_.samples.topRows(parts_.samples.rows()) = parts_.samples;
    next.parts_.samples.bottomRows(batch.rows()) = batch.template cast<double>();
    next.parts_.counts = parts_.counts;
    next.parts_.counts.push_back(batch.rows());
    next.parts_.alarms = parts_.alarms;
    if (static_cast<Index>(next.parts_.counts.size()) == parts_.options.reference_batches) next.learn();
    *this = std::move(next);
    return report;
  }
  const Statistics found = statistics_of(coordinates_of(Block<double>(batch.template cast<double>())));
  const Usual& usual = usual_for(batch.rows());
  const auto z = [](double value, double mean, double deviation) {
    return deviation > 0 ? (value - mean) / deviation : 0;
  };
  report.watching = true;
  report.mean_z = z(found.mean, usual.mean.mean, usual.deviation.mean);
  report.covariance_z = z(found.covariance, usual.mean.covariance, usual.deviation.covariance);
  parts_.mean_sum = std::max(0.0, parts_.mean_sum + report.mean_z - allowance);
  parts_.covariance_sum = std::max(0.0, parts_.covariance_sum + report.covariance_z - allowance);
  report.mean_level = parts_.mean_sum / parts_.threshold;
  report.covariance_level = parts_.covariance_sum / parts_.threshold;
  report.alarm = std::max(report.mean_level, report.covariance_level) >= 1;
  if (report.alarm) {
    parts_.mean_sum = parts_.covariance_sum = 0;
    ++parts_.alarms;
  }
  return report;
}

// Coordinates in the leading directions, in units of the reference, and the energy outside of them; what lies far out
// is drawn in.
Block<double> DriftAlarm::coordinates_of(const ConstBlockView<double>& batch) const {
  const Index q = parts_.basis.cols();
  Block<double> out(batch.rows(), q + 1);
  const Dense centred = batch.rowwise() - parts_.mean.transpose();
  out.leftCols(q) = centred * parts_.whitening;
  const Eigen::VectorXd energy = (centred.rowwise().squaredNorm() - (centred * parts_.basis).rowwise().squaredNorm());
  for (Index i = 0; i < batch.rows(); ++i) {
    const double length = out.row(i).head(q).squaredNorm();
    out.row(i).head(q) *= parts_.inside_scale * (length > parts_.longest ? std::sqrt(parts_.longest / length) : 1.0);
    const double share = parts_.outside > 0 ? std::max(0.0, energy(i)) / parts_.outside : 0.0;
    out(i, q) = parts_.energy_scale * std::min(share, parts_.most_energy);
  }
  return out;
}

// How far out samples are drawn in, by those of the reference, and what makes up for it: their covariance has the trace
// that it had, and their energy the mean 1. @pre nothing is drawn in so far.
void DriftAlarm::draw_in(const ConstBlockView<double>& reference) {
  constexpr double share = 0.95;
  const Index q = parts_.basis.cols();
  const auto quantile = [&](Eigen::VectorXd values) {
    const auto at = static_cast<Index>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values(at);
  };
  const Block<double> all = coordinates_of(reference);
  const double longest = quantile(all.leftCols(q).rowwise().squaredNorm()), most_energy = quantile(all.col(q));
  if (longest > 0) parts_.longest = longest;
  if (most_energy > 0) parts_.most_energy = most_energy;
  const Block<double> drawn_in = coordinates_of(reference);
  const double before = all.leftCols(q).squaredNorm(), after = drawn_in.leftCols(q).squaredNorm();
  const double energy = drawn_in.col(q).mean();
  if (after > 0) parts_.inside_scale = std::sqrt(before / after);
  if (energy > 0) parts_.energy_scale = 1 / energy;
}

// n |mean|^2, and n (||C - I||^2/2 + (energy - 1)^2): each term has the size of its noise.
DriftAlarm::Statistics DriftAlarm::statistics_of(const ConstBlockView<double>& coordinates) const {
  const Index n = coordinates.rows(), q = coordinates.cols() - 1;
  const double count = static_cast<double>(n);
  const Dense inside = coordinates.leftCols(q);
  const Eigen::RowVectorXd mean = inside.colwise().mean();
  Statistics out{.mean = count * mean.squaredNorm()};
  if (n < 2) return out;
  const Dense centred = inside.rowwise() - mean;
  const Small apart = centred.transpose() * centred / (count - 1) - Small::Identity(q, q);
  out.covariance = apart.squaredNorm() / 2;
  if (parts_.outside > 0) {
    const double energy = coordinates.col(q).mean() - 1;
    out.covariance += energy * energy;
  }
  out.covariance *= count;
  return out;
}

std::vector<DriftAlarm::Statistics> DriftAlarm::drawn(Index size, Index count, std::uint64_t stream) const {
  const Random random(parts_.options.seed, stream);
  const auto rows = static_cast<std::uint64_t>(parts_.pool.rows());
  std::vector<Statistics> out;
  Block<double> batch(size, parts_.pool.cols());
  std::uint64_t draw = 0;
  for (Index k = 0; k < count; ++k) {
    for (Index first = 0; first < size; first += parts_.options.block) {
      const auto start = static_cast<Index>(random.bits(draw++) % rows);
      const Index run = std::min(parts_.options.block, size - first);
      for (Index i = 0; i < run; ++i) batch.row(first + i) = parts_.pool.row((start + i) % parts_.pool.rows());
    }
    out.push_back(statistics_of(batch));
  }
  return out;
}

const DriftAlarm::Usual& DriftAlarm::usual_for(Index size) {
  const auto found = usual_.find(size);
  if (found != usual_.end()) return found->second;
  const std::vector<Statistics> all = drawn(size, drawn_for_moments, static_cast<std::uint64_t>(size) + 1);
  const auto moments = [&](double Statistics::*part, double& mean, double& deviation) {
    const double n = static_cast<double>(all.size());
    mean = deviation = 0;
    for (const Statistics& one : all) mean += one.*part / n;
    for (const Statistics& one : all) deviation += (one.*part - mean) * (one.*part - mean) / (n - 1);
    deviation = std::sqrt(deviation);
  };
  Usual usual;
  moments(&Statistics::mean, usual.mean.mean, usual.deviation.mean);
  moments(&Statistics::covariance, usual.mean.covariance, usual.deviation.covariance);
  return usual_.emplace(size, usual).first->second;
}

void DriftAlarm::learn() {
  const Index d = parts_.samples.cols();
  Index halves[2] = {0, 0};
  for (std::size_t i = 0; i < parts_.counts.size(); ++i) halves[i % 2] += parts_.counts[i];
  require(halves[0] >= 2 && halves[1] >= 2, "the reference of the drift alarm has ", parts_.samples.rows(),
          " samples; it needs at least 2 in each half: raise reference_batches");
  Block<double> first(halves[0], d), second(halves[1], d);
  Index filled[2] = {0, 0}, row = 0;
  for (std::size_t i = 0; i < parts_.counts.size(); ++i) {
    Block<double>& half = i % 2 == 0 ? first : second;
    half.middleRows(filled[i % 2], parts_.counts[i]) = parts_.samples.middleRows(row, parts_.counts[i]);
    filled[i % 2] += parts_.counts[i];
    row += parts_.counts[i];
  }
  std::vector<Index> sizes = parts_.counts;
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
  parts_.size = sizes[sizes.size() / 2];

  parts_.mean = mean_about<double>(first, 0, {});
  const Index most = std::min({parts_.options.rank, d, first.rows() - 1});
  const Block<double> leading = start_from_features<double>(first, most);
  const Eigen::VectorXd lengths = leading.colwise().norm().transpose();
  Index rank = 0;
  const double least = 100 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(d)) * lengths(0);
  while (rank < most && lengths(rank) > least) ++rank;
  const Eigen::VectorXd inverse = lengths.head(rank).cwiseInverse();
  parts_.basis = leading.leftCols(rank) * inverse.asDiagonal();
  parts_.whitening = parts_.basis * inverse.asDiagonal();
  parts_.outside = 0;
  if (rank < d) {
    // Of the half that the directions were not fitted to.
    parts_.outside = 1;
    const double energy = coordinates_of(second).col(rank).mean();
    const double whole = (second.rowwise() - parts_.mean.transpose()).squaredNorm() / static_cast<double>(halves[1]);
    parts_.outside = energy > least * least + 100 * std::numeric_limits<double>::epsilon() * whole ? energy : 0.0;
  }
  draw_in(second);
  Block<double> pool = coordinates_of(second);
  if (rank > 0) remove_own_noise(pool.leftCols(rank));
  parts_.pool = std::move(pool);
  parts_.samples.resize(0, 0);
  parts_.counts.clear();

  // The threshold at which streams of drawn batches raise the alarm once in run_length batches.
  const Usual usual = usual_for(parts_.size);
  const std::vector<Statistics> all = drawn(parts_.size, drawn_for_threshold, 0);
  std::vector<Statistics> zs;
  const auto z = [](double value, double mean, double deviation) {
    return deviation > 0 ? (value - mean) / deviation : 0;
  };
  for (const Statistics& one : all)
    zs.push_back({z(one.mean, usual.mean.mean, usual.deviation.mean),
                  z(one.covariance, usual.mean.covariance, usual.deviation.covariance)});
  const double length = parts_.options.run_length;
  const auto steps = static_cast<std::uint64_t>(std::min(2e6, std::max(1e5, 400 * length)));
  const Random random(parts_.options.seed, std::numeric_limits<std::uint64_t>::max());
  const auto mean_run = [&](double threshold) {
    double mean_sum = 0, covariance_sum = 0;
    std::uint64_t alarms = 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      const Statistics& one = zs[static_cast<std::size_t>(random.bits(i) % zs.size())];
      mean_sum = std::max(0.0, mean_sum + one.mean - allowance);
      covariance_sum = std::max(0.0, covariance_sum + one.covariance - allowance);
      if (std::max(mean_sum, covariance_sum) < threshold) continue;
      ++alarms;
      mean_sum = covariance_sum = 0;
    }
    return static_cast<double>(steps) / (static_cast<double>(alarms) + 0.5);
  };
  double low = 0, high = 1;
  while (mean_run(high) < length && high < 1e6) high *= 2;
  for (int i = 0; i < 20; ++i) {
    const double middle = (low + high) / 2;
    (mean_run(middle) < length ? low : high) = middle;
  }
  parts_.threshold = high;
}

template DriftReport DriftAlarm::observe<float>(const ConstBlockView<float>&);
template DriftReport DriftAlarm::observe<double>(const ConstBlockView<double>&);

}  // namespace itspace
