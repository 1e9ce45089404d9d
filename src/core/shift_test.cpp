// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/shift_test.hpp>
#include <itspace/start.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/oas.hpp"
#include "core/require.hpp"
#include "core/shuffle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace itspace {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

// Q(a, x), the upper tail of the gamma distribution of shape a: by its series where x < a + 1, else by its continued
// fraction (Lentz).
double gamma_upper_tail(double a, double x) {
  if (!(x > 0)) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  constexpr int most_terms = 10000;
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int k = 1; k < most_terms && term > eps * sum; ++k) sum += term *= x / (a + k);
    return std::clamp(1 - scale * sum, 0.0, 1.0);
  }
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, fraction = d;
  for (int k = 1; k < most_terms; ++k) {
    const double numerator = -k * (k - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (std::abs(d) < tiny ? tiny : d);
    c = std::abs(c) < tiny ? tiny : c;
    const double factor = c * d;
    fraction *= factor;
    if (std::abs(factor - 1) <= 4 * eps) break;
  }
  return std::clamp(scale * fraction, 0.0, 1.0);
}

// The eigenvalues of a sample covariance are spread too far, and the noise of the formulas is the less for it.
SmallVector shrunk(const SmallVector& eigenvalues, double samples) {
  if (eigenvalues.size() == 0) return eigenvalues;
  const double dim = static_cast<double>(eigenvalues.size()), trace = eigenvalues.sum();
  const double rho = oas_share(eigenvalues.squaredNorm(), trace, dim, samples);
  return ((1 - rho) * eigenvalues.array() + rho * trace / dim).matrix();
}

double two_sided_normal(double z) {
  return std::erfc(std::abs(z) / std::sqrt(2.0));
}

ShiftOutcome against_theory(double observed, double mean, double variance) {
  ShiftOutcome out{.observed = observed, .noise = mean, .noise_deviation = std::sqrt(variance)};
  out.p_permutation = std::numeric_limits<double>::quiet_NaN();
  if (!(variance > 0) || !(mean > 0)) {  // all samples equal
    out.p_normal = observed > 0 ? 0 : 1;
    out.z = observed > 0 ? std::numeric_limits<double>::infinity() : 0;
    return out;
  }
  out.z = (observed - mean) / out.noise_deviation;
  out.p_normal = gamma_upper_tail(mean * mean / variance, observed * mean / variance);
  return out;
}

// sum_i (sum_j e_ij e_kj)^2: ||E E'||_F^2, through the smaller side.
double squared_gram_norm(const Dense& e) {
  const bool tall = e.rows() > e.cols();
  Dense sum = Dense::Zero(tall ? e.cols() : e.rows(), tall ? e.cols() : e.rows());
  if (tall)
    add_gram(e, sum);
  else
    add_gram(e.transpose(), sum);
  const Dense lower = sum.triangularView<Eigen::StrictlyLower>();
  return 2 * lower.squaredNorm() + sum.diagonal().squaredNorm();
}

// What is compared: two groups of rows, and the statistics of them.
struct Groups {
  Index n1, n2;
  double c;  // 1/n1 + 1/n2
};

// The covariance of these rows about their own mean.
Small covariance_of(const Dense& rows, const std::vector<Index>& order, Index first, Index count) {
  Dense picked(count, rows.cols());
  for (Index i = 0; i < count; ++i) picked.row(i) = rows.row(order[static_cast<std::size_t>(first + i)]);
  picked.rowwise() -= picked.colwise().mean().eval();
  Small sum = Small::Zero(rows.cols(), rows.cols());
  add_gram(picked, sum);
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  return sum / static_cast<double>(count - 1);
}

struct CovarianceStatistics {
  double distance = 0;
  Small source, target;
};

CovarianceStatistics compare_covariances(const Dense& rows, const std::vector<Index>& order, const Groups& groups) {
  CovarianceStatistics out;
  if (rows.cols() == 0) return out;  // all samples are equal
  out.source = covariance_of(rows, order, 0, groups.n1);
  out.target = covariance_of(rows, order, groups.n1, groups.n2);
  out.distance = dense_distance_squared<double>(out.source, out.target, {1e-6, 0});
  return out;
}

// Mean of the second group less that of the first, of rows whose sum is 0 up to rounding.
Eigen::VectorXd mean_difference(const Dense& rows, const std::vector<Index>& order, const Groups& groups) {
  Eigen::RowVectorXd first = Eigen::RowVectorXd::Zero(rows.cols()), second = first;
  for (Index i = 0; i < groups.n1; ++i) first += rows.row(order[static_cast<std::size_t>(i)]);
  for (Index i = 0; i < groups.n2; ++i) second += rows.row(order[static_cast<std::size_t>(groups.n1 + i)]);
  return (second / static_cast<double>(groups.n2) - first / static_cast<double>(groups.n1)).transpose();
}

