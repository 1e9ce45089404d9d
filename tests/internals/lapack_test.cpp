// SPDX-License-Identifier: Apache-2.0
//
// Matrices that LAPACK's integers cannot count: measured before the call, served by another method or refused in words.
#include "core/lapack.hpp"

#include <itspace/covariance.hpp>
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <lapacke.h>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace itspace {
namespace {

constexpr double largest = std::numeric_limits<int>::max();
constexpr double ratio_limit = 30;

Small random_matrix(Index rows, Index cols) {
  Block<double> a(rows, cols);
  Random(1).fill_normal<double>(a);
  return a;
}

Small random_covariance(Index n) {
  const Small a = random_matrix(n, n);
  return a * a.transpose();
}

// In units of n eps ||a||.
double ratio(const Small& error, const Small& a) {
  return error.norm() / (static_cast<double>(a.rows()) * std::numeric_limits<double>::epsilon() * a.norm());
}

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was refused";
}

void expect_parts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

// Where the documented formulas leave 32 bits; blocks beside them only matter for matrices with very long sides.
TEST(LapackWork, LeavesThirtyTwoBitsWhereTheDocumentationSays) {
  EXPECT_LE(lapack_work::dsyevd(32766, true), largest);
  EXPECT_GT(lapack_work::dsyevd(32767, true), largest);
  EXPECT_LE(lapack_work::dsyevd(1e6, false), largest);
  // 4 n^2 + 7 n, and 3 n^2 + 7 n of dbdsdc, with blocks.
  EXPECT_GT(lapack_work::dgesdd(23170, 23170, lapack_work::Vectors::thin), largest);
  EXPECT_LE(lapack_work::dgesdd(23100, 23100, lapack_work::Vectors::thin), largest);
  EXPECT_LE(lapack_work::dgesdd(46341, 46341, lapack_work::Vectors::none), largest);
  // n^2 beside the vectors.
  EXPECT_GT(lapack_work::dgesvd(46341, 46341, lapack_work::Vectors::full), largest);
  EXPECT_LE(lapack_work::dgesvd(40000, 40000, lapack_work::Vectors::full), largest);
  // Many samples of few features.
  EXPECT_LE(lapack_work::dgesdd(1e9, 64, lapack_work::Vectors::thin), largest);
  EXPECT_LE(lapack_work::dsyevr(1e6), largest);
  EXPECT_LE(lapack_work::dsyev(1e6), largest);
  EXPECT_LE(lapack_work::dgeqrf(1e6), largest);
}

// Asked for the length alone (-1), LAPACK touches no matrix.
TEST(LapackWork, IsNoLessThanLapackAsksFor) {
  double asked = 0, none = 0;
  lapack_int asked_ints = 0, found = 0;
  for (const lapack_int n : {1, 2, 7, 60, 500, 4000, 23000}) {
    const auto size = static_cast<double>(n);
    for (const bool vectors : {false, true}) {
      const char job = vectors ? 'V' : 'N';
      LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, job, 'L', n, &none, n, &none, &asked, -1, &asked_ints, -1);
      EXPECT_LE(asked, lapack_work::dsyevd(size, vectors)) << n;
      LAPACKE_dsyev_work(LAPACK_COL_MAJOR, job, 'L', n, &none, n, &none, &asked, -1);
      EXPECT_LE(asked, lapack_work::dsyev(size)) << n;
      LAPACKE_dsyevr_work(LAPACK_COL_MAJOR, job, 'I', 'L', n, &none, n, 0, 0, 1, 1, 0, &found, &none, &none, n, &found,
                          &asked, -1, &asked_ints, -1);
      EXPECT_LE(std::max<double>(asked, asked_ints), lapack_work::dsyevr(size)) << n;
    }
    for (const lapack_int m : {1, 3, 60, 700, 23000, 20000000}) {
      LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, m, n, &none, m, &none, &asked, -1);
      EXPECT_LE(asked, lapack_work::dgeqrf(size)) << m << " x " << n;
      using lapack_work::Vectors;
      for (const auto& [vectors, job] :
           {std::pair{Vectors::none, 'N'}, std::pair{Vectors::thin, 'S'}, std::pair{Vectors::full, 'A'}}) {
        const lapack_int rows = vectors == Vectors::full ? n : std::min(m, n);
        LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, job, m, n, &none, m, &none, &none, m, &none, rows, &asked, -1, &found);
        EXPECT_LE(asked, lapack_work::dgesdd(m, size, vectors)) << m << " x " << n << job;
        LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, job, job, m, n, &none, m, &none, &none, m, &none, rows, &asked, -1);
        EXPECT_LE(asked, lapack_work::dgesvd(m, size, vectors)) << m << " x " << n << job;
      }
    }
  }
}

TEST(BlasInt, RefusesWhatBlasCannotCount) {
  EXPECT_EQ(blas_int(0), 0);
  EXPECT_EQ(blas_int(std::numeric_limits<int>::max()), std::numeric_limits<int>::max());
  expect_parts(refusal([] { blas_int(Index(1) << 31); }), {"2147483648", "2147483647", "fewer"});
}

TEST(BlasInt, TheLowerLimitEndsWithItsScope) {
  {
    const LowerBlasLimitForTests lower(10);
    expect_parts(refusal([] { blas_int(11); }), {"11", "10"});
  }
  EXPECT_EQ(blas_int(11), 11);
}

