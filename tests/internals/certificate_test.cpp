// SPDX-License-Identifier: Apache-2.0
//
// The certificate by itself, with certificates that are wrong on purpose (paper, Proposition 4.3).
#include "random_matrices.hpp"

#include "core/certificate.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// Sigma = S S explicitly, Y with orthonormal basis Q = I (so theta = Sigma and the coordinates are Y): everything of
// the proposition can be formed.
struct Explicit {
  Small sigma, root, y;
  Basis basis;

  Explicit(Index d, Index r, std::uint64_t seed) {
    Block<double> a(d, d), b(d, r);
    Random(seed, 1).fill_normal<double>(a);
    Random(seed, 2).fill_normal<double>(b);
    sigma = a * a.transpose();
    y = b;
    Eigen::SelfAdjointEigenSolver<Small> solver(sigma);
    root = solver.operatorSqrt();
    basis.cols = d;
    basis.r = y;
    basis.y_gram = y.transpose() * y;
    basis.y_squared = y.squaredNorm();
  }

  NullRule rule() const { return {.noise = 2 * eps64 * sigma.norm(), .length = 4 * eps64, .relative = 30 * eps64}; }

  double objective(const Small& at) const {
    return at.squaredNorm() + sigma.trace() - 2 * Eigen::JacobiSVD<Small>(root * at).singularValues().sum();
  }
};

TEST(Certificate, IsThePolarFactor) {
  for (const auto& [d, r] : {std::pair<Index, Index>{1, 1}, {3, 2}, {17, 5}, {40, 40}}) {
    const Explicit p(d, r, static_cast<std::uint64_t>(d));
    Certificate certificate;
    make_certificate(p.sigma, p.y, p.basis, p.rule(), 0, certificate);
    ASSERT_EQ(certificate.rank, r);
    const Eigen::JacobiSVD<Small> svd(p.root * p.y, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Small polar = svd.matrixU() * svd.matrixV().transpose();
    const double condition = svd.singularValues()(0) / svd.singularValues()(r - 1);
    EXPECT_LT((p.root * certificate.m - polar).norm(), 30 * static_cast<double>(d) * eps64 * condition);
    EXPECT_LT(std::abs(certificate.nuclear_norm - svd.singularValues().sum()),
              30 * static_cast<double>(d) * eps64 * certificate.nuclear_norm);
    EXPECT_LT(certificate.feasibility - 1, 30 * static_cast<double>(d) * eps64);
    EXPECT_LT(certificate.gap, 30 * static_cast<double>(d) * eps64 * certificate.nuclear_norm);
  }
}

// A perturbed m is made feasible, its gap is what the definition says, and the step it leads to keeps the promise
// F(Y+) <= F(Y) + 2 eps_k - ((2 - alpha)/alpha) ||Y+ - Y||^2 for every alpha in (0, 2).
TEST(Certificate, APerturbedOneKeepsThePromiseWithItsGap) {
  const Explicit p(12, 4, 9);
  Certificate exact;
  make_certificate(p.sigma, p.y, p.basis, p.rule(), 0, exact);
  for (const double size : {1e-10, 1e-3, 0.3, 3.0}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Certificate certificate = exact;
      Block<double> noise(12, 4);
      Random(seed, 3).fill_normal<double>(noise);
      CertificateParts parts{exact.seen, exact.directions, SmallVector::Ones(4), exact.doubt, SmallVector::Zero(4)};
      parts.columns += size * exact.seen.norm() / noise.norm() * noise;
      measure_certificate(p.sigma, p.y, parts, certificate);
      const Small q = p.root * certificate.m;
      const double largest = Eigen::JacobiSVD<Small>(q).singularValues()(0);
      EXPECT_LE(largest, 1 + 30 * 12 * eps64);
      const double gap = exact.nuclear_norm - (q.transpose() * p.root * p.y).trace();
      EXPECT_NEAR(certificate.gap, gap, 30 * 12 * eps64 * exact.nuclear_norm);
      EXPECT_GE(certificate.gap, 0);
      const Small b = p.root * q;
      for (const double alpha : {0.1, 0.5, 1.0, 1.5, 1.9}) {
        const Small next = (1 - alpha) * p.y + alpha * b;
        const double promised = (2 - alpha) / alpha * (next - p.y).squaredNorm() - 2 * certificate.gap;
        EXPECT_GE(p.objective(p.y) - p.objective(next),
                  promised - 10 * eps64 * (p.sigma.trace() + p.y.squaredNorm()) * 12)
            << "size " << size << " alpha " << alpha;
      }
    }
  }
}

