// SPDX-License-Identifier: Apache-2.0
//
// Exact Gaussian optimal transport: W2 between covariances, with means where there are any.
//
// One rule holds for all of them (Accuracy below): the cheapest way whose bound on its own rounding is small enough,
// and behind the cheap ones the sum of squares W2^2 = ||A - B polar(B'A)||^2 with factors A, B of the two covariances,
// which keeps its digits where the trace formula has lost them. None comes out negative. Work is in double.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <functional>
#include <type_traits>

namespace itspace {

struct ITSPACE_API Distance {
  double covariance_part = 0;  // W2^2 of the centred Gaussians
  double mean_part = 0;        // ||mu_a - mu_b||^2

  double squared() const { return covariance_part + mean_part; }
  double w2() const;
};

// ||mu_a - mu_b||^2. @pre equal sizes.
ITSPACE_API double mean_distance_squared(const Eigen::VectorXd& mean_a, const Eigen::VectorXd& mean_b);

// W2^2(A A', B B') for factors d x a and d x b.
ITSPACE_API double factor_distance_squared(const ConstBlockView<double>& a, const ConstBlockView<double>& b);

// How good a distance must be: to `relative` of W2^2, or to `of_variance` of tr A + tr B, whichever is more. Accuracy{}
// asks for the sum of squares.
struct Accuracy {
  double relative = 0;
  double of_variance = 0;
};
// What every distance of the library, the program and the Python package has unless told otherwise. Relative alone, so
// that a distance that is small beside the variances keeps its digits: there no cheap route will do.
inline constexpr Accuracy default_accuracy{1e-8, 0};
inline constexpr Accuracy full_accuracy{1e-10, 0};

// W2^2(A, B) for dense covariances, by the cheapest route that is accurate enough, judged by a bound on its rounding:
//   1. tr A + tr B - 2 sum lambda_i^(1/2)(L'BL), A = LL': one Cholesky factor and symmetric eigenvalues;
//   2. tr A + tr B - 2 sum s_i(L_B'L_A) with pivoted factors, which may have fewer columns than rows;
//   3. the sum of squares, with the same factors.
// An eigenvalue below 0 counts as 0 down to -d eps32 lambda_max (a covariance rounded to float); below that, or where
// the two are not symmetric, std::invalid_argument.
template <Storage Scalar>
ITSPACE_API double dense_distance_squared(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                                          const Accuracy& accuracy = default_accuracy);

// The same, and what was seen of the two on the way: one that is positive definite beyond rounding needs no
// check_covariance. False says nothing, it was not looked for.
struct DenseDistance {
  double squared = 0;
  bool first_is_definite = false, second_is_definite = false;
};
template <Storage Scalar>
ITSPACE_API DenseDistance dense_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                                         const Accuracy& accuracy = default_accuracy);

// `count` covariances d x d, one after the other.
template <Storage Scalar>
struct StackView {
  const Scalar* data = nullptr;
  Index count = 0;
  Index dim = 0;
};

// Entry (i, j) is W2^2(a_i, b_j); every covariance is factored once, or a few times where the stacks are large.
// `between` is called before each entry (it may throw to stop).
template <Storage Scalar>
ITSPACE_API Block<double> cross_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b,
                                                  const Accuracy& accuracy = default_accuracy,
                                                  const std::function<void()>& between = {});
// Entry i is W2^2(a_i, b_i). @pre equal counts.
template <Storage Scalar>
ITSPACE_API Vector paired_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b,
                                            const Accuracy& accuracy = default_accuracy,
                                            const std::function<void()>& between = {});

// W2 of the Gaussians fitted to two feature sets, means included. Where both sides have more samples than features
// through their covariances, as long as the bound on its rounding allows it; else by the sum of squares, through the
// smaller of n and d on each side, which takes several times as long.
template <Storage Scalar>
ITSPACE_API Distance features_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                                       const Accuracy& accuracy = default_accuracy);

// F(Y) = W2^2(Y Y', Sigma). Through the factor of Sigma where it has one; for an operator alone it is accurate to
// eps * tr Sigma, which is all that products with Sigma can show.
template <Storage Scalar>
ITSPACE_API double target_distance_squared(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                           const TargetArgument<Scalar>& target);

// The point at t in [0, 1] of the Bures-Wasserstein geodesic from A A' to B B', as a factor of max(a, b) columns, at
// most d.
ITSPACE_API Block<double> geodesic_factor(const ConstBlockView<double>& a, const ConstBlockView<double>& b, double t);
// The same between dense covariances, as a covariance.
template <Storage Scalar>
ITSPACE_API Block<Scalar> geodesic(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, double t);

// E||x - Mx||^2 for x ~ N(0, A) and the optimal map M = A^(-1/2)(A^(1/2) B A^(1/2))^(1/2) A^(-1/2), the cost of the
// coupling itself: an independent check of W2^2. @pre A positive definite.
template <Storage Scalar>
ITSPACE_API double coupling_cost(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b);

}  // namespace itspace