// Each limit lies between what the first method needs and what the second does.
TEST(LapackSizes, EigenvaluesTurnToTheMethodWithTheShorterWorkArray) {
  const Index n = 140;  // smaller ones do not go to LAPACK
  const Small a = random_covariance(n);
  const LowerBlasLimitForTests lower(20000);
  ASSERT_GT(lapack_work::dsyevd(n, true), 20000);
  ASSERT_LE(lapack_work::dsyev(n), 20000);
  SmallVector values;
  Small vectors;
  ASSERT_TRUE(symmetric_eigen(a, values, vectors));
  EXPECT_LT(ratio(vectors * values.asDiagonal() * vectors.transpose() - a, a), ratio_limit);
}

TEST(LapackSizes, SingularValuesTurnToTheMethodWithTheShorterWorkArray) {
  const Index n = 60;
  const Small a = random_matrix(n, n);
  const LowerBlasLimitForTests lower(20000);
  for (const SvdSize size : {SvdSize::thin, SvdSize::full}) {
    ASSERT_GT(lapack_work::dgesdd(n, n, lapack_work::Vectors::thin), 20000);
    ASSERT_LE(lapack_work::dgesvd(n, n, lapack_work::Vectors::full), 20000);
    Svd parts;
    ASSERT_TRUE(svd(a, size, parts));
    EXPECT_LT(ratio(parts.u * parts.s.asDiagonal() * parts.v.transpose() - a, a), ratio_limit);
  }
}

// Without LAPACK, and as accurate: also where eigenvalues are equal, or spread over many orders.
TEST(SmallEigen, IsADecomposition) {
  for (const Index n : {1, 2, 16, 72, 128})
    for (const double spread : {0.0, 1.0, 6.0}) {
      const Small q = Eigen::HouseholderQR<Small>(random_matrix(n, n)).householderQ();
      SmallVector exact(n);
      for (Index i = 0; i < n; ++i) exact(i) = std::pow(1 + static_cast<double>(n - 1 - i), -spread);
      Small a = q * exact.asDiagonal() * q.transpose();
      a = 0.5 * (a + a.transpose()).eval();
      SmallVector values, alone;
      Small vectors;
      ASSERT_TRUE(symmetric_eigen(a, values, vectors));
      ASSERT_TRUE(symmetric_eigenvalues(a, alone));
      const double unit = static_cast<double>(n) * std::numeric_limits<double>::epsilon();
      EXPECT_LT(ratio(vectors * values.asDiagonal() * vectors.transpose() - a, a), ratio_limit) << n << ", " << spread;
      EXPECT_LT((vectors.transpose() * vectors - Small::Identity(n, n)).norm(), unit) << n << ", " << spread;
      EXPECT_LT((values - exact).norm(), ratio_limit * unit * exact.norm()) << n << ", " << spread;
      EXPECT_LT((alone - exact).norm(), ratio_limit * unit * exact.norm()) << n << ", " << spread;
      EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    }
}

TEST(LapackSizes, BeyondEveryMethodIsRefusedInWords) {
  const Index n = 140;
  const Small a = random_covariance(n);
  SmallVector values;
  Small vectors = a;
  Svd parts;
  const LowerBlasLimitForTests lower(4000);
  expect_parts(refusal([&] { symmetric_eigen(a, values, vectors); }), {"140 x 140", "dsyev", "4000", "projection"});
  expect_parts(refusal([&] { symmetric_eigenvalues(a, values); }), {"140 x 140", "dsyev", "4000"});
  expect_parts(refusal([&] { svd(a, SvdSize::thin, parts); }), {"140 x 140", "dgesvd", "4000"});
  expect_parts(refusal([&] { singular_values(a, values); }), {"140 x 140", "dgesvd", "4000"});
  expect_parts(refusal([&] { leading_eigenpairs(vectors, 2, values, nullptr); }), {"140 x 140", "dsyevr", "4000"});
  double least = 0;
  expect_parts(refusal([&] { smallest_eigenvalue(vectors, least); }), {"140 x 140", "dsyevr", "4000"});
  expect_parts(refusal([&] { qr_triangle(vectors); }), {"140 x 140", "dgeqrf", "4000"});
}

TEST(LapackSizes, EverySizeHandedToBlasIsCounted) {
  const Small wide = random_matrix(7, 30), tall = random_matrix(30, 7), square = random_covariance(30);
  Small sum = Small::Zero(30, 30), small_sum = Small::Zero(7, 7), l = square;
  ASSERT_TRUE(cholesky(l));
  const LowerBlasLimitForTests lower(20);
  const auto expect_refused = [](auto call) { expect_parts(refusal(call), {"30", "20"}); };
  expect_refused([&] { product_transposed(wide, random_matrix(7, 7)); });
  expect_refused([&] { product_transposed(random_matrix(7, 7), wide); });
  expect_refused([&] { product_transposed(tall, tall); });
  expect_refused([&] { add_gram(wide, sum); });
  expect_refused([&] { add_gram(tall, small_sum); });
  expect_refused([&] { congruence(l, sum); });
  expect_refused([&] { pivoted_cholesky(square, 0); });
}

// Through a public door.
TEST(LapackSizes, ACovarianceThatIsTooLargeIsMisuse) {
  const Block<double> sigma = random_covariance(60);
  const LowerBlasLimitForTests lower(4000);
  expect_parts(refusal([&] { leading_eigenvalues<double>(sigma, 3); }), {"60 x 60", "4000", "projection"});
  expect_parts(refusal([&] { truncate<double>(sigma, 3); }), {"60 x 60", "4000", "projection"});
}

}  // namespace
}  // namespace itspace
