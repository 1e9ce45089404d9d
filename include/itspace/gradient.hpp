// SPDX-License-Identifier: Apache-2.0
//
// The objective F(Y) = W2^2(YY', Sigma) as a loss: its value and its gradients, without a matrix root.
//
//     dF/dY = 2 (Y - B),   B = Sigma^(1/2) polar(Sigma^(1/2) Y),
//
// and, where Sigma = T'T is the covariance of features with T = diag(rho)(Z - 1 mu'), rho_i^2 = w_i/c,
//
//     dF/dT = 2 (T - P Y'),   P = polar(T Y).
//
// Where T Y loses rank F has a kink; the compact polar factor gives the element of the subdifferential that leaves null
// directions alone, so that the gradients are finite everywhere. (Differentiating through a matrix root gives NaN
// there.)
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <type_traits>

namespace itspace {

template <Storage Scalar>
struct ObjectiveGradient {
  double objective = 0;    // F(Y)
  Block<Scalar> gradient;  // dF/dY, d x r
  double resolution = 0;   // how finely F is known in Scalar
};

// One pass over the target. @pre Y has the target's dimension, and the products are finite.
template <Storage Scalar>
ITSPACE_API ObjectiveGradient<Scalar> objective_and_gradient(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                                             const TargetArgument<Scalar>& target);

template <Storage Scalar>
struct FeaturesGradient {
  double objective = 0;             // F(Y)
  Block<Scalar> gradient;           // dF/dY, d x r
  Block<Scalar> features_gradient;  // dF/dZ, n x d
};

// The same for the covariance of features (weights as in FeaturesTarget), with the gradient in the features themselves.
template <Storage Scalar>
ITSPACE_API FeaturesGradient<Scalar> objective_and_features_gradient(
    const std::type_identity_t<ConstBlockView<Scalar>>& factor, const ConstBlockView<Scalar>& features,
    const Eigen::VectorXd& weights = {});

}  // namespace itspace
