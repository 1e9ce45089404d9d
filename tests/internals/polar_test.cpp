// SPDX-License-Identifier: Apache-2.0
//
// The polar factor by products, and the certificate made of it, beside decompositions.
#include "random_matrices.hpp"

#include "core/certificate.hpp"
#include "core/polar.hpp"
#include "kernels/small_products.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

// Singular values from 1 down to 1/condition, evenly spaced in their logarithms.
SmallVector spectrum(Index n, double condition) {
  SmallVector values(n);
  for (Index i = 0; i < n; ++i) values(i) = std::pow(condition, -double(i) / double(std::max<Index>(1, n - 1)));
  return values;
}

TEST(Polar, IsThePolarFactor) {
  for (const Index n : {1, 2, 17, 41, 64, 129, 200})
    for (const double condition : {1.0, 1.5, 50.0, 1e3, 1e4, 2e5})
      for (const double size : {1.0, 1e-30, 1e30}) {
        const Small u = orthonormal(n, n, 1), v = orthonormal(n, n, 2);
        const SmallVector s = size * spectrum(n, condition);
        const Small k = u * s.asDiagonal() * v.transpose();
        Small polar;
        PolarWork work;
        ASSERT_TRUE(polar_by_products(k, 0.5 * s(n - 1), polar, work)) << n << ", " << condition << ", " << size;
        const double unit = 30 * static_cast<double>(n) * eps64;
        EXPECT_LE((polar.transpose() * polar - Small::Identity(n, n)).norm(), unit) << n << ", " << condition;
        EXPECT_LE((polar - u * v.transpose()).norm(), unit * condition) << n << ", " << condition;
        // Of second order in the rotation.
        EXPECT_LE(std::abs(polar.cwiseProduct(k).sum() - s.sum()), unit * s.sum()) << n << ", " << condition;
        const Small h = polar.transpose() * k;
        EXPECT_LE((h - h.transpose()).norm(), unit * s(0)) << n << ", " << condition;
      }
}

// In single precision: orthonormal to some of its roundings, and of what is turned only the square is lost.
TEST(Polar, InSinglePrecision) {
  constexpr double eps32 = std::numeric_limits<float>::epsilon();
  for (const Index n : {1, 17, 64, 200})
    for (const double condition : {1.0, 1.5, 50.0, 1e3, 1e4})
      for (const double size : {1.0, 1e-30, 1e30}) {
        const SmallVector s = size * spectrum(n, condition);
        const Small k = orthonormal(n, n, 1) * s.asDiagonal() * orthonormal(n, n, 2).transpose();
        Small polar;
        PolarWork work;
        ASSERT_TRUE(single_polar_by_products(k, 0.5 * s(n - 1), polar, work)) << n << ", " << condition << ", " << size;
        const double unit = 30 * std::sqrt(static_cast<double>(n)) * eps32;
        EXPECT_LE((polar.transpose() * polar - Small::Identity(n, n)).norm(), unit) << n << ", " << condition;
        const Small h = polar.transpose() * k;
        EXPECT_LE((h - h.transpose()).norm(), unit * s(0)) << n << ", " << condition;
      }
  Small polar;
  PolarWork work;
  EXPECT_FALSE(single_polar_by_products(Small::Identity(3, 3), 1e-5, polar, work));
  EXPECT_FALSE(single_polar_by_products(Small::Zero(3, 3), 1, polar, work));
  EXPECT_FALSE(
      single_polar_by_products(Small::Constant(3, 3, std::numeric_limits<double>::quiet_NaN()), 1, polar, work));
}

