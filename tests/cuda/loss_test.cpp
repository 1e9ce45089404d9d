// SPDX-License-Identifier: Apache-2.0
//
// Losses, remainders, maps and checks on the device, beside the host's: within scaled residuals of the storage type.
#include "on_device.hpp"

#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/loss.hpp>
#include <itspace/cuda/transport.hpp>
#include <itspace/gradient.hpp>
#include <itspace/random.hpp>

#include <limits>

namespace itspace::test {
namespace {

template <class Scalar>
class CudaLoss : public ::testing::Test {
 protected:
  void SetUp() override { ITSPACE_NEEDS_DEVICE(); }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaLoss, Scalars);

// Some hundreds of roundings.
template <Storage Scalar>
constexpr double limit = 500 * double(std::numeric_limits<Scalar>::epsilon());

template <Storage Scalar>
Block<Scalar> normal(Index rows, Index cols, std::uint64_t seed, double mean = 0) {
  Block<Scalar> block(rows, cols);
  Random(seed).fill_normal<Scalar>(block);
  for (Index j = 0; j < cols; ++j) block.col(j) *= Scalar(1 + 3.0 * double(j) / double(cols));
  return (block.array() + Scalar(mean)).matrix();
}

template <class A, class B>
double apart(const A& there, const B& here) {
  return (there.template cast<double>() - here.template cast<double>()).norm() / here.template cast<double>().norm();
}

TYPED_TEST(CudaLoss, GradientsAreTheHosts) {
  using S = TypeParam;
  for (const Index n : {200, 12}) {  // more, and fewer, samples than features
    const Block<S> z = normal<S>(n, 30, 1, 5), y = normal<S>(30, 4, 2);
    const auto here = objective_and_features_gradient<S>(y, z);
    Strided<S> features(z), factor(y), gradient(y), features_gradient(z);
    const cuda::FeaturesTarget<S> target(device(), cuda::DeviceData<S>(features.view()));
    const double value = cuda::objective_and_features_gradient<S>(target, features.view(), factor.view(),
                                                                  gradient.view(), features_gradient.view());
    const double size = target.trace() + y.template cast<double>().squaredNorm();
    EXPECT_NEAR(value, here.objective, limit<S> * size);
    EXPECT_LE(apart(gradient.values(), here.gradient), 10 * limit<S>);
    EXPECT_LE(apart(features_gradient.values(), here.features_gradient), 10 * limit<S>);
    EXPECT_TRUE(gradient.is_clean() && features_gradient.is_clean());
    const double of_target = cuda::objective_and_gradient<S>(target, factor.view(), gradient.view());
    EXPECT_NEAR(of_target, here.objective, limit<S> * size);
    EXPECT_LE(apart(gradient.values(), here.gradient), 10 * limit<S>);
    const double remainder = cuda::remainder_of<S>(target, factor.view());
    const double of_host = model_of<S>(FeaturesTarget<S>(z), y, Eigen::VectorXd::Zero(30)).remainder;
    EXPECT_NEAR(remainder, of_host, limit<S> * size);
  }
}

TYPED_TEST(CudaLoss, AFactorOfLowerRankHasTheHostsGradient) {
  using S = TypeParam;
  const Block<S> z = normal<S>(50, 20, 7, 2);
  Block<S> twice(20, 2);
  twice.col(0) = normal<S>(20, 1, 8);
  twice.col(1) = 2 * twice.col(0);
  for (const Block<S>& y : {Block<S>(Block<S>::Zero(20, 3)), twice}) {
    const auto here = objective_and_features_gradient<S>(y, z);
    Strided<S> features(z), factor(y), gradient(y), features_gradient(z);
    const cuda::FeaturesTarget<S> target(device(), cuda::DeviceData<S>(features.view()));
    const double value = cuda::objective_and_features_gradient<S>(target, features.view(), factor.view(),
                                                                  gradient.view(), features_gradient.view());
    const double size = target.trace() + y.template cast<double>().squaredNorm();
    EXPECT_NEAR(value, here.objective, limit<S> * size);
    EXPECT_LE((gradient.values() - here.gradient).norm(), limit<S> * size);
    EXPECT_LE(apart(features_gradient.values(), here.features_gradient), 10 * limit<S>);
  }
}

TYPED_TEST(CudaLoss, MapsMoveSamplesAsTheHosts) {
  using S = TypeParam;
  const Block<double> from = normal<double>(40, 5, 3), to = normal<double>(40, 3, 4);
  Eigen::VectorXd mean_from = Eigen::VectorXd::LinSpaced(40, -1, 2), mean_to = Eigen::VectorXd::LinSpaced(40, 5, 3);
  Eigen::VectorXd deviations = Eigen::VectorXd::LinSpaced(40, 1, 4);
  for (const MapKind kind : map_kinds) {
    const bool standardised = kind == MapKind::scale_monge;
    const LowRankGaussian source{from, mean_from, 0.5, deviations, standardised, 0};
    const LowRankGaussian sink{to, mean_to, 2.0, Eigen::VectorXd(2 * deviations), standardised, 0};
    const TransportMap map(source, sink, kind);
    const cuda::MapOnDevice<S> there(device(), map);
    Block<S> here = normal<S>(77, 40, 5);
    Strided<S> samples(here);
    there.apply(samples.view());
    map.apply<S>(here);
    EXPECT_LE(apart(samples.values(), here), limit<S>) << name(kind);
    EXPECT_TRUE(samples.is_clean());
  }
}

TYPED_TEST(CudaLoss, ChecksSeeWhatTheHostSees) {
  using S = TypeParam;
  for (const Index d : {1, 31, 32, 33, 100}) {
    Block<S> sigma = normal<S>(d, d, 6);
    sigma = (sigma * sigma.transpose()).eval();
    sigma = (S(0.5) * (sigma + sigma.transpose())).eval();
    const auto seen = [&] {
      Strided<S> there(sigma);
      return cuda::check_symmetric<S>(device(), there.view(), "S");
    };
    EXPECT_EQ(seen(), 0);
    // By whichever thread of whichever block.
    for (Index row = 1; row < d; row += 1 + d / 9) {
      const Index col = 5 * d % row;
      const S before = sigma(row, col);
      sigma(row, col) += std::numeric_limits<float>::epsilon() * std::abs(sigma(0, 0));
      EXPECT_EQ(seen(), std::abs(double(sigma(row, col)) - double(sigma(col, row)))) << d << ": " << row << ", " << col;
      sigma(row, col) = before + 2 * std::abs(sigma(0, 0));
      EXPECT_THROW(seen(), std::invalid_argument);
      sigma(row, col) = before;
    }
    const S variance = sigma(d - 1, d - 1);
    sigma(d - 1, d - 1) = -sigma.cwiseAbs().maxCoeff();
    EXPECT_THROW(seen(), std::invalid_argument);
    sigma(d - 1, d - 1) = std::numeric_limits<S>::quiet_NaN();
    EXPECT_THROW(seen(), std::invalid_argument);
    Strided<S> there(sigma);
    EXPECT_THROW(cuda::check_finite<S>(device(), there.view(), "S"), std::invalid_argument);
    sigma(d - 1, d - 1) = variance;
  }
  EXPECT_THROW(cuda::check_symmetric<S>(device(), cuda::Block<S>(device(), 3, 2), "S"), std::invalid_argument);
}

}  // namespace
}  // namespace itspace::test