// Sigma is D away from what the certificate was made of, ||D|| being all that its rounding may be, and Y is so close to
// where steps end that nothing else is left of the promise: it is kept once the doubt is taken off, and not before. By
// columns, which lie along no singular direction, the doubt is several times as large.
TEST(Certificate, RoundingSpoilsAPromiseByNoMoreThanTheJointDoubt) {
  const Index d = 12, r = 6;
  Index spoilt = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Explicit p(d, r, seed);
    for (Index i = 0; i < d; ++i) {
      const double fall = std::pow(0.6, static_cast<double>(i));
      p.sigma.row(i) *= fall;
      p.sigma.col(i) *= fall;
    }
    NullRule rule = p.rule();
    rule.noise = 1e-6 * p.sigma.norm();
    p.sigma.diagonal().array() += 2 * rule.noise;  // definite whatever is added
    Certificate certificate;
    const auto certify = [&] {
      p.basis.r = p.y;
      p.basis.y_gram = p.y.transpose() * p.y;
      p.basis.y_squared = p.y.squaredNorm();
      make_certificate(p.sigma, p.y, p.basis, rule, 0, certificate, true);
    };
    for (int step = 0; step < 200; ++step) {
      certify();
      p.y = (p.sigma * certificate.m).eval();
    }
    const Small mixed = Eigen::HouseholderQR<Small>(normal(r, r, seed + 100)).householderQ();
    p.y = (p.y * mixed).eval();
    certify();
    if (!certificate.by_products) continue;  // a direction that rounding may hide
    const Small random = normal(d, d, seed + 200);
    const Small symmetric = random + random.transpose();
    const double norm = Eigen::SelfAdjointEigenSolver<Small>(symmetric).eigenvalues().cwiseAbs().maxCoeff();
    for (const Small& moved : {Small(Small::Identity(d, d)), Small(-Small::Identity(d, d)), Small(symmetric / norm)}) {
      Explicit other = p;
      other.sigma += rule.noise * moved;
      const Eigen::SelfAdjointEigenSolver<Small> solver(other.sigma);
      ASSERT_GT(solver.eigenvalues()(0), 0);
      other.root = solver.operatorSqrt();
      const Small b = other.sigma * certificate.m;
      const double joint = joint_promise_doubt(b.transpose() * b, p.basis, certificate);
      const double by_columns = promise_doubt(b.colwise().norm().transpose(), p.basis, certificate);
      EXPECT_LT(2 * joint, by_columns);
      for (const double alpha : {0.5, 1.0, 1.5}) {
        const Small next = (1 - alpha) * p.y + alpha * b;
        const double promised = alpha * (2 - alpha) * (b - p.y).squaredNorm() - 2 * alpha * certificate.gap;
        const double kept = other.objective(p.y) - other.objective(next);
        const double rounding = 10 * eps64 * (p.sigma.trace() + p.y.squaredNorm()) * static_cast<double>(d);
        EXPECT_GE(kept, promised - joint - rounding) << "seed " << seed << " alpha " << alpha;
        if (kept < promised - rounding) ++spoilt;
      }
    }
  }
  EXPECT_GT(spoilt, 20);
}

TEST(Certificate, NullDirectionsAreFlaggedAndServed) {
  Explicit p(6, 3, 4);
  p.y.col(2).setZero();
  p.basis.r = p.y;
  p.basis.y_squared = p.y.squaredNorm();
  Certificate certificate;
  make_certificate(p.sigma, p.y, p.basis, p.rule(), 0, certificate);
  EXPECT_EQ(certificate.rank, 2);
  ASSERT_EQ(certificate.null_directions.cols(), 1);
  EXPECT_LT((p.y * certificate.null_directions).norm(), 30 * eps64 * p.y.norm());
  EXPECT_TRUE(std::isinf(certificate.condition));
}

TEST(Certificate, NotFiniteIsSaid) {
  Explicit p(4, 2, 1);
  p.sigma(1, 2) = std::numeric_limits<double>::quiet_NaN();
  Certificate certificate;
  make_certificate(p.sigma, p.y, p.basis, p.rule(), 0, certificate);
  EXPECT_FALSE(certificate.finite);
}

}  // namespace
}  // namespace itspace