// Newton's step keeps the polar factor, leaves no singular value below 1, and nearly the root of the condition number.
TEST(Polar, ANewtonStep) {
  for (const Index n : {1, 20, 150})
    for (const double condition : {1.0, 50.0, 1e4}) {
      const Small u = orthonormal(n, n, 1), v = orthonormal(n, n, 2);
      const SmallVector s = 3 * spectrum(n, condition);
      const Small k = u * s.asDiagonal() * v.transpose();
      const Small inverse_transposed = u * s.cwiseInverse().asDiagonal() * v.transpose();
      for (const double off : {1.0, 0.7, 1.5}) {  // estimates are some way off
        Small x;
        newton_step(k, inverse_transposed, off * s(0), s(n - 1), x);
        const SmallVector found = Eigen::JacobiSVD<Small>(x).singularValues();
        EXPECT_GE(found(n - 1), 1 - 1e-9);
        EXPECT_LE(found(0), 1.3 * std::sqrt(s(0) / s(n - 1)));
        Small polar;
        PolarWork work;
        ASSERT_TRUE(polar_by_products(x, 0.99, polar, work));
        EXPECT_LE((polar - u * v.transpose()).norm(), 30 * static_cast<double>(n) * eps64 * condition);
      }
    }
}

// A wide one has orthonormal rows.
TEST(Polar, OfWideMatrices) {
  for (const Index n : {1, 16, 50}) {
    const SmallVector s = spectrum(n, 1e3);
    const Small u = orthonormal(n, n, 1), v = orthonormal(2 * n + 3, n, 2), k = u * s.asDiagonal() * v.transpose();
    const Small inverse = inverse_root(k);
    ASSERT_EQ(inverse.rows(), n);
    EXPECT_NEAR(1 / kernels::estimated_norm(inverse), s(n - 1), 0.5 * s(n - 1));
    EXPECT_LE(0.9 / inverse.norm(), s(n - 1));
    Small polar;
    PolarWork work;
    ASSERT_TRUE(polar_by_products(k, 0.9 / inverse.norm(), polar, work));
    const double unit = 30 * static_cast<double>(n) * eps64;
    EXPECT_LE((polar * polar.transpose() - Small::Identity(n, n)).norm(), unit);
    EXPECT_LE((polar - u * v.transpose()).norm(), unit * 1e3);
  }
  EXPECT_EQ(inverse_root(orthonormal(20, 20, 1) * spectrum(20, 1e9).asDiagonal()).size(), 0);
}

// Whatever the condition number and the size; a singular one has many, and any will do.
TEST(Polar, TheClosestOrthogonalMatrix) {
  for (const Index n : {1, 16, 50})
    for (const double condition : {1.0, 1e2, 1e9, 1e300})
      for (const double size : {1.0, 1e-200, 1e200}) {
        const Small u = orthonormal(n, n, 1), v = orthonormal(n, n, 2);
        const SmallVector s = spectrum(n, condition);
        Small out;
        ASSERT_TRUE(closest_orthogonal(size * (u * s.asDiagonal() * v.transpose()), out));
        EXPECT_LE((out.transpose() * out - Small::Identity(n, n)).norm(), 30 * static_cast<double>(n) * eps64);
        EXPECT_NEAR(out.cwiseProduct(u * s.asDiagonal() * v.transpose()).sum(), s.sum(), 1e-12 * s.sum());
      }
  Small out;
  EXPECT_FALSE(closest_orthogonal(Small::Constant(2, 2, std::numeric_limits<double>::quiet_NaN()), out));
}

// A bound that is far too low costs products, not accuracy; one that is too high is found out by who measures.
TEST(Polar, TakesAnyLowerBound) {
  const Index n = 50;
  const Small k = orthonormal(n, n, 1) * spectrum(n, 10).asDiagonal() * orthonormal(n, n, 2).transpose();
  for (const double smallest : {0.1, 1e-2, 1e-4, 3e-6}) {
    Small polar;
    PolarWork work;
    ASSERT_TRUE(polar_by_products(k, smallest, polar, work));
    EXPECT_LE((polar.transpose() * polar - Small::Identity(n, n)).norm(), 30 * double(n) * eps64) << smallest;
  }
}

