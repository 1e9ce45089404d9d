// SPDX-License-Identifier: Apache-2.0
//
// All steps in one launch: the trace and the factor of the general solver, which takes over where the fused steps
// cannot certify. A run was fused where its first row says gram: the general solver begins with qr.
#include "on_device.hpp"

#include <itspace/random.hpp>

#include <Eigen/QR>

#include <cmath>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

namespace itspace::test {
namespace {

template <class Scalar>
class CudaFused : public ::testing::Test {
 protected:
  void SetUp() override {
    ITSPACE_NEEDS_DEVICE();
    if (device().properties().major != 9) GTEST_SKIP() << "the fused steps are for compute capability 9";
  }

  // Eigenvalues 1, 2^-power, 3^-power, ..., turned by a reflection.
  static Block<Scalar> covariance(Index d, double power, double size = 1) {
    Block<double> v(d, 1);
    Random(5).fill_normal<double>(v);
    v /= v.norm();
    Vector lambda(d);
    for (Index i = 0; i < d; ++i) lambda(i) = size * std::pow(double(i + 1), -power);
    Block<double> sigma = lambda.asDiagonal();
    const Block<double> turned = sigma - 2 * v * (v.transpose() * sigma);
    sigma = turned - 2 * (turned * v) * v.transpose();
    return (0.5 * (sigma + sigma.transpose())).template cast<Scalar>();
  }
  static Block<Scalar> start(Index d, Index r, double size) {
    Block<double> y(d, r);
    Random(7).fill_normal<double>(y);
    return (y * std::sqrt(size / double(d * r))).template cast<Scalar>();
  }
  static AlignOptions steps(Index count, StepSize size = {}) {
    AlignOptions options;
    options.steps = count;
    options.step_size = size;
    return options;
  }
  static bool was_fused(const Trace& trace) { return trace.steps.front().route == Route::gram; }
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaFused, Scalars);

TYPED_TEST(CudaFused, AgreesWithTheHost) {
  using Scalar = TypeParam;
  for (const auto& [d, r] :
       {std::pair<Index, Index>{64, 8}, {256, 1}, {1000, 16}, {1028, 5}, {2048, 16}, {772, 20}, {2052, 32}})
    for (const double power : {0.5, 1.0})
      for (const double alpha : {0.9, 1.0, 1.5}) {
        SCOPED_TRACE(::testing::Message() << "d=" << d << " r=" << r << " power " << power << " alpha " << alpha);
        const Block<Scalar> sigma = this->covariance(d, power), y = this->start(d, r, 4);
        const auto options = this->steps(6, StepSize::alpha(alpha));
        const cuda::DenseTarget<Scalar> target(device(), sigma);
        const auto there = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, options));
        auto kept = options;
        kept.route = Route::gram;
        const auto here = align<Scalar>(DenseTarget<Scalar>(borrow(sigma)), y, kept);
        ASSERT_TRUE(this->was_fused(there.trace));
        ASSERT_EQ(there.status(), here.status()) << there.trace.reason;
        EXPECT_TRUE(there.trace.certified());
        ASSERT_EQ(there.trace.steps.size(), here.trace.steps.size());
        const Real size = Real(here.trace.target_trace) + real(here.factor).squaredNorm();
        for (std::size_t k = 0; k < here.trace.steps.size(); ++k) {
          const Step &a = there.trace.steps[k], &b = here.trace.steps[k];
          const Real apart = 2 * ratio_limit * eps<Scalar> * Real(r) * Real(k + 1);
          EXPECT_EQ(a.passes, b.passes);
          EXPECT_LE(std::abs(Real(a.objective) - Real(b.objective)), a.resolution + b.resolution + apart * size) << k;
          // What is not known of F is stated, and is of the host's size.
          EXPECT_LE(a.resolution, 30 * b.resolution) << k;
          EXPECT_LE(a.certificate_gap, 1e-9 * a.objective + a.resolution) << k;
        }
        const RealMatrix p = real(there.factor), q = real(here.factor);
        const Real apart = 2 * ratio_limit * eps<Scalar> * Real(r) * Real(7) * Real(std::pow(double(r), power));
        EXPECT_LE((p * p.transpose() - q * q.transpose()).norm(), apart * q.squaredNorm());
        const auto again = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, options));
        EXPECT_EQ(there.factor, again.factor);  // the same bits
      }
}

// Memory of the caller's, with rows further apart than they are long, is read where it lies, and no further.
TYPED_TEST(CudaFused, RowsMayLieApart) {
  using Scalar = TypeParam;
  const Index d = 300, r = 6, stride = 320;
  const Block<Scalar> sigma = this->covariance(d, 1), y = this->start(d, r, 4);
  Block<Scalar> wide(d, stride);
  wide.setConstant(std::numeric_limits<Scalar>::quiet_NaN());
  wide.leftCols(d) = sigma;
  const auto memory = cuda::to_device<Scalar>(device(), wide);
  const cuda::DenseTarget<Scalar> apart(device(), cuda::ConstView<Scalar>(memory.data(), d, d, stride));
  const cuda::DenseTarget<Scalar> plain(device(), sigma);
  const auto a = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(apart, y, this->steps(5)));
  const auto b = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(plain, y, this->steps(5)));
  EXPECT_TRUE(this->was_fused(a.trace) && this->was_fused(b.trace));
  EXPECT_EQ(a.factor, b.factor);
}

