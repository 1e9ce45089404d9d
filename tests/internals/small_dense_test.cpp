// SPDX-License-Identifier: Apache-2.0
//
// The small matrices of one thread, for each instruction set: products, triangles and leading eigenpairs, against
// Eigen's.
#include "random_matrices.hpp"

#include "kernels/small_dense.hpp"
#include "kernels/small_eigen.hpp"
#include "kernels/small_products.hpp"
#include "kernels/small_sweeps.hpp"
#include "kernels/small_triangles.hpp"

#include <itspace/random.hpp>
#include <itspace/threads.hpp>

#include "each_kernel.hpp"

#include <gtest/gtest.h>

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

double size_of(Index n) {
  return static_cast<double>(n);
}

TEST(SmallDense, Products) {
  kernels::with_each_kernel([] {
    for (const Index rows : {1, 3, 8, 17, 40, 50})
      for (const Index cols : {1, 2, 7, 8, 15, 50})
        for (const Index inner : {1, 5, 50, 131}) {
          const Small a = normal(rows, inner, 1), b = normal(inner, cols, 2), c = normal(rows, cols, 3);
          const Small expected = a * b;
          const double unit = 4 * size_of(inner) * eps64 * a.norm() * b.norm();
          EXPECT_LE((kernels::times(a, b) - expected).norm(), unit);
          EXPECT_LE((kernels::times_transposed(a, b.transpose()) - expected).norm(), unit);
          EXPECT_LE((kernels::transposed_times(a.transpose(), b) - expected).norm(), unit);
          Small out = c;
          kernels::small_product({rows, cols, inner, a.data(), rows, b.data(), inner, false, out.data(), rows, -2, 3});
          EXPECT_LE((out - (3 * c - 2 * expected)).norm(), 3 * unit + 8 * eps64 * c.norm());
          EXPECT_EQ(kernels::transposed(a), Small(a.transpose()));
        }
  });
}

TEST(SmallDense, SymmetricOnesAreSymmetricToTheLastBit) {
  kernels::with_each_kernel([] {
    for (const Index n : {1, 9, 47, 48, 70, 130}) {
      const Small a = normal(n, n + 3, 1);
      Small square, polynomial;
      kernels::outer_square(a, square);
      EXPECT_EQ(square, Small(square.transpose()));
      EXPECT_LE((square - a * a.transpose()).norm(), 4 * size_of(n) * eps64 * a.squaredNorm());
      kernels::quadratic(square, 0.5, 2, -3, polynomial);
      EXPECT_EQ(polynomial, Small(polynomial.transpose()));
      const Small expected = 0.5 * Small::Identity(n, n) + 2 * square - 3 * square * square;
      EXPECT_LE((polynomial - expected).norm(), 16 * size_of(n) * eps64 * (1 + square.squaredNorm()));
    }
  });
}

TEST(SmallDense, ProductsInSinglePrecision) {
  using Single = kernels::SmallOf<float>;
  constexpr double eps32 = std::numeric_limits<float>::epsilon();
  kernels::with_each_kernel([&] {
    for (const Index n : {1, 9, 47, 70, 200}) {
      const Single a = normal(n, n + 3, 1).cast<float>(), b = normal(n + 3, n, 2).cast<float>();
      Single product, square, polynomial;
      kernels::multiply_into(a, b, product);
      const Small wide_a = a.cast<double>(), wide_b = b.cast<double>();
      EXPECT_LE((product.cast<double>() - wide_a * wide_b).norm(), size_of(n) * eps32 * wide_a.norm() * wide_b.norm());
      kernels::outer_square(a, square);
      EXPECT_EQ(square, Single(square.transpose()));
      EXPECT_LE((square.cast<double>() - wide_a * wide_a.transpose()).norm(),
                size_of(n) * eps32 * wide_a.squaredNorm());
      kernels::quadratic(square, 0.5, 2, -3, polynomial);
      EXPECT_EQ(polynomial, Single(polynomial.transpose()));
      const Small s = square.cast<double>(), expected = 0.5 * Small::Identity(n, n) + 2 * s - 3 * s * s;
      EXPECT_LE((polynomial.cast<double>() - expected).norm(), 4 * size_of(n) * eps32 * (1 + s.squaredNorm()));
    }
  });
}

