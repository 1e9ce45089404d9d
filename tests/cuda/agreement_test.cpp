// SPDX-License-Identifier: Apache-2.0
//
// Promise 4: the device agrees with the host on the objective trace and on YY', never on Y, which has an orthogonal
// gauge. Both are within the scaled residuals of one step of the exact one, so that after k steps they may be 2 k of
// them apart. Where a step searches for its length, or for the best of a subspace, it finds the minimum of a parabola:
// to the root of that, and the rows agree as well as that.
#include "on_device.hpp"

#include <itspace/random.hpp>

#include <functional>

namespace itspace::test {
namespace {

template <class Scalar>
class CudaAgreement : public ::testing::Test {
 protected:
  void SetUp() override { ITSPACE_NEEDS_DEVICE(); }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaAgreement, Scalars);

template <Storage Scalar>
void expect_agreement(const Result<Scalar>& there, const Result<Scalar>& here, bool of_iterates = true) {
  ASSERT_EQ(there.status(), here.status()) << name(there.status()) << " " << there.trace.reason;
  ASSERT_EQ(there.trace.steps.size(), here.trace.steps.size());
  const Real r = Real(here.factor.cols());
  EXPECT_NEAR(there.trace.target_trace / here.trace.target_trace, 1, double(ratio_limit * eps<Scalar>));
  for (std::size_t k = 0; k < here.trace.steps.size(); ++k) {
    SCOPED_TRACE(k);
    const Step &a = there.trace.steps[k], &b = here.trace.steps[k];
    const Real size = here.trace.target_trace + real(here.iterates[k]).squaredNorm();
    Real apart = 2 * ratio_limit * eps<Scalar> * r * Real(k + 1);
    if (!of_iterates && k > 0) apart = std::sqrt(apart);
    EXPECT_EQ(a.passes, b.passes);
    EXPECT_LE(std::abs(Real(a.objective) - Real(b.objective)), a.resolution + b.resolution + apart * size);
    if (!of_iterates) continue;
    const RealMatrix y = real(there.iterates[k]), z = real(here.iterates[k]);
    EXPECT_LE((y * y.transpose() - z * z.transpose()).norm(), apart * z.squaredNorm());
  }
}

template <Storage Scalar, class DeviceTarget, class HostTarget>
void compare(const DeviceTarget& there, const HostTarget& here, const Block<Scalar>& start, AlignOptions options,
             bool of_iterates = true) {
  options.keep_iterates = true;
  const auto on_device = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(there, start, options));
  expect_agreement<Scalar>(on_device, align<Scalar>(here, start, options), of_iterates);
  // The same bits again.
  const auto again = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(there, start, options));
  EXPECT_EQ(on_device.factor, again.factor);
  for (std::size_t k = 0; k < again.trace.steps.size(); ++k)
    EXPECT_EQ(on_device.trace.steps[k].objective, again.trace.steps[k].objective);
}

AlignOptions paper(Route route, StepSize size = {}) {
  AlignOptions options;
  options.steps = 5;
  options.route = route;
  options.step_size = size;
  return options;
}

TYPED_TEST(CudaAgreement, Dense) {
  using S = TypeParam;
  for (const Size size : {Size{17, 3}, Size{300, 16}, Size{301, 1}}) {
    SCOPED_TRACE(std::to_string(size.dim) + " " + std::to_string(size.rank));
    const auto p = make_problem<S>({.dim = size.dim, .rank = size.rank, .seed = 1});
    const cuda::DenseTarget<S> there(device(), p.sigma);
    const DenseTarget<S> here(p.sigma);
    compare<S>(there, here, p.start, paper(Route::automatic));
    compare<S>(there, here, p.start, paper(Route::qr, StepSize::alpha(1)));
    compare<S>(there, here, p.start, paper(Route::automatic, StepSize::line_search()), false);
    AlignOptions probe = paper(Route::automatic);
    probe.probe = true;
    compare<S>(there, here, p.start, probe, false);
    AlignOptions ritz;
    ritz.solver = Solver::ritz;
    ritz.steps = 3;
    compare<S>(there, here, p.start, ritz, false);
  }
}

TYPED_TEST(CudaAgreement, FeaturesAndFactors) {
  using S = TypeParam;
  Draw draw(2);
  const Index d = 130, n = 1000;
  const auto p = make_problem<S>({.dim = d, .rank = 8, .seed = 3});
  const Block<S> z = block<S>(features_with(n, eigenvalues_of(Spectrum::power_law, d), 3, draw));
  const cuda::FeaturesTarget<S> features(device(), z);
  const FeaturesTarget<S> host_features(z);
  EXPECT_LE((features.mean() - host_features.mean()).norm(),
            double(ratio_limit * eps<S>) * host_features.mean().norm());
  compare<S>(features, host_features, p.start, paper(Route::automatic));
  compare<S>(features, host_features, p.start, paper(Route::factor));
  compare<S>(cuda::FactorTarget<S>(device(), p.factor), FactorTarget<S>(p.factor), p.start, paper(Route::factor));
  const Eigen::VectorXd lambda = eigenvalues_of(Spectrum::power_law, p.factor.cols());
  const Eigen::VectorXd diagonal = Eigen::VectorXd::LinSpaced(d, 0.1, 0.2);
  compare<S>(cuda::LowRankDiagonalTarget<S>(device(), p.factor, lambda, diagonal),
             LowRankDiagonalTarget<S>(p.factor, lambda, diagonal), p.start, paper(Route::automatic));
}