TEST(Polar, RefusesWhatIsTooIllConditionedOrNotFinite) {
  Small k = Small::Identity(3, 3), polar;
  PolarWork work;
  EXPECT_FALSE(polar_by_products(k, 1e-7, polar, work));
  EXPECT_FALSE(polar_by_products(k, 0, polar, work));
  EXPECT_FALSE(polar_by_products(k, std::numeric_limits<double>::quiet_NaN(), polar, work));
  EXPECT_FALSE(polar_by_products(Small::Zero(3, 3), 1, polar, work));
  k(1, 2) = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(polar_by_products(k, 0.1, polar, work));
}

TEST(SmallProducts, AreProducts) {
  for (const Index m : {1, 7, 41, 130})
    for (const Index k : {1, 16, 41, 150})
      for (const Index n : {1, 9, 64, 140}) {
        const Small a = normal(m, k, 1), b = normal(k, n, 2), at = a.transpose();
        const Small product = a * b;
        const double unit = 4 * static_cast<double>(k) * eps64 * a.norm() * b.norm();
        EXPECT_LE((kernels::times(a, b) - product).norm(), unit) << m << ", " << k << ", " << n;
        EXPECT_LE((kernels::transposed_times(at, b) - product).norm(), unit) << m << ", " << k << ", " << n;
      }
}

// theta and Y = Q r with energies down to 1/spread and a Y of some condition, in both bases.
struct Large {
  Small theta, coordinates;
  Basis basis;

  Large(Index r, double spread, double condition, bool scaled) {
    const Small u = orthonormal(r, r, 1);
    theta = u * spectrum(r, spread).asDiagonal() * u.transpose();
    const Small y = orthonormal(r, r, 2) * spectrum(r, condition).asDiagonal() * orthonormal(r, r, 3).transpose();
    basis.cols = r;
    basis.y_gram = y.transpose() * y;
    basis.y_squared = y.squaredNorm();
    basis.orthonormal = !scaled;
    if (scaled) {  // Q = Y/2: theta = Y'Sigma Y/4
      theta = 0.25 * y.transpose() * theta * y;
      basis.r = 2 * Small::Identity(r, r);
      basis.inverse = 0.5 * Small::Identity(r, r);
    } else {
      basis.r = y;
      basis.inverse = y.inverse();
    }
    theta = 0.5 * (theta + theta.transpose()).eval();
    coordinates = basis.r;
  }
};

TEST(Polar, ACertificateByProductsIsThatOfTheDecomposition) {
  for (const Index r : {17, 41, 64, 140})
    for (const double noise : {2e-16, 2e-7})
      for (const double spread : {1.0, 100.0, 1e3})
        for (const double condition : {1.0, 30.0})
          for (const bool scaled : {false, true}) {
            // The rounding of G itself would be in doubt.
            if (scaled && noise > 1e-10 && spread * condition * condition > 1e3) continue;
            SCOPED_TRACE(testing::Message()
                         << r << ", " << noise << ", " << spread << ", " << condition << ", " << scaled);
            const Large at(r, spread, condition, scaled);
            NullRule rule{.noise = noise, .length = 2 * noise, .relative = scaled ? 1e-7 : 30 * eps64};
            rule.of_columns = scaled;
            Certificate exact, quick;
            make_certificate(at.theta, at.coordinates, at.basis, rule, 0, exact);
            make_certificate(at.theta, at.coordinates, at.basis, rule, 0, quick, true);
            ASSERT_FALSE(exact.by_products);
            ASSERT_TRUE(quick.by_products);
            EXPECT_EQ(quick.rank, r);
            EXPECT_LE(std::abs(quick.nuclear_norm - exact.nuclear_norm), exact.uncertainty + quick.uncertainty);
            // The same doubt, summed over other directions.
            EXPECT_LE(quick.uncertainty, 4 * exact.uncertainty);
            EXPECT_GE(quick.uncertainty, 0.2 * exact.uncertainty);
            EXPECT_LE(quick.gap, 1e-11 * quick.nuclear_norm);
            EXPECT_LE(quick.condition, 1.01 * exact.condition);
            EXPECT_GE(quick.condition, 0.5 * exact.condition);
            const Small gram = quick.m.transpose() * at.theta * quick.m;
            EXPECT_LE(Eigen::JacobiSVD<Small>(gram).singularValues()(0), 1 + 30 * double(r) * eps64);
            const double size = std::sqrt(at.theta.diagonal().maxCoeff());
            EXPECT_LE((quick.m - exact.m).norm() * size,
                      100 * double(r) * eps64 * std::sqrt(exact.condition) * exact.m.norm() * size);
          }
}