// Blocks of zeros are left out of a product, which is the same to the last bit on any number of threads.
TEST(SmallDense, ProductsOfTriangles) {
  for (const Index n : {20, 100, 257, 400}) {
    const Small dense = normal(n, n, 1);
    const Small lower = normal(n, n, 2).triangularView<Eigen::Lower>();
    const Small upper = normal(n, n, 3).triangularView<Eigen::Upper>();
    const Small diagonal = Small(normal(n, 1, 4).col(0).asDiagonal()), zero = Small::Zero(n, n);
    for (const Small& a : {dense, lower, upper, diagonal, zero})
      for (const Small& b : {dense, lower, upper, diagonal, zero}) {
        const double unit = 4 * size_of(n) * eps64 * a.norm() * b.norm();
        const Small product = kernels::times(a, b), transposed = kernels::times_transposed(a, b);
        EXPECT_LE((product - a * b).norm(), unit);
        EXPECT_LE((transposed - a * b.transpose()).norm(), unit);
        const ThreadScope one(1);
        EXPECT_EQ(kernels::times(a, b), product);
        EXPECT_EQ(kernels::times_transposed(a, b), transposed);
      }
  }
}

TEST(SmallDense, ProductsThatAreSymmetric) {
  for (const Index n : {7, 48, 130}) {
    const Small a = normal(n, n, 1), b = (a * a.transpose()).eval() * a;  // a b' is symmetric
    Small out;
    kernels::symmetric_times_transposed(a, b, out);
    EXPECT_EQ(out, Small(out.transpose()));
    EXPECT_LE((out - a * b.transpose()).norm(), 8 * size_of(n) * eps64 * a.norm() * b.norm());
  }
}

TEST(SmallDense, TrianglesAndTheirInverses) {
  kernels::with_each_kernel([] {
    for (const Index n : {1, 2, 7, 8, 9, 24, 65, 130}) {
      SmallVector values(n);
      for (Index i = 0; i < n; ++i) values(i) = std::pow(1e-4, size_of(i) / size_of(n));
      const Small a = with_spectrum(values, 4);
      Small lower = a, inverse = Small::Constant(n, n, 7);
      lower.triangularView<Eigen::StrictlyUpper>().setConstant(5);
      ASSERT_TRUE(kernels::small_cholesky(n, lower.data(), n));
      for (Index j = 1; j < n; ++j) EXPECT_EQ(lower(0, j), 5);
      lower.triangularView<Eigen::StrictlyUpper>().setZero();
      EXPECT_LE((lower * lower.transpose() - a).norm(), 4 * size_of(n) * eps64);
      kernels::small_lower_inverse(n, lower.data(), n, inverse.data(), n);
      EXPECT_EQ(inverse, Small(inverse.triangularView<Eigen::Lower>()));
      EXPECT_LE((inverse * lower - Small::Identity(n, n)).norm(), 4 * size_of(n) * eps64 * inverse.norm());
    }
  });
}

// Large ones go by blocks, over the threads, and have the same bits whatever their number.
TEST(SmallDense, LargeTrianglesAndTheirInverses) {
  for (const Index n : {127, 128, 200, 257, 600}) {
    SmallVector values(n);
    for (Index i = 0; i < n; ++i) values(i) = std::pow(1e-4, size_of(i) / size_of(n));
    Small a = with_spectrum(values, 4), lower, inverse, lower_of_one, inverse_of_one;
    const Small symmetric = a;
    a.triangularView<Eigen::StrictlyUpper>().setConstant(5);  // not read
    ASSERT_TRUE(kernels::cholesky_factor(a, lower)) << n;
    EXPECT_EQ(lower, Small(lower.triangularView<Eigen::Lower>())) << n;
    EXPECT_LE((lower * lower.transpose() - symmetric).norm(), 4 * size_of(n) * eps64) << n;
    kernels::invert_triangle(lower, inverse);
    EXPECT_EQ(inverse, Small(inverse.triangularView<Eigen::Lower>())) << n;
    EXPECT_LE((inverse * lower - Small::Identity(n, n)).norm(), 4 * size_of(n) * eps64 * inverse.norm()) << n;
    const ThreadScope one(1);
    ASSERT_TRUE(kernels::cholesky_factor(a, lower_of_one));
    kernels::invert_triangle(lower_of_one, inverse_of_one);
    EXPECT_EQ(lower_of_one, lower) << n;
    EXPECT_EQ(inverse_of_one, inverse) << n;
    for (const Index bad : {Index(0), n / 2, n - 1}) {
      Small none = symmetric;
      none(bad, bad) = bad % 2 == 0 ? -1 : std::numeric_limits<double>::quiet_NaN();
      EXPECT_FALSE(kernels::cholesky_factor(none, lower)) << n << ", " << bad;
    }
  }
}

