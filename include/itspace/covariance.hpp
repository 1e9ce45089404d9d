// SPDX-License-Identifier: Apache-2.0
//
// Covariances as matrices: building them, checking them, and their leading part.
//
// The rank-r truncation Pi_r keeps the r leading eigenpairs. floor_r, the sum of the other eigenvalues, is the smallest
// W2^2 any covariance of rank <= r can reach, and gap_r says which share of the way to it is still ahead.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <limits>
#include <string_view>
#include <type_traits>

namespace itspace {

// (1/c) sum_i w_i (z_i - mu)(z_i - mu)', exactly symmetric; weights and c as in FeaturesTarget.
template <Storage Scalar>
ITSPACE_API Block<Scalar> covariance(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {});

// The centred, scaled features as a d x n factor in double: T T' is their covariance.
template <Storage Scalar>
ITSPACE_API Block<double> centred_factor(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {});

// A factor with the same covariance as centred_factor and min(n, d) columns; an n > d set is never held twice.
template <Storage Scalar>
ITSPACE_API Block<double> compact_factor(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {});

template <Storage Scalar>
ITSPACE_API Vector mean(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {});

// The standard deviation of every feature, the root of the covariance's diagonal: exactly 0 for a constant one.
template <Storage Scalar>
ITSPACE_API Vector deviations(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {});

// How many samples of one weight would say as much: (sum w)^2/(sum w^2), which is the number of rows for equal weights.
ITSPACE_API double effective_samples(Index rows, const Eigen::VectorXd& weights = {});

// In place: features become (z - mean)/deviation, so that their covariance is the correlation matrix; a covariance
// becomes that matrix. Constant features (deviation 0) become 0. @pre sizes agree, deviations are 0 or more.
template <Storage Scalar>
ITSPACE_API void standardise_features(const Eigen::VectorXd& mean, const Eigen::VectorXd& deviations,
                                      BlockView<Scalar> features);
template <Storage Scalar>
ITSPACE_API void standardise_covariance(const Eigen::VectorXd& deviations, BlockView<Scalar> sigma);

// (A + A')/2 in place. @pre square.
template <Storage Scalar>
ITSPACE_API void symmetrise(BlockView<Scalar> matrix);

// The paper's rule for methods that need a positive definite matrix: where lambda_min <= 0 add -lambda_min + 1e-8 to
// the diagonal. Returns what was added (0 if nothing).
template <Storage Scalar>
ITSPACE_API double make_positive_definite(BlockView<Scalar> sigma);

// Throws std::invalid_argument at the first value that is NaN or Inf, naming it as `what`[row, col].
template <Storage Scalar>
ITSPACE_API void check_finite(const ConstBlockView<Scalar>& matrix, std::string_view what = "matrix");

// Whether a square matrix is finite, and symmetric to the last bit: in one sweep, which ends where it is not.
template <Storage Scalar>
ITSPACE_API bool is_exactly_symmetric(const ConstBlockView<Scalar>& matrix);

// Entry [row, col] of a square matrix, below its diagonal, differs from [col, row] by `size`, the most there is.
struct Asymmetry {
  double size = 0;
  Index row = 0, col = 0;
};
// @pre square and finite.
template <Storage Scalar>
ITSPACE_API Asymmetry largest_asymmetry(const ConstBlockView<Scalar>& matrix);

// The eps of data that comes from elsewhere: whatever its type is now, it may have been added up in float32 before.
// Files, Python, batches, distances and GPUs judge covariances by this one.
inline constexpr double rounded_to_float = std::numeric_limits<float>::epsilon();

// d*eps*max|sigma_ij|: asymmetry up to here is rounding. eps is the storage type's, or a larger one for data that was
// rounded before it came here; so everywhere below.
template <Storage Scalar>
ITSPACE_API double symmetry_limit(const ConstBlockView<Scalar>& sigma,
                                  double eps = Eigen::NumTraits<Scalar>::epsilon());

// @pre square and finite.
template <Storage Scalar>
ITSPACE_API bool is_symmetric(const ConstBlockView<Scalar>& sigma, double eps = Eigen::NumTraits<Scalar>::epsilon());

// Throws std::invalid_argument unless sigma, which the message calls `what`, is square, finite and symmetric up to that
// limit: what can be seen in one sweep over the entries. Returns the asymmetry within the limit.
template <Storage Scalar>
ITSPACE_API Asymmetry check_symmetric(const ConstBlockView<Scalar>& sigma,
                                      double eps = Eigen::NumTraits<Scalar>::epsilon(),
                                      std::string_view what = "the covariance");

// Throws std::invalid_argument unless sigma + ridge*I is square, finite, symmetric and positive semidefinite, the last
// up to d*eps*lambda_max.
template <Storage Scalar>
ITSPACE_API void check_covariance(const ConstBlockView<Scalar>& sigma, double eps = Eigen::NumTraits<Scalar>::epsilon(),
                                  double ridge = 0);

// The last of these where the extreme eigenvalues of a d x d matrix are known.
ITSPACE_API void check_eigenvalues(double smallest, double largest, Index dim, double eps);

// Eigenvalues of sigma, of the covariance of features (through the smaller of n and d), of F F': the `count` largest,
// in descending order (fewer if the matrix has fewer).
template <Storage Scalar>
ITSPACE_API Vector leading_eigenvalues(const ConstBlockView<Scalar>& sigma, Index count);
ITSPACE_API Vector leading_eigenvalues_of_factor(const ConstBlockView<double>& factor, Index count);

// Pi_r: a d x r factor of the rank-r truncation of sigma, or of F F'. @pre 1 <= rank <= d.
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API Block<Scalar> truncate(const std::type_identity_t<ConstBlockView<Data>>& sigma, Index rank);
template <Storage Scalar, Storage Data = Scalar>
ITSPACE_API Block<Scalar> truncate_factor(const std::type_identity_t<ConstBlockView<Data>>& factor, Index rank);

// tr Sigma minus the r leading eigenvalues, never below 0.
ITSPACE_API double floor_r(double trace, const Eigen::VectorXd& leading, Index rank);

// The same from all eigenvalues (of d; those left out are 0): the sum of all but the r largest, with no cancellation.
ITSPACE_API double floor_r(const Eigen::VectorXd& eigenvalues, Index rank);

// (F_k - floor)/(F_0 - floor), the paper's normalised gap. 0 where the start was already at the floor.
ITSPACE_API double gap_r(double objective, double start_objective, double floor);

}  // namespace itspace
