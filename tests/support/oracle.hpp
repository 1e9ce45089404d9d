// SPDX-License-Identifier: Apache-2.0
//
// The oracle: every quantity of the method from its definition, in long double, sharing no line with the library.
//
// It works with a factor T of the target, Sigma = T T': the principal root of a given covariance, or a factor that is
// known exactly (a rank-deficient Sigma rounded to double is not rank deficient any more, and W2 sees the difference at
// sqrt(eps); there the factor is the truth). Above 64 dimensions the root in long double is too slow: objective and
// certificate then go through Y'(Sigma Y) in long double, whose 64 bits cover condition numbers up to 1e6.
#pragma once

#include <Eigen/Core>

namespace itspace::test {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using Real = long double;
using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
using RealVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

template <class Derived>
RealMatrix real(const Eigen::MatrixBase<Derived>& m) {
  return m.template cast<Real>();
}

// Building blocks.
RealMatrix principal_root(const RealMatrix& psd);      // A^(1/2), negative eigenvalues (rounding) taken as 0
RealVector eigenvalues(const RealMatrix& symmetric);   // descending
RealVector singular_values(const RealMatrix& matrix);  // descending
Real nuclear_norm(const RealMatrix& matrix);
Real spectral_norm(const RealMatrix& matrix);
Matrix symmetric_power(const Matrix& psd, double exponent);
double condition_number(const Matrix& matrix);  // the largest singular value over the smallest
RealMatrix polar(const RealMatrix& matrix);     // U V' of the compact SVD: a maximiser of tr(Q'A) over ||Q||_2 <= 1

// W2^2(A, B) = tr A + tr B - 2 tr((A^(1/2) B A^(1/2))^(1/2)); in double above 64 dimensions.
Real w2_squared(const Matrix& a, const Matrix& b);
// W2^2(T_A T_A', T_B T_B') = ||T_A||^2 + ||T_B||^2 - 2 ||T_B' T_A||_*: exact where the covariances are singular.
Real factor_w2_squared(const RealMatrix& factor_a, const RealMatrix& factor_b);

// The same distance, not squared, as min_R ||T_A - T_B R|| over orthogonal R (Procrustes): a sum of squares, which
// keeps its digits where the two nearly agree.
Real procrustes_distance(const RealMatrix& factor_a, const RealMatrix& factor_b);

// (1/c) sum_i w_i (z_i - mu)(z_i - mu)' through its centred factor, c = sum w - (sum w^2)/(sum w).
RealVector weighted_mean(const Matrix& features, const Vector& weights = {});
RealMatrix centred_factor_of(const Matrix& features, const Vector& weights = {});

// The symmetric matrix A with A X A = S: X^(-1/2) (X^(1/2) S X^(1/2))^(1/2) X^(-1/2).
Matrix monge_map(const Matrix& x, const Matrix& s);

class Oracle {
 public:
  Oracle() = default;  // of nothing
  static Oracle of_covariance(const Matrix& sigma);
  static Oracle of_factor(const RealMatrix& factor);
  static Oracle of_factor(const Matrix& factor) { return of_factor(real(factor)); }

  Index dim() const { return dim_; }
  Real trace() const { return trace_; }
  RealMatrix covariance() const;

  Real nuclear(const Matrix& y) const;                     // ||Sigma^(1/2) Y||_*
  Real objective(const Matrix& y) const;                   // F(Y) = ||Y||^2 + tr Sigma - 2 ||Sigma^(1/2) Y||_*
  RealMatrix certificate_factor(const Matrix& y) const;    // B = Sigma^(1/2) polar(Sigma^(1/2) Y)
  Real majorizer(const Matrix& y, const Matrix& b) const;  // ||Y - B||^2 + tr Sigma - ||B||^2
  Real floor(Index rank) const;                            // the sum of all eigenvalues of Sigma but the `rank` largest

 private:
  Index dim_ = 0;
  Real trace_ = 0;
  RealMatrix factor_;  // T, where there is one
  RealMatrix sigma_;   // Sigma, where T would be too slow
};

}  // namespace itspace::test