// More features than a piece of the sweep holds (24 MiB), with weights and without.
TYPED_TEST(CudaAgreement, FeaturesInPieces) {
  using S = TypeParam;
  const Index d = 64, n = 120000, r = 3;
  Block<S> z(n, d), y(d, r);
  Random(1).template fill_normal<S>(z);
  Random(2).template fill_normal<S>(y);
  z.col(1) =
      3 * z.col(0) + z.col(1).cwiseAbs();  // a covariance that is no multiple of the identity, a mean that is not 0
  const cuda::Block<S> in = cuda::to_device<S>(device(), y);
  cuda::Block<S> out(device(), d, r), inner(device(), n, r);
  for (const Eigen::VectorXd& weights : {Eigen::VectorXd(), Eigen::VectorXd(Eigen::VectorXd::LinSpaced(n, 0, 1))}) {
    const cuda::FeaturesTarget<S> there(device(), z, weights);
    const FeaturesTarget<S> here(z, weights);
    Block<S> expected(d, r), expected_inner(n, r);
    here.apply(y, expected);
    there.apply(in, out);
    const Real limit = ratio_limit * Real(d) * eps<S>;
    EXPECT_LE((real(cuda::to_host<S>(device(), out)) - real(expected)).norm(), limit * real(expected).norm());
    EXPECT_NEAR(there.trace() / here.trace(), 1, double(limit));
    here.apply_factor_transposed(y, expected_inner);
    there.apply_factor_transposed(in, inner);
    EXPECT_LE((real(cuda::to_host<S>(device(), inner)) - real(expected_inner)).norm(),
              limit * real(expected_inner).norm());
    there.apply_factor(inner, out);
    EXPECT_LE((real(cuda::to_host<S>(device(), out)) - real(expected)).norm(), limit * real(expected).norm());
  }
}

// Directions that the target does not see, and completion.
TYPED_TEST(CudaAgreement, ZeroStart) {
  using S = TypeParam;
  const auto p = make_problem<S>({.dim = 60, .rank = 4, .seed = 4});
  const Block<S> zero = Block<S>::Zero(60, 4);
  compare<S>(cuda::DenseTarget<S>(device(), p.sigma), DenseTarget<S>(p.sigma), zero, paper(Route::automatic), false);
}

TYPED_TEST(CudaAgreement, RandomStart) {
  using S = TypeParam;
  const auto p = make_problem<S>({.dim = 300, .rank = 8, .seed = 5});
  AlignOptions options;
  options.seed = 9;
  options.keep_iterates = true;
  const auto there = cuda::align<S>(cuda::DenseTarget<S>(device(), p.sigma), 8, options);
  expect_agreement<S>(cuda::on_host<S>(device(), there), align<S>(DenseTarget<S>(p.sigma), 8, options));
}

// NaN in the data, memory of the caller's, a caller's stream, on_step.
TYPED_TEST(CudaAgreement, OutcomesAndBorrowedMemory) {
  using S = TypeParam;
  auto p = make_problem<S>({.dim = 40, .rank = 3, .seed = 6});
  const cuda::Device theirs(0, nullptr);  // the default stream
  const cuda::Block<S> memory = cuda::to_device<S>(theirs, p.sigma), start = cuda::to_device<S>(theirs, p.start);
  const cuda::DenseTarget<S> target(theirs, cuda::ConstView<S>(memory));
  Index seen = 0;
  const auto result = cuda::align<S>(target, cuda::ConstView<S>(start), {.steps = 5},
                                     [&](const Step& step, const cuda::ConstView<S>& y) {
                                       EXPECT_EQ(step.index, seen++);
                                       EXPECT_EQ(y.rows, 40);
                                       return step.index == 2 ? StepAction::stop : StepAction::proceed;
                                     });
  EXPECT_EQ(result.status(), Status::stopped);
  EXPECT_EQ(cuda::to_host<S>(theirs, start), p.start) << "the caller's start is read only";
  p.sigma(5, 6) = p.sigma(6, 5) = std::numeric_limits<S>::quiet_NaN();
  EXPECT_EQ(cuda::align<S>(cuda::DenseTarget<S>(device(), p.sigma), p.start).status(), Status::not_finite);
}

}  // namespace
}  // namespace itspace::test