// What does not stay in cache is multiplied by BLAS, tile by tile.
TEST(SmallDense, LargeProducts) {
  using Single = kernels::SmallOf<float>;
  constexpr double eps32 = std::numeric_limits<float>::epsilon();
  for (const Index n : {401, 520}) {
    const Small a = normal(n, n, 1), lower = normal(n, n, 2).triangularView<Eigen::Lower>();
    const Small product = kernels::times(lower, a), transposed = kernels::times_transposed(a, lower);
    const double unit = 4 * size_of(n) * eps64 * a.norm() * lower.norm();
    EXPECT_LE((product - lower * a).norm(), unit);
    EXPECT_LE((transposed - a * lower.transpose()).norm(), unit);
    Small square, polynomial;
    kernels::outer_square(a, square);
    EXPECT_EQ(square, Small(square.transpose()));
    EXPECT_LE((square - a * a.transpose()).norm(), unit);
    kernels::quadratic(square, 0.5, 2, -3, polynomial);
    EXPECT_EQ(polynomial, Small(polynomial.transpose()));
    const Small expected = 0.5 * Small::Identity(n, n) + 2 * square - 3 * square * square;
    EXPECT_LE((polynomial - expected).norm(), 16 * size_of(n) * eps64 * square.squaredNorm());
    const Single single = a.cast<float>();
    Single single_square;
    kernels::outer_square(single, single_square);
    EXPECT_LE((single_square.cast<double>() - square).norm(), size_of(n) * eps32 * a.squaredNorm());
    const ThreadScope one(1);
    EXPECT_EQ(kernels::times(lower, a), product);
    Small again;
    kernels::outer_square(a, again);
    EXPECT_EQ(again, square);
  }
}

void check_entries_and_parts(const Small& a) {
  EXPECT_EQ(kernels::largest_entry(a), a.cwiseAbs().maxCoeff());
  Small part;
  kernels::symmetric_part(a, 0.25, part);
  EXPECT_EQ(part, Small(0.125 * (a + a.transpose())));
  const kernels::Asymmetry asymmetry = kernels::asymmetry_of(a);
  const Small half = 0.5 * (a - a.transpose());
  EXPECT_EQ(asymmetry.largest, half.cwiseAbs().maxCoeff());
  EXPECT_NEAR(asymmetry.norm, half.norm(), size_of(a.rows()) * eps64 * a.norm());
}

TEST(SmallDense, Sweeps) {
  for (const Index n : {1, 33, 100, 300, 1100}) {
    const Small a = normal(n, n, 1), b = normal(n, n, 2);
    EXPECT_EQ(kernels::transposed(a), Small(a.transpose()));
    EXPECT_NEAR(kernels::squared_norm(a), a.squaredNorm(), size_of(n) * eps64 * a.squaredNorm());
    EXPECT_NEAR(kernels::sum_of_products(a, b), a.cwiseProduct(b).sum(), size_of(n) * eps64 * a.squaredNorm());
    check_entries_and_parts(a);
    kernels::SmallOf<float> single;
    kernels::scaled_copy(a, 0.5, single);
    EXPECT_EQ(single, (0.5 * a).cast<float>().eval());
    const double norm = kernels::estimated_norm(a), squares = kernels::squared_norm(a);
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      Small strange = a;
      strange(n / 2, n - 1) = bad;
      EXPECT_FALSE(std::isfinite(kernels::largest_entry(strange)));
    }
    const ThreadScope one(1);
    EXPECT_EQ(kernels::estimated_norm(a), norm);
    EXPECT_EQ(kernels::squared_norm(a), squares);
  }
}

TEST(SmallDense, SweepsOfEachInstructionSet) {
  kernels::with_each_kernel([] {
    for (const Index n : {1, 7, 8, 9, 33, 72, 100}) {
      const Small a = normal(n, n, 1), b = normal(n, n, 2);
      check_entries_and_parts(a);
      Small out(n, n);
      kernels::SmallOf<float> single(n, n);
      kernels::small_to_single(a.size(), a.data(), 0.5, single.data());
      EXPECT_EQ(single, (0.5 * a).cast<float>().eval());
      kernels::small_subtract_single(b.size(), b.data(), 2, single.data(), out.data());
      EXPECT_LE((out - (b - 2 * single.cast<double>())).norm(), eps64 * b.norm());
      for (Index bad = 0; bad < a.size(); bad += std::max<Index>(1, a.size() / 5)) {
        Small strange = a;
        strange.data()[bad] = std::numeric_limits<double>::infinity();
        EXPECT_FALSE(std::isfinite(kernels::largest_entry(strange))) << n << ", " << bad;
      }
    }
  });
}

TEST(SmallDense, SweepsOverNothing) {
  for (const Small& none : {Small(0, 3), Small(3, 0), Small(0, 0)}) {
    EXPECT_EQ(kernels::largest_entry(none), 0);
    EXPECT_EQ(kernels::squared_norm(none), 0);
    EXPECT_EQ(kernels::estimated_norm(none), 0);
    EXPECT_EQ(kernels::transposed(none).rows(), none.cols());
  }
  Small lower;
  EXPECT_TRUE(kernels::cholesky_factor(Small(0, 0), lower));
  EXPECT_EQ(kernels::times(Small(0, 3), Small(3, 2)).cols(), 2);
  EXPECT_EQ(kernels::times_transposed(Small(3, 2), Small(0, 2)).rows(), 3);
  EXPECT_EQ(kernels::times(Small(200, 0), Small(0, 70)), Small(Small::Zero(200, 70)));
}

