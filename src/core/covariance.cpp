// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/leading_pairs.hpp"
#include "core/require.hpp"
#include "core/truncation.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/pool.hpp"
#include "kernels/small_sweeps.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace itspace {
namespace {

template <Storage Scalar>
void check_square(const ConstBlockView<Scalar>& sigma) {
  require(sigma.rows() == sigma.cols(), "the covariance is ", sigma.rows(), " x ", sigma.cols(), "; it must be square");
  check_finite<Scalar>(sigma, "covariance");
}

// The lower triangle in double, which is what LAPACK reads; symmetric in exact arithmetic.
template <Storage Scalar>
Dense widened(const ConstBlockView<Scalar>& sigma) {
  check_square<Scalar>(sigma);
  return sigma.template cast<double>();
}

// The shortest text that reads back as the same number: two entries that differ look different.
template <Storage Scalar>
std::string digits(Scalar value) {
  char out[48];
  return {out, std::to_chars(out, std::end(out), value).ptr};
}

// Entries are compared with those across the diagonal by tiles, so that both triangles are read along cache lines, and
// by strips of tiles on all threads.
constexpr Index tile_side = 32;
template <Storage Scalar>
using Tiled = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor, tile_side, tile_side>;

struct Tile {
  Index first, left, rows, cols;

  auto below(auto&& matrix) const { return matrix.block(first, left, rows, cols); }
  auto above(auto&& matrix) const { return matrix.block(left, first, cols, rows); }
  // below - above', which is read by rows first: at a power of two these all fall on the same few lines of a cache.
  template <Storage Scalar>
  Tiled<Scalar> difference(const ConstBlockView<Scalar>& matrix) const {
    const Tiled<Scalar> read = above(matrix);
    return below(matrix) - read.transpose();
  }
};

std::size_t strips_of(Index dim) {
  return static_cast<std::size_t>((dim + tile_side - 1) / tile_side);
}

// visit(strip, tile) for all tiles on the diagonal and below; those of a strip in order.
template <class Visit>
void for_lower_tiles(Index dim, const Visit& visit) {
  kernels::run_parts(static_cast<Index>(strips_of(dim)), kernels::threads_for_entries(dim * dim), [&](Index strip) {
    const Index first = strip * tile_side;
    for (Index left = 0; left <= first; left += tile_side)
      visit(static_cast<std::size_t>(strip),
            Tile{first, left, std::min(tile_side, dim - first), std::min(tile_side, dim - left)});
  });
}

void check_values(const Eigen::VectorXd& values, const char* what) {
  for (Index i = 0; i < values.size(); ++i)
    require(std::isfinite(values(i)), what, "[", i, "] is ", values(i), "; all values must be finite");
}

void check_eps(double eps) {
  require(eps >= 0 && std::isfinite(eps), "eps is ", eps,
          "; the rounding that is allowed for must be 0 or more and finite. Leave it out for that of the storage type");
}

void check_count(Index count, const char* what) {
  require(count >= 0, what, " is ", count, "; it must be 0 or more");
}

}  // namespace

template <Storage Scalar>
Block<Scalar> covariance(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  check_finite<Scalar>(features, "features");
  return features_covariance<Scalar>(features, gather_moments<Scalar>(features, weights)).template cast<Scalar>();
}

template <Storage Scalar>
Block<double> centred_factor(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  check_finite<Scalar>(features, "features");
  const Moments moments = gather_moments<Scalar>(features, weights);
  Dense rows(features.rows(), features.cols());
  centred_rows<Scalar>(features, moments, 0, rows);
  return rows.transpose();
}

template <Storage Scalar>
Block<double> compact_factor(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  if (features.rows() <= features.cols()) return centred_factor<Scalar>(features, weights);
  check_finite<Scalar>(features, "features");
  return features_triangle<Scalar>(features, gather_moments<Scalar>(features, weights)).transpose();
}

template <Storage Scalar>
Vector mean(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  check_finite<Scalar>(features, "features");
  return gather_moments<Scalar>(features, weights).mean;
}

template <Storage Scalar>
Vector deviations(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  check_finite<Scalar>(features, "features");
  const Moments moments = gather_moments<Scalar>(features, weights);
  Eigen::RowVectorXd squares = Eigen::RowVectorXd::Zero(features.cols());
  for (Index i = 0; i < features.rows(); ++i) {
    const double scale = moments.scale_of(i);
    if (scale > 0)
      squares += (scale * (features.row(i).template cast<double>() - moments.mean.transpose())).cwiseAbs2();
  }
  return squares.cwiseSqrt().transpose();
}

