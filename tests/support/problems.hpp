// SPDX-License-Identifier: Apache-2.0
//
// Random problems with known properties, and the scaled residuals that tests measure errors in.
#pragma once

#include "oracle.hpp"

#include <itspace/block.hpp>

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <random>
#include <vector>

namespace itspace::test {

// A seeded source of its own (not the library's), the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  double uniform();  // in (0, 1)
  double normal();
  Matrix gaussian(Index rows, Index cols);
  Matrix orthonormal(Index rows, Index cols);  // @pre cols <= rows

 private:
  std::mt19937_64 engine_;
};

enum class Spectrum {
  power_law,       // 1/i
  clustered,       // 1, 0.1 and 0.01, each several times and nearly equal
  graded,          // from 1 down to 1e-2, evenly in the logarithm
  rank_deficient,  // 1/i for the first half, then 0
};
inline constexpr Spectrum full_rank_spectra[] = {Spectrum::power_law, Spectrum::clustered, Spectrum::graded};
inline constexpr Spectrum all_spectra[] = {Spectrum::power_law, Spectrum::clustered, Spectrum::graded,
                                           Spectrum::rank_deficient};

Vector eigenvalues_of(Spectrum spectrum, Index dim);  // descending
std::ostream& operator<<(std::ostream& out, Spectrum spectrum);
// T = U diag(lambda)^(1/2) with random orthonormal U; a zero eigenvalue takes no column.
Matrix factor_with_spectrum(const Vector& lambda, Draw& draw);
// T T', exactly symmetric.
Matrix covariance_from(const Matrix& factor);
// A d x r factor with singular values from 1 to 1/kappa, evenly in the logarithm, and columns mixed by a random
// rotation, so that no scaling of columns undoes kappa. ||Y||^2 = size_squared.
Matrix factor_with_condition(Index dim, Index rank, double kappa, double size_squared, Draw& draw);
// The same, redrawn until the target T T' sees it: sqrt(lambda_max(Sigma)/h) <= 15, where h is the least energy (not 0
// for want of rank) that Sigma has in the span of Y. Products with Sigma carry rounding of eps ||Sigma||, so the scaled
// bounds are promises for such starts; a direction at the edge of what products show can lose digits on any route.
Matrix visible_factor(const Matrix& target_factor, Index rank, double kappa, double size_squared, Draw& draw);
// The same for a target of low rank: built half inside the range of Sigma, which a random start hardly meets.
Matrix factor_near_range(const Matrix& target_factor, Index rank, double kappa, double size_squared, Draw& draw);
// n samples with that covariance spectrum in a random basis, around a mean of that size in every coordinate.
Matrix features_with(Index samples, const Vector& lambda, double mean_size, Draw& draw);

template <Storage Scalar, class Derived>
Block<Scalar> block(const Eigen::MatrixBase<Derived>& m) {
  return m.template cast<Scalar>();
}

template <class Derived>
Matrix wide(const Eigen::MatrixBase<Derived>& m) {
  return m.template cast<double>();
}

// A target covariance and a start as the library gets them, rounded to Scalar, and the oracle of exactly those values.
template <Storage Scalar>
struct Problem {
  Block<Scalar> sigma;
  Block<Scalar> factor;  // T of sigma before it was rounded: the truth where the spectrum is rank deficient
  Block<Scalar> start;
  Oracle oracle;
};

struct ProblemShape {
  Index dim = 1;
  Index rank = 1;
  std::uint64_t seed = 0;
  Spectrum spectrum = Spectrum::power_law;
  double kappa = 10;  // of the start
  double scale = 1;   // of Sigma; the start is scaled by its root
};

template <Storage Scalar>
Problem<Scalar> make_problem(const ProblemShape& shape) {
  Draw draw(shape.seed * 1000003 + std::uint64_t(shape.dim * 1009 + shape.rank));
  const Vector lambda = eigenvalues_of(shape.spectrum, shape.dim) * shape.scale;
  Problem<Scalar> problem;
  problem.factor = block<Scalar>(factor_with_spectrum(lambda, draw));
  problem.sigma = block<Scalar>(covariance_from(wide(problem.factor)));
  // Not the target's size: a start that is too small or too large is the usual case.
  const double size = (0.25 + 2 * draw.uniform()) * lambda.sum();
  const auto make_start = shape.spectrum == Spectrum::rank_deficient ? factor_near_range : visible_factor;
  problem.start = block<Scalar>(make_start(wide(problem.factor), shape.rank, shape.kappa, size, draw));
  problem.oracle = shape.spectrum == Spectrum::rank_deficient ? Oracle::of_factor(wide(problem.factor))
                                                              : Oracle::of_covariance(wide(problem.sigma));
  return problem;
}

// The sizes every guarantee is tested at: all ranks where that is cheap, a few where d is large.
struct Size {
  Index dim, rank;
};
std::vector<Size> small_sizes();  // d in {1, 2, 3, 17}, r = 1..d
std::vector<Size> all_sizes();    // and d = 300 with r in {1, 16}

// Scaled residuals (LAPACK's manner): an error counts in units of eps * r * norm, and must stay below 30 of them.
inline constexpr Real ratio_limit = 30;
// The descent promise counts in units of eps * (tr Sigma + ||Y||^2), and allows 10 of them.
inline constexpr Real descent_limit = 10;

template <Storage Scalar>
inline constexpr Real eps = std::numeric_limits<Scalar>::epsilon();

inline constexpr double eps64 = std::numeric_limits<double>::epsilon();

template <Storage Scalar>
Real ratio(Real error, Index rank, Real norm) {
  return std::abs(error) / (eps<Scalar> * Real(rank) * norm);
}

template <Storage Scalar>
Real eps_units(const Oracle& oracle, const Matrix& y) {
  return eps<Scalar> * (oracle.trace() + real(y).squaredNorm());
}

}  // namespace itspace::test