void check(Index source_cols, Index target_cols, Index source_rows, Index target_rows,
           const ShiftTestOptions& options) {
  require(source_cols == target_cols, "the source has ", source_cols, " columns and the target ", target_cols,
          "; both must have the same features");
  for (const auto& [rows, name] : {std::pair{source_rows, "source"}, std::pair{target_rows, "target"}})
    require(rows >= 3, "the ", name, " has ", rows, " row(s); a test of shift needs at least 3 samples on each side");
  require(source_cols >= 1, "the samples have no columns; each row must hold at least one value");
  require(options.rank >= 1, "rank is ", options.rank, "; it must be at least 1");
  require(options.permutations >= 0, "permutations is ", options.permutations, "; it must be 0 or more");
  require(options.level > 0 && options.level < 1, "level is ", options.level, "; it must be in (0, 1)");
}

}  // namespace

template <Storage Scalar>
ShiftTest shift_test(const ConstBlockView<Scalar>& source, const ConstBlockView<Scalar>& target,
                     const ShiftTestOptions& options) {
  check(source.cols(), target.cols(), source.rows(), target.rows(), options);
  check_finite<Scalar>(source, "source");
  check_finite<Scalar>(target, "target");
  const Index n1 = source.rows(), n2 = target.rows(), n = n1 + n2, d = source.cols();
  const Groups groups{n1, n2, 1.0 / static_cast<double>(n1) + 1.0 / static_cast<double>(n2)};
  ShiftTest out{.samples_source = n1, .samples_target = n2, .dim = d, .permutations = options.permutations};

  // All samples about their common mean, and each about that of its own set.
  Dense pooled(n, d);
  pooled.topRows(n1) = source.template cast<double>();
  pooled.bottomRows(n2) = target.template cast<double>();
  pooled.rowwise() -= mean_about<double>(Block<double>(pooled), 0, {}).transpose();
  Dense own = pooled;
  own.topRows(n1).rowwise() -= pooled.topRows(n1).colwise().mean().eval();
  own.bottomRows(n2).rowwise() -= pooled.bottomRows(n2).colwise().mean().eval();
  const double trace = own.squaredNorm() / static_cast<double>(n - 2);

  // The leading directions of all samples, which no permutation of them changes.
  const Index most = std::min({options.rank, d, n - 1});
  const Block<double> leading = start_from_features<double>(Block<double>(pooled), most);
  const Eigen::VectorXd lengths = leading.colwise().norm().transpose();
  Index rank = 0;
  while (rank < most && lengths(rank) > 100 * eps * lengths(0) * std::sqrt(static_cast<double>(d))) ++rank;
  const Dense basis = leading.leftCols(rank) * lengths.head(rank).cwiseInverse().asDiagonal();
  out.rank = rank;

  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index(0));

  // Means, in all directions. tr Sigma^2 without the bias of its plug-in, for normal samples.
  const Eigen::VectorXd shift = mean_difference(pooled, order, groups);
  const double freedom = static_cast<double>(n - 2);
  const double squares = squared_gram_norm(own) / (freedom * freedom);
  const double unbiased = freedom * freedom / ((freedom - 1) * (freedom + 2)) * (squares - trace * trace / freedom);
  // Between its least value for that trace and the plug-in.
  const double trace_squared = std::clamp(unbiased, std::min(squares, trace * trace / static_cast<double>(d)), squares);
  out.mean = against_theory(shift.squaredNorm(), groups.c * trace, 2 * groups.c * groups.c * trace_squared);

  // Covariances, in the leading ones.
  const Dense inside = own * basis;
  const double m1 = static_cast<double>(n1), m2 = static_cast<double>(n2);
  const CovarianceStatistics seen = compare_covariances(inside, order, groups);
  const Small within =
      (static_cast<double>(n1 - 1) * seen.source + static_cast<double>(n2 - 1) * seen.target) / freedom;
  out.explained = trace > 0 ? within.trace() / trace : 1.0;
  SmallVector spectrum;
  require_converged(symmetric_eigenvalues(within, spectrum), "eigenvalues of the pooled covariance");
  const NoiseMoments noise = covariance_noise(shrunk(spectrum.cwiseMax(0.0), freedom), groups.c);
  out.covariance = against_theory(seen.distance, noise.mean, noise.variance);

  // Each direction in units of its own noise.
  const Eigen::ArrayXd variances = within.diagonal().array().max(std::numeric_limits<double>::min());
  const Eigen::ArrayXd mean_units = (groups.c * variances).sqrt(),
                       deviation_units = variances * std::sqrt(2 * groups.c);
  const auto mean_zs = [&](const Eigen::VectorXd& difference) -> Eigen::ArrayXd {
    return (basis.transpose() * difference).array() / mean_units;
  };
  const auto deviation_zs = [&](const CovarianceStatistics& found) -> Eigen::ArrayXd {
    return (found.target.diagonal() - found.source.diagonal()).array() / deviation_units;
  };
  const Eigen::ArrayXd mean_z = mean_zs(shift), deviation_z = deviation_zs(seen);
  // To compare directions with each other, in units that no permutation changes: the variances of all samples together.
  // (Those within the sets are small just where the sets happen to differ, and the list had a level of 6 to 9 %.)
  const Eigen::ArrayXd total =
      (pooled * basis).colwise().squaredNorm().transpose().array() / static_cast<double>(n - 1);
  const Eigen::ArrayXd common_units = total.max(std::numeric_limits<double>::min()).sqrt();
  const auto common_zs = [&](const Eigen::VectorXd& difference) -> Eigen::ArrayXd {
    return (basis.transpose() * difference).array().abs() / common_units;
  };
  const Eigen::ArrayXd mean_moved = common_zs(shift);

  // The rows to exchange: about the mean of their own set, scaled so that each has the covariance of the distribution.
  // Without it a set of few samples would look tight beside one of many. (Rows that are also uncorrelated, by an
  // orthogonal transformation, give an exact test for normal samples and a level of 17 % for heavy tails at n < d.)
  Dense scaled = inside;
  scaled.topRows(n1) *= std::sqrt(m1 / (m1 - 1));
  scaled.bottomRows(n2) *= std::sqrt(m2 / (m2 - 1));
  Index means_beyond = 0, covariances_beyond = 0;
  Eigen::ArrayXi mean_beyond = Eigen::ArrayXi::Zero(rank), deviation_beyond = mean_beyond;
  // No less, up to the rounding in which a permutation that changes nothing may differ.
  constexpr double slack = 1 - 1e-9;
  for (Index k = 0; k < options.permutations; ++k) {
    if (options.between) options.between();
    const std::vector<Index> permuted = shuffled(n, options.seed, static_cast<std::uint64_t>(k) + 1);
    const Eigen::VectorXd difference = mean_difference(pooled, permuted, groups);
    const CovarianceStatistics found = compare_covariances(scaled, permuted, groups);
    means_beyond += difference.squaredNorm() >= slack * out.mean.observed;
    covariances_beyond += found.distance >= slack * out.covariance.observed;
    if (rank == 0) continue;
    const double largest_mean = common_zs(difference).maxCoeff();
    const double largest_deviation = deviation_zs(found).abs().maxCoeff();
    mean_beyond += (largest_mean >= slack * mean_moved).cast<int>();
    deviation_beyond += (largest_deviation >= slack * deviation_z.abs()).cast<int>();
  }
  const bool permuted = options.permutations > 0;
  const auto share = [&](Index beyond) {
    return static_cast<double>(1 + beyond) / static_cast<double>(1 + options.permutations);
  };
  if (permuted) {
    out.mean.p_permutation = share(means_beyond);
    out.covariance.p_permutation = share(covariances_beyond);
  }
  const double directions = static_cast<double>(rank);
  for (Index i = 0; i < rank; ++i) {
    MovedDirection moved{.number = i, .mean_shift = basis.col(i).dot(shift), .mean_z = mean_z(i)};
    moved.deviation_source = std::sqrt(seen.source(i, i));
    moved.deviation_target = std::sqrt(seen.target(i, i));
    moved.deviation_z = deviation_z(i);
    moved.mean_p = permuted ? share(mean_beyond(i)) : std::min(1.0, directions * two_sided_normal(mean_z(i)));
    moved.deviation_p =
        permuted ? share(deviation_beyond(i)) : std::min(1.0, directions * two_sided_normal(deviation_z(i)));
    if (std::min(moved.mean_p, moved.deviation_p) > options.level / 2) continue;  // two lists in one
    moved.direction = basis.col(i);
    out.directions.push_back(std::move(moved));
  }
  const auto key = [](const MovedDirection& moved) {
    return std::pair{std::min(moved.mean_p, moved.deviation_p),
                     -std::max(std::abs(moved.mean_z), std::abs(moved.deviation_z))};
  };
  std::stable_sort(out.directions.begin(), out.directions.end(),
                   [&](const MovedDirection& a, const MovedDirection& b) { return key(a) < key(b); });
  return out;
}

template ShiftTest shift_test<float>(const ConstBlockView<float>&, const ConstBlockView<float>&,
                                     const ShiftTestOptions&);
template ShiftTest shift_test<double>(const ConstBlockView<double>&, const ConstBlockView<double>&,
                                      const ShiftTestOptions&);

}  // namespace itspace