double effective_samples(Index rows, const Eigen::VectorXd& weights) {
  if (weights.size() == 0) return static_cast<double>(rows);
  check_features(rows, 1, weights);
  const Eigen::VectorXd shares = weights / weights.maxCoeff();  // squares stay in range
  return shares.sum() * shares.sum() / shares.squaredNorm();
}

namespace {

// 1/deviation, and 0 for a constant feature.
Eigen::ArrayXd inverse_deviations(const Eigen::VectorXd& deviations, Index d) {
  require(deviations.size() == d, "there are ", deviations.size(), " deviations for ", d,
          " features; give one for each");
  for (Index j = 0; j < d; ++j)
    require(deviations(j) >= 0 && std::isfinite(deviations(j)), "deviations[", j, "] is ", deviations(j),
            "; standard deviations are 0 or more and finite");
  return deviations.unaryExpr([](double deviation) { return deviation > 0 ? 1 / deviation : 0.0; }).array();
}

}  // namespace

template <Storage Scalar>
void standardise_features(const Eigen::VectorXd& mean, const Eigen::VectorXd& deviations, BlockView<Scalar> features) {
  const Eigen::ArrayXd factors = inverse_deviations(deviations, features.cols());
  require(mean.size() == features.cols(), "the mean has ", mean.size(), " values for ", features.cols(),
          " features; they must agree");
  for (Index i = 0; i < features.rows(); ++i)
    features.row(i) = ((features.row(i).template cast<double>() - mean.transpose()).array() * factors.transpose())
                          .matrix()
                          .template cast<Scalar>();
}

template <Storage Scalar>
void standardise_covariance(const Eigen::VectorXd& deviations, BlockView<Scalar> sigma) {
  require(sigma.rows() == sigma.cols(), "the covariance is ", sigma.rows(), " x ", sigma.cols(), "; it must be square");
  const Eigen::ArrayXd factors = inverse_deviations(deviations, sigma.cols());
  for (Index i = 0; i < sigma.rows(); ++i)
    sigma.row(i) = (sigma.row(i).template cast<double>().array() * factors.transpose() * factors(i))
                       .matrix()
                       .template cast<Scalar>();
}

template <Storage Scalar>
void symmetrise(BlockView<Scalar> matrix) {
  require(matrix.rows() == matrix.cols(), "the matrix is ", matrix.rows(), " x ", matrix.cols(), "; it must be square");
  check_finite<Scalar>(matrix, "matrix");
  for_lower_tiles(matrix.rows(), [&](std::size_t, const Tile& at) {
    if (at.first == at.left) {
      for (Index i = at.first; i < at.first + at.rows; ++i)
        for (Index j = at.first; j < i; ++j) matrix(i, j) = matrix(j, i) = (matrix(i, j) + matrix(j, i)) / 2;
      return;
    }
    const Tiled<Scalar> average = (at.below(matrix) + at.above(matrix).transpose()) / 2;
    at.below(matrix) = average;
    at.above(matrix) = average.transpose();
  });
}

template <Storage Scalar>
double make_positive_definite(BlockView<Scalar> sigma) {
  Dense wide = widened<Scalar>(sigma);
  double smallest = 0;
  if (wide.size() == 0) return 0;
  require_converged(smallest_eigenvalue(wide, smallest), "eigenvalues of the covariance");
  if (smallest > 0) return 0;
  const double delta = -smallest + 1e-8;
  sigma.diagonal().array() += static_cast<Scalar>(delta);
  return delta;
}

template <Storage Scalar>
void check_finite(const ConstBlockView<Scalar>& matrix, std::string_view what) {
  if (kernels::all_finite<Scalar>(matrix)) return;
  for (Index i = 0; i < matrix.rows(); ++i) {
    for (Index j = 0; j < matrix.cols(); ++j)
      require(std::isfinite(matrix(i, j)), what, "[", i, ", ", j, "] is ", matrix(i, j),
              "; all values must be finite. Remove or replace such rows first");
  }
}

template <Storage Scalar>
bool is_exactly_symmetric(const ConstBlockView<Scalar>& matrix) {
  std::atomic<bool> differs = false;
  for_lower_tiles(matrix.rows(), [&](std::size_t, const Tile& at) {
    if (differs.load(std::memory_order_relaxed)) return;
    // NaN is not 0, and neither is the difference of two infinities.
    if (!(at.difference(matrix).cwiseAbs().sum() == 0)) differs.store(true, std::memory_order_relaxed);
  });
  return !differs;
}