// A start of the caller's is read where it lies, too, and left as it is.
TYPED_TEST(CudaFused, StartsWhereTheStartLies) {
  using Scalar = TypeParam;
  const Index d = 300, r = 6, stride = 11;
  const Block<Scalar> sigma = this->covariance(d, 1), y = this->start(d, r, 4);
  Block<Scalar> wide(d, stride);
  wide.setConstant(std::numeric_limits<Scalar>::quiet_NaN());
  wide.leftCols(r) = y;
  const auto memory = cuda::to_device<Scalar>(device(), wide);
  const cuda::DenseTarget<Scalar> target(device(), sigma);
  const cuda::ConstView<Scalar> start(memory.data(), d, r, stride);
  const auto a = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, start, this->steps(5)));
  const auto b = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, this->steps(5)));
  EXPECT_TRUE(this->was_fused(a.trace) && this->was_fused(b.trace));
  EXPECT_EQ(a.factor, b.factor);
  EXPECT_EQ(Block<Scalar>(cuda::to_host<Scalar>(device(), memory).leftCols(r)), y);
}

// What runs of other sizes have left in the device's memory is not taken for this run's.
TYPED_TEST(CudaFused, BeginsAfresh) {
  using Scalar = TypeParam;
  std::vector<Block<Scalar>> first;
  for (int round = 0; round < 2; ++round)
    for (const auto& [d, r, count] : {std::tuple<Index, Index, Index>{1024, 16, 7}, {96, 3, 8}, {1024, 9, 3}}) {
      const Block<Scalar> sigma = this->covariance(d, 1), y = this->start(d, r, 4);
      const cuda::DenseTarget<Scalar> target(device(), sigma);
      const auto there = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, this->steps(count)));
      EXPECT_TRUE(this->was_fused(there.trace));
      if (round == 0) {
        first.push_back(there.factor);
      } else {
        EXPECT_EQ(there.factor, first[std::size_t(d == 96 ? 1 : r == 16 ? 0 : 2)]);
      }
    }
}

// Of a covariance too large for shared memory what lies above the diagonal is read, and boxes of 32 x 32 on it.
template <class Scalar>
Block<Scalar> upper_half(const Block<Scalar>& sigma, Index stride) {
  constexpr Index box = 32;
  const Index d = sigma.rows();
  Block<Scalar> half = Block<Scalar>::Constant(d, stride, std::numeric_limits<Scalar>::quiet_NaN());
  for (Index i = 0; i < d; ++i) {
    const Index first = i / box * box;
    half.row(i).segment(first, d - first) = sigma.row(i).tail(d - first);
  }
  return half;
}

// ||pp' - qq'||, from the triangle of p and q side by side.
Real apart(const RealMatrix& p, const RealMatrix& q) {
  RealMatrix both(p.rows(), p.cols() + q.cols());
  both << p, q;
  const Eigen::HouseholderQR<RealMatrix> qr(both);
  const RealMatrix r = qr.matrixQR().topRows(both.cols()).triangularView<Eigen::Upper>();
  return (r.leftCols(p.cols()) * r.leftCols(p.cols()).transpose() -
          r.rightCols(q.cols()) * r.rightCols(q.cols()).transpose())
      .norm();
}

TYPED_TEST(CudaFused, ReadsHalfOfALargeCovariance) {
  using Scalar = TypeParam;
  for (const auto& [d, r, stride] : {std::tuple<Index, Index, Index>{5120, 16, 5120}, {5197, 5, 5200}}) {
    SCOPED_TRACE(::testing::Message() << "d=" << d << " r=" << r);
    const Block<Scalar> sigma = this->covariance(d, 1), y = this->start(d, r, 4);
    const auto memory = cuda::to_device<Scalar>(device(), upper_half(sigma, stride));
    const cuda::DenseTarget<Scalar> target(device(), cuda::ConstView<Scalar>(memory.data(), d, d, stride));
    auto options = this->steps(6);
    const auto there = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, options));
    const auto again = cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, y, options));
    EXPECT_EQ(there.factor, again.factor);  // the same bits
    options.route = Route::gram;
    const auto here = align<Scalar>(DenseTarget<Scalar>(borrow(sigma)), y, options);
    ASSERT_TRUE(this->was_fused(there.trace));
    EXPECT_TRUE(there.trace.certified());
    ASSERT_EQ(there.trace.steps.size(), here.trace.steps.size());
    const Real size = Real(here.trace.target_trace) + real(here.factor).squaredNorm();
    const Real unit = 2 * ratio_limit * eps<Scalar> * Real(r) * Real(7);
    for (std::size_t k = 0; k < here.trace.steps.size(); ++k) {
      const Step &a = there.trace.steps[k], &b = here.trace.steps[k];
      EXPECT_LE(std::abs(Real(a.objective) - Real(b.objective)), a.resolution + b.resolution + unit * size) << k;
      EXPECT_LE(a.resolution, 30 * b.resolution) << k;
    }
    EXPECT_LE(apart(real(there.factor), real(here.factor)), unit * Real(r) * real(here.factor).squaredNorm());
  }
}

