// SPDX-License-Identifier: Apache-2.0
//
// The moments of a feature set (one sample per row, with weights or without): mean, normaliser, centred rows, and the
// covariance or the triangle that stands for it, in double.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include "core/dense.hpp"

#include <string_view>

namespace itspace {

struct Moments {
  Eigen::VectorXd mean;        // mu
  Eigen::VectorXd root_scale;  // sqrt(w_i/c) of each row; one entry where all rows weigh the same
  double weight_sum = 0;       // sum w
  double normaliser = 0;       // c = sum w - (sum w^2)/(sum w)

  double scale_of(Index row) const { return root_scale(root_scale.size() == 1 ? 0 : row); }
};

// The mean about row k; empty weights weigh all rows the same. @pre row k has a weight.
template <Storage Scalar>
Eigen::VectorXd mean_about(const ConstBlockView<Scalar>& features, Index k, const Eigen::VectorXd& weights);

// What the caller was given them as, for the words of a refusal.
struct FeatureNames {
  std::string_view features = "the features", weights = "weights";
};

// Throws std::invalid_argument for fewer than two rows, or weights that are not one per row, negative, not finite, or
// positive for fewer than two rows. Empty weights weigh all rows the same.
ITSPACE_API void check_features(Index rows, Index cols, const Eigen::VectorXd& weights, const FeatureNames& names = {});

// Checks the features so.
template <Storage Scalar>
Moments gather_moments(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights);

// Rows [first, first + out.rows()) of (Z - 1 mu') diag(root_scale), in double.
template <Storage Scalar>
void centred_rows(const ConstBlockView<Scalar>& features, const Moments& moments, Index first, Eigen::Ref<Dense> out);

// All of them, one sample per column: the d x n factor T with T T' = Sigma.
template <Storage Scalar>
Dense centred_samples(const ConstBlockView<Scalar>& features, const Moments& moments);

// Their covariance, in double.
template <Storage Scalar>
Dense features_covariance(const ConstBlockView<Scalar>& features, const Moments& moments);

// The triangle of the covariance through its smaller side: R'R = Sigma (d x d) where n > d, R'R = T'T (n x n) where
// n <= d and T is the centred factor. Householder over chunks, so that the features are never held twice.
template <Storage Scalar>
Dense features_triangle(const ConstBlockView<Scalar>& features, const Moments& moments);

}  // namespace itspace