// Made in single precision for blocks of single precision: feasible, its nuclear norm within what it says, its gap the
// loss, and both far below the rounding of the blocks.
TEST(Polar, ACertificateInSinglePrecisionSaysWhatItLoses) {
  constexpr double eps32 = std::numeric_limits<float>::epsilon();
  for (const Index r : {32, 64, 200})
    for (const double spread : {1.0, 100.0, 1e3})
      for (const double condition : {1.0, 30.0})
        for (const bool scaled : {false, true}) {
          if (scaled && spread * condition * condition > 1e3) continue;
          SCOPED_TRACE(testing::Message() << r << ", " << spread << ", " << condition << ", " << scaled);
          const Large at(r, spread, condition, scaled);
          NullRule rule{.noise = 2 * eps32, .length = 4 * eps32, .relative = scaled ? 1e-7 : 30 * eps64};
          rule.of_columns = scaled;
          Certificate exact, in_double, in_single;
          make_certificate(at.theta, at.coordinates, at.basis, rule, 0, exact);
          make_certificate(at.theta, at.coordinates, at.basis, rule, 0, in_double, true);
          rule.single_precision = true;
          make_certificate(at.theta, at.coordinates, at.basis, rule, 0, in_single, true);
          ASSERT_TRUE(in_single.by_products);
          const Small gram = in_single.m.transpose() * at.theta * in_single.m;
          EXPECT_LE(Eigen::JacobiSVD<Small>(gram).singularValues()(0), 1 + 30 * double(r) * eps64);
          // tr(m'theta c) reaches the nuclear norm but for the gap.
          const double reached = in_single.m.cwiseProduct(at.theta * at.coordinates).sum();
          const double rounding = 30 * double(r) * eps64 * exact.nuclear_norm;
          EXPECT_GE(reached + in_single.gap, exact.nuclear_norm - rounding);
          EXPECT_LE(in_single.gap, 0.1 * eps32 * exact.nuclear_norm);
          EXPECT_LE(std::abs(in_single.nuclear_norm - exact.nuclear_norm), in_single.gap + rounding);
          EXPECT_LE(in_single.uncertainty, in_double.uncertainty + 0.2 * eps32 * exact.nuclear_norm);
          if (spread > 1) {
            EXPECT_GT(in_single.orthogonality, in_double.orthogonality) << "it was not made in single precision";
          }
        }
}

// What products cannot be trusted with is decomposed.
TEST(Polar, DoubtfulDirectionsAreDecomposed) {
  NullRule rule{.noise = 2e-7, .length = 5e-7, .relative = 30 * eps64};
  for (const auto& [spread, condition] : {std::pair<double, double>{1e6, 1}, {1, 1e7}, {1e3, 1e5}}) {
    const Large at(50, spread, condition, false);
    Certificate certificate;
    make_certificate(at.theta, at.coordinates, at.basis, rule, 0, certificate, true);
    EXPECT_FALSE(certificate.by_products) << spread << ", " << condition;
  }
  const Large fine(50, 10, 10, false);
  Certificate certificate;
  make_certificate(fine.theta, fine.coordinates, fine.basis, rule, 1e-3, certificate, true);
  EXPECT_FALSE(certificate.by_products);  // regularised
  rule.of_roots = true;
  make_certificate(fine.theta, fine.coordinates, fine.basis, rule, 0, certificate, true);
  EXPECT_FALSE(certificate.by_products);
}

}  // namespace
}  // namespace itspace
