// SPDX-License-Identifier: Apache-2.0
//
// How cuBLAS and cuSOLVER are called: sizes, transposes and strides of row-major matrices for libraries of columns, and
// that nothing falls back to the host unseen. With libraries that hold to the manuals (stand_in/libraries.cpp).
#include "on_device.hpp"

#include <itspace/cuda/distance.hpp>
#include <itspace/random.hpp>

#include "cuda/linear_algebra.hpp"
#include "stand_in/runtime.hpp"

#include <Eigen/Cholesky>
#include <limits>
#include <utility>
#include <vector>

namespace itspace::test {
namespace {

Block<double> normal(Index rows, Index cols, std::uint64_t seed) {
  Block<double> block(rows, cols);
  Random(seed).fill_normal<double>(block);
  return block;
}

constexpr double rounding(Index terms) {
  return 10 * double(terms) * std::numeric_limits<double>::epsilon();
}

TEST(CudaLinearAlgebra, MultipliesMatricesByRows) {
  const Index m = 5, k = 7, n = 3;
  const cuda::UseDevice use(device().ordinal());
  auto& algebra = cuda::LinearAlgebra::of(device().state());
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const double beta : {0.0, 1.0}) {
        SCOPED_TRACE(testing::Message() << transpose_a << transpose_b << beta);
        const Block<double> a = transpose_a ? normal(k, m, 1) : normal(m, k, 1);
        const Block<double> b = transpose_b ? normal(n, k, 2) : normal(k, n, 2), before = normal(m, n, 3);
        const auto there_a = cuda::to_device<double>(device(), a), there_b = cuda::to_device<double>(device(), b);
        // Without a sum before it the memory is as it came.
        auto c = beta != 0 ? cuda::to_device<double>(device(), before) : cuda::Block<double>(device(), m, n);
        algebra.multiply(transpose_a, there_a.data(), transpose_b, there_b.data(), m, k, n, beta, c.data());
        Eigen::MatrixXd expected = beta * before;
        const Eigen::MatrixXd left = transpose_a ? Eigen::MatrixXd(a.transpose()) : Eigen::MatrixXd(a);
        expected += left * (transpose_b ? Eigen::MatrixXd(b.transpose()) : Eigen::MatrixXd(b));
        EXPECT_LE((cuda::to_host<double>(device(), c) - expected).norm(), rounding(k) * expected.norm());
      }
  const Block<double> x = normal(4, 6, 4), y = normal(4, 6, 5);
  const auto there_x = cuda::to_device<double>(device(), x), there_y = cuda::to_device<double>(device(), y);
  EXPECT_NEAR(algebra.inner(there_x.data(), there_y.data(), 24), x.cwiseProduct(y).sum(),
              rounding(24) * x.norm() * y.norm());
}

TEST(CudaLinearAlgebra, FactorsLowerTrianglesAndLeavesTheOthersAlone) {
  const Index d = 9;
  std::vector<Block<double>> sigmas;
  std::vector<Eigen::MatrixXd> expected;
  std::vector<cuda::Block<double>> there;
  for (const std::uint64_t seed : {6, 7}) {
    const Block<double> root = normal(d, d + 2, seed);
    Block<double> sigma = root * root.transpose();
    expected.emplace_back(Eigen::LLT<Eigen::MatrixXd>(sigma).matrixL());
    sigma.triangularView<Eigen::StrictlyUpper>().setConstant(77);
    there.push_back(cuda::to_device<double>(device(), sigma));
    sigmas.push_back(std::move(sigma));
  }
  const cuda::UseDevice use(device().ordinal());
  auto& algebra = cuda::LinearAlgebra::of(device().state());
  const auto factorize = [&] { return algebra.cholesky(device().state(), {there[0].data(), there[1].data()}, d); };
  ASSERT_TRUE(factorize());
  for (std::size_t n = 0; n < there.size(); ++n) {
    const Block<double> found = cuda::to_host<double>(device(), there[n]);
    EXPECT_LE((Eigen::MatrixXd(found.triangularView<Eigen::Lower>()) - expected[n]).norm(),
              rounding(d * d) * expected[n].norm());
    for (Index i = 0; i < d; ++i)
      for (Index j = i + 1; j < d; ++j) EXPECT_EQ(found(i, j), 77);
  }
  // Whichever of them is not definite.
  for (const std::size_t other : {0, 1}) {
    SCOPED_TRACE(other);
    Block<double> indefinite = sigmas[other];
    indefinite(d - 1, d - 1) = -1;
    for (std::size_t n = 0; n < there.size(); ++n)
      cuda::copy_to_device<double>(device(), n == other ? indefinite : sigmas[n], there[n]);
    EXPECT_FALSE(factorize());
  }
}

TEST(CudaLinearAlgebra, DistancesOfFeaturesStayOnTheDevice) {
  const Index n = 90, d = 12;
  const Block<double> x = normal(n, d, 7), z = 3 * normal(n, d, 8);
  const auto there_x = cuda::to_device<double>(device(), x), there_z = cuda::to_device<double>(device(), z);
  device().release_unused();  // what is allocated from here on is NaN
  const std::size_t before = bytes_to_host();
  const Distance found = cuda::features_distance<double>(device(), there_x, there_z);
  EXPECT_LT(bytes_to_host() - before, std::size_t(n * d) * sizeof(double));
  const double here = features_distance<double>(x, z, Accuracy{}).covariance_part;
  EXPECT_NEAR(found.covariance_part, here, default_accuracy.relative * here);
}

}  // namespace
}  // namespace itspace::test