template <Storage Scalar>
Asymmetry largest_asymmetry(const ConstBlockView<Scalar>& matrix) {
  std::vector<Asymmetry> worst(strips_of(matrix.rows()));
  for_lower_tiles(matrix.rows(), [&](std::size_t strip, const Tile& at) {
    const Tiled<Scalar> difference = at.difference(matrix);
    const auto here = static_cast<double>(difference.cwiseAbs().maxCoeff());
    if (here <= worst[strip].size) return;
    Index row = 0, col = 0;
    difference.cwiseAbs().maxCoeff(&row, &col);
    worst[strip] = {here, std::max(at.first + row, at.left + col), std::min(at.first + row, at.left + col)};
  });
  // The first of several that are alike, whoever found it.
  Asymmetry most;
  for (const Asymmetry& of_strip : worst)
    if (of_strip.size > most.size) most = of_strip;
  return most;
}

template <Storage Scalar>
double symmetry_limit(const ConstBlockView<Scalar>& sigma, double eps) {
  return static_cast<double>(sigma.rows()) * eps * static_cast<double>(sigma.cwiseAbs().maxCoeff());
}

template <Storage Scalar>
bool is_symmetric(const ConstBlockView<Scalar>& sigma, double eps) {
  check_eps(eps);
  const Asymmetry worst = largest_asymmetry<Scalar>(sigma);
  return worst.size == 0 || worst.size <= symmetry_limit<Scalar>(sigma, eps);
}

template <Storage Scalar>
Asymmetry check_symmetric(const ConstBlockView<Scalar>& sigma, double eps, std::string_view what) {
  check_eps(eps);
  require(sigma.rows() == sigma.cols() && sigma.rows() > 0, what, " is ", sigma.rows(), " x ", sigma.cols(),
          "; it must be square and not empty. If its rows are samples, pass it as features");
  if (is_exactly_symmetric<Scalar>(sigma)) return {};
  check_finite<Scalar>(sigma, what);
  const Asymmetry worst = largest_asymmetry<Scalar>(sigma);
  const double limit = symmetry_limit<Scalar>(sigma, eps);
  const auto [size, row, col] = worst;
  require(size <= limit, what, " is not symmetric: entries [", row, ", ", col, "] = ", digits(sigma(row, col)),
          " and [", col, ", ", row, "] = ", digits(sigma(col, row)), " differ by ", size, " (limit ", limit,
          "). Pass a covariance, average it with its transpose, or pass the features it came from");
  return worst;
}

template <Storage Scalar>
void check_covariance(const ConstBlockView<Scalar>& sigma, double eps, double ridge) {
  if (ridge != 0) {
    Block<Scalar> shifted = sigma;
    shifted.diagonal().array() += static_cast<Scalar>(ridge);
    return check_covariance<Scalar>(shifted, eps);
  }
  check_symmetric<Scalar>(sigma, eps);
  // lambda_min >= -limit exactly where Sigma + limit I has a Cholesky factor; the eigenvalue itself is for the message,
  // and for matrices so close to the limit that rounding decides.
  const double d = static_cast<double>(sigma.rows());
  Dense wide = widened<Scalar>(sigma), lower;
  const double diagonal = std::max(0.0, wide.diagonal().maxCoeff());  // <= lambda_max
  if (diagonal == 0 && wide.isZero(0)) return;  // without variance only 0 is one; the eigenvalues would take two d^3
  wide.diagonal().array() += d * eps * diagonal;
  if (diagonal > 0 && lower_cholesky(wide, lower)) return;
  wide = lower = widened<Scalar>(sigma);
  Eigen::VectorXd largest;
  double smallest = 0;
  require_converged(leading_eigenpairs(lower, 1, largest, nullptr) && smallest_eigenvalue(wide, smallest),
                    "eigenvalues of the covariance");
  check_eigenvalues(smallest, largest(0), sigma.rows(), eps);
}

void check_eigenvalues(double smallest, double largest, Index dim, double eps) {
  const double limit = static_cast<double>(dim) * eps * std::max(0.0, largest);
  require(smallest >= -limit, "the covariance is indefinite: its smallest eigenvalue is ", smallest, " (limit ", -limit,
          ", largest ", largest, "). Pass a covariance, or add a ridge of at least ", -smallest, " to its diagonal");
}

template <Storage Scalar>
Vector leading_eigenvalues(const ConstBlockView<Scalar>& sigma, Index count) {
  check_count(count, "count");
  check_square<Scalar>(sigma);
  if (const auto found = leading_pairs_of<Scalar>(sigma, count)) return found->values;
  Dense wide = sigma.template cast<double>();
  Eigen::VectorXd values;
  require_converged(leading_eigenpairs(wide, count, values, nullptr), "eigenvalues of the covariance");
  return values;
}