// The same by itself: one launch multiplies with up to 32 columns, 16 at a time.
TYPED_TEST(CudaFused, MultipliesByHalfOfALargeCovariance) {
  using Scalar = TypeParam;
  const Index d = 5165, stride = 5168;
  const Block<Scalar> sigma = this->covariance(d, 1);
  const auto memory = cuda::to_device<Scalar>(device(), upper_half(sigma, stride));
  const cuda::DenseTarget<Scalar> target(device(), cuda::ConstView<Scalar>(memory.data(), d, d, stride));
  for (const Index cols : {3, 21, 53}) {
    const Block<Scalar> y = this->start(d, cols, 4);
    const auto y_there = cuda::to_device<Scalar>(device(), y);
    cuda::Block<Scalar> w(device(), d, cols), again(device(), d, cols);
    cuda::Space<Scalar>(device()).poison(w);
    target.apply(y_there, w);
    target.apply(y_there, again);
    const Block<double> expected = sigma.template cast<double>() * y.template cast<double>();
    const Block<Scalar> got = cuda::to_host<Scalar>(device(), w);
    EXPECT_EQ(got, cuda::to_host<Scalar>(device(), again)) << cols;  // the same bits
    for (Index j = 0; j < cols; ++j)
      EXPECT_LE((got.col(j).template cast<double>() - expected.col(j)).norm(),
                ratio_limit * eps<Scalar> * y.col(j).template cast<double>().norm())  // ||Sigma|| = 1
          << j << " of " << cols;
  }
}

// What the fused steps do not take or cannot certify is the general solver's: the same answers, with its words.
TYPED_TEST(CudaFused, HandsOverWhatItCannotCertify) {
  using Scalar = TypeParam;
  const Index d = 64, r = 8;
  const auto compare = [&](const char* what, const Block<Scalar>& sigma, const Block<Scalar>& y, AlignOptions options) {
    SCOPED_TRACE(what);
    const cuda::DenseTarget<Scalar> target(device(), sigma);
    const auto there = cuda::align<Scalar>(target, y, options);
    const auto here = align<Scalar>(DenseTarget<Scalar>(borrow(sigma)), y, options);
    EXPECT_FALSE(this->was_fused(there.trace));
    EXPECT_EQ(there.status(), here.status()) << name(there.status()) << ", " << name(here.status());
  };
  const Block<Scalar> sigma = this->covariance(d, 1), y = this->start(d, r, 4);
  Block<Scalar> low_rank = Block<Scalar>::Zero(d, d);
  for (Index i = 0; i < 4; ++i) low_rank(i, i) = 1;
  compare("a covariance of rank 4", low_rank, y, this->steps(3));
  compare("zeros", sigma, Block<Scalar>::Zero(d, r), this->steps(3));
  Block<Scalar> doubled = y;
  doubled.col(1) = doubled.col(0);
  compare("a column twice", sigma, doubled, this->steps(3));
  compare("graded", this->covariance(d, 12), this->start(d, 30, 4), this->steps(3));
  compare("tiny", this->covariance(d, 1, 1e-32), y, this->steps(3));
  auto by_qr = this->steps(3);
  by_qr.route = Route::qr;
  compare("route qr", sigma, y, by_qr);
  compare("line search", sigma, y, this->steps(3, StepSize::line_search()));
  Block<Scalar> broken = sigma;
  broken(3, 5) = broken(5, 3) = std::numeric_limits<Scalar>::quiet_NaN();
  compare("not a number", broken, y, this->steps(3));
  // Its variances add up to less than what Y sees of it; steps so short that all of them keep their promises.
  Block<Scalar> indefinite = Block<Scalar>::Identity(d, d) * Scalar(0.001);
  indefinite(0, 1) = indefinite(1, 0) = 1;
  Block<Scalar> half_blind = Block<Scalar>::Zero(d, 2);
  half_blind(0, 0) = half_blind(1, 0) = half_blind(2, 1) = 1;
  compare("indefinite, where Y does not look", indefinite, half_blind, this->steps(2, StepSize::alpha(0.1)));
  const Block<Scalar> odd = this->covariance(61, 1);
  compare("rows that begin anywhere", odd, this->start(61, r, 4), this->steps(3));
}

// Past convergence no step is promised anything: the general solver says so.
TYPED_TEST(CudaFused, EndsWhereTheHostEnds) {
  using Scalar = TypeParam;
  const Block<Scalar> sigma = this->covariance(128, 1), y = this->start(128, 4, 4);
  const auto options = this->steps(400, StepSize::alpha(1.0));
  const cuda::DenseTarget<Scalar> target(device(), sigma);
  const auto there = cuda::align<Scalar>(target, y, options);
  EXPECT_TRUE(there.trace.certified()) << name(there.status());
  EXPECT_TRUE(there.status() == Status::converged || there.status() == Status::step_limit) << name(there.status());
}

}  // namespace
}  // namespace itspace::test
