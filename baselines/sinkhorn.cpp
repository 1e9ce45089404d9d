// SPDX-License-Identifier: Apache-2.0
#include "baselines/sinkhorn.hpp"

#include "baselines/dense_algebra.hpp"
#include "baselines/dense_methods.hpp"
#include "baselines/partial_eigen.hpp"
#include "baselines/timed_log.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"

#include <itspace/covariance.hpp>
#include <itspace/random.hpp>

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace itspace::baselines {
namespace {

// ||x_i - y_j||^2 = |x_i|^2 + |y_j|^2 - 2 x_i'y_j, with both sets centred at the mean of the second, which keeps the
// cancellation small. Never below 0.
Small squared_distances(const ConstBlockView<double>& source, const ConstBlockView<double>& target) {
  const Eigen::RowVectorXd centre = target.colwise().mean();
  const Small x = source.rowwise() - centre, y = target.rowwise() - centre;
  Small cost = product(x, y, Op::plain, Op::transposed);
  cost *= -2;
  cost.colwise() += x.rowwise().squaredNorm();
  cost.rowwise() += y.rowwise().squaredNorm().transpose();
  return cost.cwiseMax(0.0);
}

// y = op(a) x
SmallVector multiply(const Small& a, const SmallVector& x, CBLAS_TRANSPOSE op) {
  SmallVector y(op == CblasNoTrans ? a.rows() : a.cols());
  cblas_dgemv(CblasColMajor, op, blas_int(a.rows()), blas_int(a.cols()), 1.0, a.data(), blas_int(a.rows()), x.data(), 1,
              0.0, y.data(), 1);
  return y;
}

// Below e^-600 an entry counts for nothing; as a subnormal number it would slow every product down a hundredfold.
constexpr double least_exponent = -600;

double largest_change(const SmallVector& a, const SmallVector& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

}  // namespace

Sinkhorn::Sinkhorn(const ConstBlockView<double>& source, const ConstBlockView<double>& target, double epsilon)
    : target_(target) {
  require(source.rows() >= 1 && target.rows() >= 1 && source.cols() >= 1 && source.cols() == target.cols(),
          "the samples are ", source.rows(), " x ", source.cols(), " and ", target.rows(), " x ", target.cols(),
          "; both need rows, and the same number of columns");
  require(std::isfinite(epsilon) && epsilon > 0, "epsilon is ", epsilon,
          "; it is a share of the mean cost and must be positive");
  check_finite<double>(source, "source");
  check_finite<double>(target, "target");
  scaled_cost_ = squared_distances(source, target);
  const double mean_cost = scaled_cost_.mean();
  epsilon_ = epsilon * mean_cost;
  if (!(epsilon_ > 0)) epsilon_ = epsilon;  // all samples are one point: any plan is optimal
  require(std::isfinite(1 / epsilon_) && scaled_cost_.maxCoeff() / epsilon_ < std::numeric_limits<double>::max(),
          "epsilon is ", epsilon, " of a mean cost of ", mean_cost, ", too small to divide by; raise it");
  scaled_cost_ /= epsilon_;
  f_ = SmallVector::Zero(source.rows());
  g_ = SmallVector::Zero(target.rows());
}

// Potentials are kept in units of epsilon, costs too: log P_ij = f_i + g_j - c_ij - log n - log m.
//
// f_i = -log( (1/m) sum_j exp(g_j - c_ij) ), column by column so that memory is read in order.
void Sinkhorn::update_source_potential() {
  SmallVector largest = SmallVector::Constant(f_.size(), -std::numeric_limits<double>::infinity());
  for (Index j = 0; j < g_.size(); ++j) largest = largest.array().max(g_(j) - scaled_cost_.col(j).array());
  Eigen::ArrayXd sum = Eigen::ArrayXd::Zero(f_.size());
  for (Index j = 0; j < g_.size(); ++j)
    sum += (g_(j) - scaled_cost_.col(j).array() - largest.array()).max(least_exponent).exp();
  f_ = -(largest.array() + (sum / double(g_.size())).log());
}

// g_j = -log( (1/n) sum_i exp(f_i - c_ij) )
void Sinkhorn::update_target_potential() {
  Eigen::ArrayXd exponent(f_.size());
  for (Index j = 0; j < g_.size(); ++j) {
    exponent = f_.array() - scaled_cost_.col(j).array();
    const double largest = exponent.maxCoeff();
    g_(j) = -(largest + std::log((exponent - largest).max(least_exponent).exp().sum() / double(f_.size())));
  }
}

// exp(f_i + g_j - c_ij)
Small Sinkhorn::kernel() const {
  Small kernel(f_.size(), g_.size());
  for (Index j = 0; j < g_.size(); ++j)
    kernel.col(j) = (f_.array() + g_(j) - scaled_cost_.col(j).array()).max(least_exponent).exp();
  return kernel;
}

// The exponentials are nearly all of the work. Once the potentials have settled to within a few epsilon, iterations
// multiply by the kernel at the current potentials instead (the same iteration: u = exp(df), v = exp(dg)), and u and v
// are absorbed into the potentials long before anything can overflow (Schmitzer 2019).
void Sinkhorn::iterate(Index times) {
  constexpr double settled = 5, absorb_beyond = 50, not_to_be_trusted = 300;
  const double n = double(f_.size()), m = double(g_.size());
  while (times > 0) {
    if (last_change_ > settled) {
      const SmallVector f = f_, g = g_;
      update_source_potential();
      update_target_potential();
      last_change_ = std::max(largest_change(f, f_), largest_change(g, g_));
      --times;
      continue;
    }
    const Small k = kernel();
    SmallVector u = SmallVector::Ones(f_.size()), v = SmallVector::Ones(g_.size());
    double drift = 0;
    for (; times > 0 && drift < absorb_beyond; --times) {
      const SmallVector next_u = m * multiply(k, v, CblasNoTrans).cwiseInverse();
      const SmallVector next_v = n * multiply(k, next_u, CblasTrans).cwiseInverse();
      drift = std::max(next_u.array().log().abs().maxCoeff(), next_v.array().log().abs().maxCoeff());
      if (!(drift < not_to_be_trusted)) {  // a row of the kernel has underflowed: back to logarithms
        last_change_ = std::numeric_limits<double>::infinity();
        break;
      }
      u = next_u;
      v = next_v;
    }
    f_.array() += u.array().log();
    g_.array() += v.array().log();
  }
}

Small Sinkhorn::plan() const {
  return kernel() / (double(f_.size()) * double(g_.size()));
}

double Sinkhorn::marginal_error() const {
  const Small p = plan();
  return (p.rowwise().sum().array() - 1 / double(f_.size())).abs().sum() +
         (p.colwise().sum().array() - 1 / double(g_.size())).abs().sum();
}

Block<double> Sinkhorn::barycentric_projection() const {
  const Small p = kernel();
  const Small sums = product(p, target_);
  const SmallVector inverse_mass = p.rowwise().sum().cwiseInverse();
  return inverse_mass.asDiagonal() * sums;
}

namespace {

// Rows minus their mean, over sqrt(n - 1), as a d x n factor of the covariance.
Small centred_columns(const ConstBlockView<double>& samples) {
  const Eigen::RowVectorXd centre = samples.colwise().mean();
  return (samples.rowwise() - centre).transpose() / std::sqrt(double(std::max<Index>(1, samples.rows() - 1)));
}

Block<double> truncated(const Small& factor, Index rank, Index& passes) {
  return factor_of(leading_pairs_of_product(factor, SmallVector::Ones(factor.cols()), rank, passes));
}

void check_options(Index dim, const SinkhornOptions& options) {
  require(options.rank >= 1 && options.rank <= dim, "the rank is ", options.rank,
          "; it must be from 1 to the dimension, ", dim);
  require(options.steps >= 1, "the number of steps is ", options.steps, "; it must be at least 1");
  require(options.iterations_per_step >= 1, "the number of Sinkhorn iterations a step is ", options.iterations_per_step,
          "; it must be at least 1");
}

// The rows after the start.
void run(TimedLog& log, const ConstBlockView<double>& source, const ConstBlockView<double>& target,
         const SinkhornOptions& options) {
  std::optional<Sinkhorn> transport;
  for (Index k = 1; k <= options.steps; ++k) {
    const Small moved = log.update([&] {
      if (k == 1) {
        transport.emplace(source, target, options.epsilon);
        log.passes() += 1;
      }
      transport->iterate(options.iterations_per_step);
      log.passes() += 2 * options.iterations_per_step + 1;
      return centred_columns(transport->barycentric_projection());
    });
    if (!log.report(log.projection([&] { return truncated(moved, options.rank, log.passes()); }))) return;
  }
}

Small cholesky(const ConstBlockView<double>& covariance) {
  Small l = positive_definite(covariance);
  const auto d = blas_int(l.rows());
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', d, l.data(), d) != 0) {
    // The shift of D.1 is absolute; next to large variances it is lost in rounding.
    const SymmetricEigen eigen(covariance);
    const SmallVector roots = eigen.values().cwiseMax(0.0).cwiseSqrt();
    return eigen.vectors() * roots.asDiagonal();
  }
  l.triangularView<Eigen::StrictlyUpper>().setZero();
  return l;
}

Block<double> draw(const ConstBlockView<double>& covariance, Index samples, std::uint64_t seed, std::uint64_t stream) {
  Block<double> normal(samples, covariance.rows());
  Random(seed, stream).fill_normal<double>(normal);
  return product(normal, cholesky(covariance), Op::plain, Op::transposed);
}

}  // namespace

TimedResult sinkhorn(const ConstBlockView<double>& source, const ConstBlockView<double>& target,
                     const SinkhornOptions& options) {
  check_options(source.cols(), options);
  require(source.rows() >= 2 && target.rows() >= 2 && source.cols() == target.cols(), "the samples are ", source.rows(),
          " x ", source.cols(), " and ", target.rows(), " x ", target.cols(),
          "; each side needs two rows, and both the same number of columns");
  check_finite<double>(source, "source");
  check_finite<double>(target, "target");
  TimedLog log(source.cols(), options.rank, "sinkhorn", options.on_step);
  const Block<double> centred_source = source.rowwise() - Eigen::RowVectorXd(source.colwise().mean());
  const Block<double> centred_target = target.rowwise() - Eigen::RowVectorXd(target.colwise().mean());
  Index not_counted = 0;
  if (log.report(truncated(centred_columns(source), options.rank, not_counted)))
    run(log, centred_source, centred_target, options);
  return log.finish(centred_target.squaredNorm() / double(target.rows() - 1));
}

TimedResult sinkhorn_gaussian(const ConstBlockView<double>& start, const ConstBlockView<double>& target, Index samples,
                              std::uint64_t seed, const SinkhornOptions& options) {
  check_symmetric(target, target.rows(), "the target");
  check_symmetric(start, target.rows(), "the start");
  check_options(target.rows(), options);
  require(samples >= 2, "the number of samples is ", samples, "; it must be at least 2");
  TimedLog log(target.rows(), options.rank, "sinkhorn_gaussian", options.on_step);
  Index not_counted = 0;
  if (log.report(leading_factor(start, options.rank, not_counted))) {
    const Block<double> to = log.preprocessing([&] { return draw(target, samples, seed, 1); });
    const Block<double> from = log.update([&] {
      log.passes() += 2;  // a Cholesky factorisation and a product
      return draw(start, samples, seed, 0);
    });
    run(log, from, to, options);
  }
  return log.finish(target.trace());
}

}  // namespace itspace::baselines