Vector leading_eigenvalues_of_factor(const ConstBlockView<double>& factor, Index count) {
  check_count(count, "count");
  check_finite<double>(factor, "factor");
  Dense tall = factor.rows() >= factor.cols() ? Dense(factor) : Dense(factor.transpose());
  if (const auto found = leading_part_of(tall, count)) return found->squares;
  const Dense triangle = qr_triangle(tall);
  Eigen::VectorXd values;
  require_converged(singular_values(triangle, values), "singular values of the factor");
  return values.head(std::min(count, values.size())).cwiseAbs2();
}

template <Storage Scalar, Storage Data>
Block<Scalar> truncate(const std::type_identity_t<ConstBlockView<Data>>& sigma, Index rank) {
  check_square<Data>(sigma);
  check_rank(rank, sigma.rows());
  if (const auto found = leading_pairs_of<Data>(sigma, rank)) {
    const Eigen::VectorXd roots = found->values.cwiseMax(0.0).cwiseSqrt();
    return Dense(found->vectors * roots.asDiagonal()).template cast<Scalar>();
  }
  Dense wide = sigma.template cast<double>();
  return leading_root(wide, rank).cast<Scalar>();
}

template <Storage Scalar, Storage Data>
Block<Scalar> truncate_factor(const std::type_identity_t<ConstBlockView<Data>>& factor, Index rank) {
  check_rank(rank, factor.rows());
  check_finite<Data>(factor, "factor");
  return Dense(leading_part(factor.template cast<double>(), rank)).template cast<Scalar>();
}

double floor_r(double trace, const Eigen::VectorXd& leading, Index rank) {
  require(std::isfinite(trace), "the trace is ", trace, "; it must be finite");
  check_values(leading, "leading");
  check_count(rank, "rank");
  return std::max(0.0, trace - leading.head(std::min(rank, leading.size())).sum());
}

double floor_r(const Eigen::VectorXd& eigenvalues, Index rank) {
  check_values(eigenvalues, "eigenvalues");
  check_count(rank, "rank");
  Eigen::VectorXd ascending = eigenvalues.cwiseMax(0.0);
  std::sort(ascending.begin(), ascending.end());
  return ascending.head(std::max<Index>(0, ascending.size() - rank)).sum();
}

double gap_r(double objective, double start_objective, double floor) {
  if (!std::isfinite(objective) || !std::isfinite(start_objective) || !std::isfinite(floor))
    return std::numeric_limits<double>::quiet_NaN();  // an objective that was not evaluated has no gap
  const double ahead = start_objective - floor;
  return ahead > 0 ? (objective - floor) / ahead : 0.0;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                              \
  template Block<Scalar> covariance<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);              \
  template Block<double> centred_factor<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);          \
  template Block<double> compact_factor<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);          \
  template Vector mean<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);                           \
  template Vector deviations<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);                     \
  template void standardise_features<Scalar>(const Eigen::VectorXd&, const Eigen::VectorXd&, BlockView<Scalar>); \
  template void standardise_covariance<Scalar>(const Eigen::VectorXd&, BlockView<Scalar>);                       \
  template void symmetrise<Scalar>(BlockView<Scalar>);                                                           \
  template double make_positive_definite<Scalar>(BlockView<Scalar>);                                             \
  template void check_finite<Scalar>(const ConstBlockView<Scalar>&, std::string_view);                           \
  template bool is_exactly_symmetric<Scalar>(const ConstBlockView<Scalar>&);                                     \
  template Asymmetry largest_asymmetry<Scalar>(const ConstBlockView<Scalar>&);                                   \
  template double symmetry_limit<Scalar>(const ConstBlockView<Scalar>&, double);                                 \
  template bool is_symmetric<Scalar>(const ConstBlockView<Scalar>&, double);                                     \
  template Asymmetry check_symmetric<Scalar>(const ConstBlockView<Scalar>&, double, std::string_view);           \
  template void check_covariance<Scalar>(const ConstBlockView<Scalar>&, double, double);                         \
  template Vector leading_eigenvalues<Scalar>(const ConstBlockView<Scalar>&, Index);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                  \
  template Block<Scalar> truncate<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, Index); \
  template Block<Scalar> truncate_factor<Scalar, Data>(const std::type_identity_t<ConstBlockView<Data>>&, Index);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
ITSPACE_INSTANTIATE(float, double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