TEST(SmallDense, WhatHasNoTriangle) {
  kernels::with_each_kernel([] {
    for (const Index n : {1, 9, 30})
      for (const double bad :
           {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        Small a = Small::Identity(n, n);
        a(n - 1, n - 1) = bad;
        EXPECT_FALSE(kernels::small_cholesky(n, a.data(), n)) << n << ", " << bad;
      }
  });
}

TEST(SmallDense, NormsFromBelow) {
  for (const Index n : {1, 5, 40}) {
    const Small a = normal(n + 4, n, 6);
    const double norm = std::sqrt(Eigen::SelfAdjointEigenSolver<Small>(a.transpose() * a).eigenvalues().maxCoeff());
    for (const double size : {1.0, 1e-200, 1e200}) {
      EXPECT_LE(kernels::estimated_norm(size * a) / size, norm * (1 + 1e-12));
      EXPECT_GE(kernels::estimated_norm(size * a) / size, 0.7 * norm);
    }
  }
  EXPECT_EQ(kernels::estimated_norm(Small::Zero(3, 2)), 0);
}

// Of a matrix whose eigenvalues are known: those of the pairs that were found, and what the pairs leave of Av = theta
// v.
void expect_leading_pairs(const Small& a, Index count, const SmallVector& descending, bool must_be_found) {
  const Index n = a.rows();
  SmallVector values(count);
  Small vectors(n, count);
  const bool found = kernels::leading_pairs(n, count, a.data(), values.data(), vectors.data());
  if (must_be_found) {
    ASSERT_TRUE(found) << n << ", " << count;
  }
  if (!found) return;
  const double unit = 30 * size_of(n) * eps64, norm = descending.cwiseAbs().maxCoeff();
  EXPECT_LE((values - descending.head(count)).cwiseAbs().maxCoeff(), unit * norm) << n << ", " << count;
  EXPECT_LE((vectors.transpose() * vectors - Small::Identity(count, count)).norm(), unit) << n << ", " << count;
  EXPECT_LE((a * vectors - vectors * values.asDiagonal()).norm(), unit * norm) << n << ", " << count;
}

TEST(FewLeadingPairs, LeadingPairs) {
  kernels::with_each_kernel([] {
    for (const Index n : {1, 2, 3, 9, 24, 48, 72, 121})
      for (const Index count : {Index(1), (n + 2) / 3, n}) {
        for (const double size : {1.0, 1e-40, 1e40}) {
          SmallVector values(n);
          for (Index i = 0; i < n; ++i) values(i) = size * (1 + std::cos(3.1 * size_of(i) / size_of(n)));
          expect_leading_pairs(with_spectrum(values, 5), count, values, true);
        }
        SmallVector falling(n);
        for (Index i = 0; i < n; ++i) falling(i) = std::pow(0.7, size_of(i));
        expect_leading_pairs(with_spectrum(falling, 6), count, falling, count <= (n + 2) / 3);
      }
  });
}

// Values of either sign, zero, equal or nearly so: what is found is true, whatever is found.
TEST(FewLeadingPairs, NothingFalse) {
  kernels::with_each_kernel([] {
    const Index n = 30;
    for (const double gap : {0.0, 1e-16, 1e-14, 1e-12, 1e-9, 1e-5, 1e-2})
      for (const Index together : {2, 5, 30})
        for (std::uint64_t seed = 1; seed < 4; ++seed) {
          SmallVector values(n);
          for (Index i = 0; i < n; ++i)
            values(i) = i < together ? 1 - gap * size_of(i) : 0.5 * std::cos(3.1 * size_of(i) / size_of(n)) - 0.2;
          SmallVector descending = values;
          std::sort(descending.begin(), descending.end(), std::greater<>());
          for (const Index count : {4, 10}) expect_leading_pairs(with_spectrum(values, seed), count, descending, false);
          // The same as it stands on the diagonal, in parts that know nothing of each other.
          Small split = values.asDiagonal();
          split.topLeftCorner(10, 10) = with_spectrum(values.head(10), seed);
          expect_leading_pairs(split, 6, descending, false);
        }
    for (const Small& a : {Small(Small::Identity(n, n)), Small(Small::Zero(n, n)), Small(Small::Ones(n, n))}) {
      SmallVector descending = Eigen::SelfAdjointEigenSolver<Small>(a).eigenvalues().reverse();
      expect_leading_pairs(a, 1, descending, false);
      expect_leading_pairs(a, 7, descending, false);
    }
  });
}

}  // namespace
}  // namespace itspace
