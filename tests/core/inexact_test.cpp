// SPDX-License-Identifier: Apache-2.0
//
// Proposition "Inexact Polar Certificates" and its sharp form (eq. inexact_sharp): a feasible certificate with gap eps
// still promises F(Y+) <= F(Y) + 2 eps - ((2 - alpha)/alpha) ||Y+ - Y||^2. The regularised Gram route (appendix B.2,
// M = (G + delta I)^(-1/2)) is such a certificate, with a gap of any size.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <Eigen/Eigenvalues>

namespace itspace::test {
namespace {

struct Reference {
  RealMatrix b;  // Sigma Y M
  Real gap, feasibility, orthogonality;
  Real kappa;  // of Sigma^(1/2) Y; forming G costs its square in the small eigenvalues, so kappa in their roots
};

// From the definition, with lambda the eigenvalues of G = Y' Sigma Y.
Reference regularised(const Matrix& sigma, const Matrix& y, Real regularization) {
  const RealMatrix w = real(sigma) * real(y);
  const RealMatrix g = real(y).transpose() * w;
  const Eigen::SelfAdjointEigenSolver<RealMatrix> eigen((g + g.transpose()) / 2);
  const auto lambda = eigen.eigenvalues().array().max(Real(0));
  const Eigen::Array<Real, Eigen::Dynamic, 1> m = (lambda + regularization * lambda.mean()).rsqrt();
  Reference reference;
  reference.b = w * eigen.eigenvectors() * m.matrix().asDiagonal() * eigen.eigenvectors().transpose();
  reference.gap = (lambda.sqrt() - m * lambda).sum();
  reference.feasibility = (m.square() * lambda).sqrt().maxCoeff();
  reference.kappa = std::sqrt(lambda.maxCoeff() / lambda.minCoeff());
  reference.orthogonality = (m.square() * lambda - 1).matrix().norm();
  return reference;
}

template <Storage Scalar>
void check_inexact(const ProblemShape& shape, double regularization, double alpha) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  AlignOptions options;
  options.route = Route::gram;
  options.gram_regularization = regularization;
  const auto result = run<Scalar>(target, p.start, 3, StepSize::alpha(alpha), options);

  const Real kappa = regularised(wide(p.sigma), wide(p.start), regularization).kappa;
  REQUIRE_LE(worst_broken_descent(p.oracle, result, alpha), descent_limit * kappa);
  for (std::size_t k = 0; k < 3; ++k) {
    const Step& step = result.trace.steps[k];
    const Matrix y = wide(result.iterates[k]);
    const Reference reference = regularised(wide(p.sigma), y, regularization);
    const Real nuclear = p.oracle.nuclear(y);
    // A gap so large that it leaves nothing to promise certifies nothing: the exact certificate is taken instead.
    const Real promised = Real(alpha) * (2 - Real(alpha)) * (reference.b - real(y)).squaredNorm() - 2 * reference.gap;
    REQUIRE_TRUE(result.trace.steps[k + 1].certified.value());
    if (promised < 1e-3L * nuclear) {
      if (promised < -1e-3L * nuclear) REQUIRE_LT(Real(step.certificate_gap), reference.gap / 2);
      continue;
    }
    // The singular values s/sqrt(s^2 + delta) of the certificate move with G by at most 1/delta.
    const Real smoothness = 1 + 1 / Real(regularization);
    // Where G leaves F unknown to far more than the rounding of its sums, the iterate is looked at again by qr.
    if (step.route != Route::gram) continue;
    REQUIRE_LT(ratio<Scalar>(step.certificate_gap - reference.gap, shape.rank, reference.kappa * nuclear), ratio_limit);
    REQUIRE_LT(ratio<Scalar>(step.feasibility - reference.feasibility, shape.rank, smoothness), ratio_limit);
    REQUIRE_LT(ratio<Scalar>(step.orthogonality - reference.orthogonality, shape.rank, smoothness), ratio_limit);
    // The objective does not depend on the certificate.
    REQUIRE_LE(std::abs(step.objective - p.oracle.objective(y)),
               descent_limit * reference.kappa * eps_units<Scalar>(p.oracle, y));
    const RealMatrix next = (1 - Real(alpha)) * real(y) + Real(alpha) * reference.b;
    REQUIRE_LT(ratio<Scalar>((real(result.iterates[k + 1]) - next).norm(), shape.rank, next.norm() + real(y).norm()),
               ratio_limit);
  }
}

RC_GTEST_PROP(Inexact, RegularisedGramFloat, ()) {
  check_inexact<float>(draw_shape(17, full_rank()), *rc::gen::element(1.0, 0.3, 0.1),
                       *rc::gen::element(0.5, 0.9, 1.0, 1.5));
}

RC_GTEST_PROP(Inexact, RegularisedGramDouble, ()) {
  check_inexact<double>(draw_shape(17, full_rank()), *rc::gen::element(1.0, 0.3, 0.1, 0.01),
                        *rc::gen::element(0.5, 0.9, 1.0, 1.5));
}

// A gap really opens, and really enters the bound: without regularisation the certificate is exact.
TEST(Inexact, RegularisationOpensTheGap) {
  const auto p = make_problem<double>({.dim = 17, .rank = 6, .seed = 3});
  const DenseTarget<double> target(p.sigma);
  const Real nuclear = p.oracle.nuclear(wide(p.start));
  double previous = 0;
  for (const double regularization : {0.0, 1e-4, 1e-2, 1.0}) {
    AlignOptions options;
    options.route = Route::gram;
    options.gram_regularization = regularization;
    const auto result = run<double>(target, p.start, 1, StepSize::alpha(1), options);
    const double gap = result.trace.steps[0].certificate_gap;
    if (regularization == 0) {
      EXPECT_LT(ratio<double>(gap, 6, nuclear), ratio_limit);
    } else {
      EXPECT_GT(gap, 10 * previous);
      EXPECT_LT(result.trace.steps[0].feasibility, 1);
    }
    previous = gap;
  }
}

}  // namespace
}  // namespace itspace::test
