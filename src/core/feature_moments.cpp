// SPDX-License-Identifier: Apache-2.0
#include "core/feature_moments.hpp"

#include <itspace/threads.hpp>

#include "kernels/pool.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

namespace itspace {
namespace {

// Rows stacked under the running triangle at a time: several times its own, so that its refactoring is cheap, within a
// bound on the scratch (about 128 MiB).
Index stacked_rows(Index cols) {
  return std::clamp<Index>((Index(1) << 24) / std::max<Index>(cols, 1), 64, 4 * cols + 64);
}

// R <- triangle of [R; rows], rows by fill(block).
template <class Fill>
void stack(Dense& triangle, Index rows, Index cols, const Fill& fill) {
  Dense stacked(triangle.rows() + rows, cols);
  stacked.topRows(triangle.rows()) = triangle;
  fill(stacked.bottomRows(rows));
  triangle = qr_triangle(stacked);
}

// The triangle of centred rows [begin, end), some at a time.
template <Storage Scalar>
Dense triangle_of_rows(const ConstBlockView<Scalar>& features, const Moments& moments, Index begin, Index end) {
  const Index d = features.cols(), step = stacked_rows(d);
  Dense triangle(0, d);
  for (Index first = begin; first < end; first += step)
    stack(triangle, std::min(step, end - first), d,
          [&](Eigen::Ref<Dense> rows) { centred_rows<Scalar>(features, moments, first, rows); });
  return triangle;
}

// How many triangles of rows are made side by side, each by one thread of ours with one of BLAS's: as many as there are
// threads, where each has so many rows that one triangle more is little work, and within a bound on the scratch.
// (BLAS's own threads wait for each other in every panel of a factorisation: on a busy machine for a time slice each.)
Index triangles_at_once(Index n, Index d) {
  constexpr Index most_values = Index(1) << 26;  // 512 MiB
  if (!kernels::OneBlasThread::is_to_be_had()) return 1;
  const Index worth_it = n / (8 * d), within_memory = most_values / ((stacked_rows(d) + d) * d);
  return std::clamp<Index>(std::min(worth_it, within_memory), 1, threads());
}

}  // namespace

// z_k + sum w_i (z_i - z_k)/(sum w): the mean of equal values is that value to the last bit, and where row k outweighs
// all others beyond rounding, it is z_k. Rows of weight 0 are not read.
template <Storage Scalar>
Eigen::VectorXd mean_about(const ConstBlockView<Scalar>& features, Index k, const Eigen::VectorXd& weights) {
  const Eigen::RowVectorXd origin = features.row(k).template cast<double>();
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(features.cols());
  const bool weighted = weights.size() > 0;
  for (Index i = 0; i < features.rows(); ++i)
    if (!weighted)
      sum += features.row(i).template cast<double>() - origin;
    else if (weights(i) > 0)
      sum += weights(i) * (features.row(i).template cast<double>() - origin);
  return (origin + sum / (weighted ? weights.sum() : static_cast<double>(features.rows()))).transpose();
}

void check_features(Index rows, Index cols, const Eigen::VectorXd& weights, const FeatureNames& names) {
  require(rows >= 2, "there are ", rows, " row(s) in ", names.features,
          "; a covariance needs at least 2 samples (rows are samples)");
  require(cols >= 1, "there are no columns in ", names.features, "; each row must hold at least one value");
  if (weights.size() == 0) return;
  require(weights.size() == rows, "there are ", weights.size(), " values in ", names.weights, " for ", rows,
          " rows; give one weight per row");
  Index positive = 0;
  for (Index i = 0; i < rows; ++i) {
    require(weights(i) >= 0 && std::isfinite(weights(i)), names.weights, "[", i, "] is ", weights(i),
            "; weights must be 0 or more and finite");
    positive += weights(i) > 0;
  }
  require(positive >= 2, positive, " of the values in ", names.weights,
          " are positive; a covariance needs at least 2 rows that count");
}

template <Storage Scalar>
Moments gather_moments(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  const Index n = features.rows();
  check_features(n, features.cols(), weights);
  Moments moments;
  if (weights.size() == 0) {
    moments.mean = mean_about<Scalar>(features, 0, {});
    moments.weight_sum = static_cast<double>(n);
    moments.normaliser = moments.weight_sum - 1;
    moments.root_scale = Eigen::VectorXd::Constant(1, 1 / std::sqrt(moments.normaliser));
    return moments;
  }
  Index heaviest = 0;
  const double largest = weights.maxCoeff(&heaviest);
  // Scaling changes nothing, and squares stay in range. A row that weighs less than all digits still counts: it may
  // be one of the two that make the covariance.
  const Eigen::VectorXd scaled = (weights / largest).unaryExpr([&](double w) {
    return w > 0 ? std::max(w, std::numeric_limits<double>::min()) : 0.0;
  });
  // c = sum_i w_i (sum w - w_i)/(sum w) has no cancellation if the heaviest row's rest is summed apart.
  double rest = 0;
  for (Index i = 0; i < n; ++i)
    if (i != heaviest) rest += scaled(i);
  moments.weight_sum = 1 + rest;
  double products = rest;
  for (Index i = 0; i < n; ++i)
    if (i != heaviest) products += scaled(i) * (moments.weight_sum - scaled(i));
  moments.normaliser = products / moments.weight_sum;
  moments.mean = mean_about<Scalar>(features, heaviest, scaled);
  moments.root_scale = (scaled / moments.normaliser).cwiseSqrt();
  return moments;
}

template <Storage Scalar>
void centred_rows(const ConstBlockView<Scalar>& features, const Moments& moments, Index first, Eigen::Ref<Dense> out) {
  for (Index i = 0; i < out.rows(); ++i) {
    out.row(i) = features.row(first + i).template cast<double>() - moments.mean.transpose();
    out.row(i) *= moments.scale_of(first + i);
  }
}

template <Storage Scalar>
Dense centred_samples(const ConstBlockView<Scalar>& features, const Moments& moments) {
  Dense out(features.cols(), features.rows());
  for (Index i = 0; i < features.rows(); ++i)
    out.col(i) = moments.scale_of(i) * (features.row(i).template cast<double>().transpose() - moments.mean);
  return out;
}

template <Storage Scalar>
Dense features_covariance(const ConstBlockView<Scalar>& features, const Moments& moments) {
  Dense sum = Dense::Zero(features.cols(), features.cols()), rows;
  constexpr Index step = 1024;
  for (Index first = 0; first < features.rows(); first += step) {
    rows.resize(std::min(step, features.rows() - first), features.cols());
    centred_rows<Scalar>(features, moments, first, rows);
    add_gram(rows, sum);
  }
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  return sum;
}

template <Storage Scalar>
Dense features_triangle(const ConstBlockView<Scalar>& features, const Moments& moments) {
  const Index n = features.rows(), d = features.cols();
  if (n > d) {
    const Index parts = triangles_at_once(n, d);
    if (parts == 1) return triangle_of_rows<Scalar>(features, moments, 0, n);
    std::vector<Dense> triangles(static_cast<std::size_t>(parts));
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(parts));
    {
      const kernels::OneBlasThread blas;
      kernels::run_parts(parts, [&](Index part) {
        const auto range = kernels::part_of(n, parts, part);
        const auto at = static_cast<std::size_t>(part);
        try {
          triangles[at] = triangle_of_rows<Scalar>(features, moments, range.begin, range.end);
        } catch (...) {
          errors[at] = std::current_exception();
        }
      });
      for (const std::exception_ptr& error : errors)
        if (error) std::rethrow_exception(error);
      for (Index part = 1; part < parts; ++part)
        stack(triangles[0], d, d, [&](Eigen::Ref<Dense> rows) { rows = triangles[static_cast<std::size_t>(part)]; });
    }
    return std::move(triangles[0]);
  }
  // The rows of T are the centred columns of the features.
  Dense triangle(0, n);
  const Index step = stacked_rows(n);
  for (Index first = 0; first < d; first += step) {
    const Index count = std::min(step, d - first);
    stack(triangle, count, n, [&](Eigen::Ref<Dense> rows) {
      for (Index i = 0; i < n; ++i)
        rows.col(i) = moments.scale_of(i) * (features.row(i).segment(first, count).template cast<double>().transpose() -
                                             moments.mean.segment(first, count));
    });
  }
  return triangle;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                            \
  template Eigen::VectorXd mean_about<Scalar>(const ConstBlockView<Scalar>&, Index, const Eigen::VectorXd&);   \
  template Moments gather_moments<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);              \
  template void centred_rows<Scalar>(const ConstBlockView<Scalar>&, const Moments&, Index, Eigen::Ref<Dense>); \
  template Dense centred_samples<Scalar>(const ConstBlockView<Scalar>&, const Moments&);                       \
  template Dense features_covariance<Scalar>(const ConstBlockView<Scalar>&, const Moments&);                   \
  template Dense features_triangle<Scalar>(const ConstBlockView<Scalar>&, const Moments&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
