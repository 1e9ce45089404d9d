// SPDX-License-Identifier: Apache-2.0
//
// Exact distances on the device: within their own bound of the host's sum of squares, and the bound within the
// accuracy.
#include "on_device.hpp"

#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/distance.hpp>
#include <itspace/random.hpp>

#include <Eigen/QR>
#include <cmath>
#include <string_view>

namespace itspace::test {
namespace {

// Eigenvalues from 1 down to 1/condition, turned at random.
Block<double> covariance(Index d, double condition, std::uint64_t seed) {
  Block<double> turn(d, d);
  Random(seed).fill_normal<double>(turn);
  const Eigen::MatrixXd q = Eigen::HouseholderQR<Eigen::MatrixXd>(turn).householderQ();
  Eigen::VectorXd values(d);
  for (Index i = 0; i < d; ++i) values(i) = std::pow(condition, -double(i) / double(d - 1));
  const Eigen::MatrixXd sigma = q * values.asDiagonal() * q.transpose();
  return 0.5 * (sigma + sigma.transpose());
}

class CudaDistance : public ::testing::Test {
 protected:
  void SetUp() override {
    ITSPACE_NEEDS_DEVICE();
    try {
      const auto one = cuda::to_device<double>(device(), Block<double>::Identity(2, 2));
      cuda::dense_distance<double>(device(), one, one);
    } catch (const std::runtime_error& error) {
      if (std::string_view(error.what()).find("was not found") == std::string_view::npos) throw;
      GTEST_SKIP() << error.what();  // no cuBLAS here
    }
  }
};

TEST_F(CudaDistance, IsTheHostsWithinItsBound) {
  for (const double condition : {10.0, 1e4, 1e8}) {
    SCOPED_TRACE(condition);
    const Block<double> a = covariance(120, condition, 1), b = 2 * covariance(120, std::sqrt(condition), 2);
    const double here = dense_distance_squared<double>(a, b, Accuracy{});
    Strided<double> first(a), second(b);
    const auto there = cuda::dense_distance<double>(device(), first.view(), second.view(), {1e-9, 0});
    EXPECT_FALSE(there.on_host);
    EXPECT_LE(there.error, 1e-9 * here);
    EXPECT_LE(std::abs(there.squared - here), there.error + 1e-12 * here);
    const auto again = cuda::dense_distance<double>(device(), first.view(), second.view(), {1e-9, 0});
    EXPECT_EQ(again.squared, there.squared);
  }
}

TEST_F(CudaDistance, WhatItCannotCertifyComesFromTheHost) {
  Block<double> thin(40, 10);
  Random(3).fill_normal<double>(thin);
  const Block<double> singular = thin * thin.transpose(), full = covariance(40, 100, 4);
  const auto a = cuda::to_device<double>(device(), singular), b = cuda::to_device<double>(device(), full);
  const auto found = cuda::dense_distance<double>(device(), a, b);
  EXPECT_TRUE(found.on_host);
  EXPECT_DOUBLE_EQ(found.squared, dense_distance_squared<double>(singular, full));
  // Nearly equal: the trace formula has lost the digits.
  const Block<double> close = full * (1 + 1e-9);
  const auto c = cuda::to_device<double>(device(), close);
  EXPECT_TRUE(cuda::dense_distance<double>(device(), b, c).on_host);
  EXPECT_THROW(cuda::dense_distance<double>(device(), a, cuda::Block<double>(device(), 3, 3)), std::invalid_argument);
}

TEST_F(CudaDistance, ACholeskyFactorTellsWhatIsSemidefinite) {
  Block<double> thin(40, 10);
  Random(7).fill_normal<double>(thin);
  Block<double> sigma = thin * thin.transpose();
  sigma = (0.5 * (sigma + sigma.transpose())).eval();
  const auto judged = [&] {
    Strided<double> there(sigma);
    return cuda::is_semidefinite<double>(device(), there.view());
  };
  EXPECT_TRUE(judged());  // singular, and lifted by what counts as rounding
  sigma(0, 1) += sigma.trace();
  sigma(1, 0) = sigma(0, 1);
  EXPECT_FALSE(judged());
  sigma.setZero();
  EXPECT_FALSE(judged());  // for the host to judge
}

TEST_F(CudaDistance, OfFeatures) {
  for (const bool narrow : {true, false}) {
    Block<float> x(narrow ? 200 : 20, 30), z(300, 30);
    Random(5).fill_normal<float>(x);
    Random(6).fill_normal<float>(z);
    z = (z.array() * 2 + 3).matrix();
    const Distance here = features_distance<float>(x, z, Accuracy{});
    const auto a = cuda::to_device<float>(device(), x), b = cuda::to_device<float>(device(), z);
    const Distance there = cuda::features_distance<float>(device(), a, b);
    EXPECT_NEAR(there.covariance_part, here.covariance_part, 2e-8 * here.covariance_part);
    EXPECT_NEAR(there.mean_part, here.mean_part, 1e-6 * here.mean_part);
  }
}

}  // namespace
}  // namespace itspace::test
