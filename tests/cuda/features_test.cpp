// SPDX-License-Identifier: Apache-2.0
//
// Features in one sweep: products against the definition in double, and all steps in one launch against the host, with
// the general solver where the launch cannot certify. A run was fused where its first row says gram.
#include "on_device.hpp"

#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace::test {
namespace {

struct Case {
  Index samples, dim, rank;
  double mean = 0;
  bool weighted = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "n=" << c.samples << " d=" << c.dim << " r=" << c.rank << " mean " << c.mean
             << (c.weighted ? " weighted" : "");
}

class CudaFusedFeatures : public ::testing::Test {
 protected:
  void SetUp() override {
    ITSPACE_NEEDS_DEVICE();
    if (device().properties().major != 9) GTEST_SKIP() << "sweeps over features are for compute capability 9";
  }

  // Variances 1/(j + 1) around a mean that differs from column to column.
  static Block<float> features(const Case& c) {
    Block<double> z(c.samples, c.dim);
    Random(11).fill_normal<double>(z);
    for (Index j = 0; j < c.dim; ++j)
      z.col(j) = (z.col(j).array() / std::sqrt(double(j + 1)) + c.mean * double(1 + j % 7)).matrix();
    return z.cast<float>();
  }
  static Eigen::VectorXd weights(const Case& c) {
    if (!c.weighted) return {};
    Eigen::VectorXd w(c.samples);
    for (Index i = 0; i < c.samples; ++i) w(i) = i % 5 == 3 ? 0.0 : 0.25 + double(i * 7 % 11);
    return w;
  }
  static Block<float> start(const Case& c) {
    Block<double> y(c.dim, c.rank);
    Random(7).fill_normal<double>(y);
    return (y * std::sqrt(4 / double(c.dim * c.rank))).cast<float>();
  }
  static AlignOptions steps(Index count, double alpha = 0.9) {
    AlignOptions options;
    options.steps = count;
    options.step_size = StepSize::alpha(alpha);
    return options;
  }
  static bool was_fused(const Trace& trace) { return trace.steps.front().route == Route::gram; }

  // Sigma y from the definition, in double.
  static Block<double> product(const Block<float>& z, const Eigen::VectorXd& given, const Block<float>& y) {
    const Eigen::VectorXd w = given.size() > 0 ? given : Eigen::VectorXd::Ones(z.rows());
    const Block<double> wide = z.cast<double>();
    const Eigen::RowVectorXd mean = w.transpose() * wide / w.sum();
    const Block<double> centred = wide.rowwise() - mean;
    const double c = given.size() > 0 ? w.sum() - w.squaredNorm() / w.sum() : double(z.rows() - 1);
    const Block<double> inner = (w / c).asDiagonal() * (centred * y.cast<double>());
    return centred.transpose() * inner;
  }
};

// Clusters of one to five blocks, one to four boxes of columns a warp, rows that end within a tile, fewer rows than
// clusters, than columns, than a tile.
TEST_F(CudaFusedFeatures, ProductsAreThoseOfTheDefinition) {
  for (const Case& c : {Case{300, 64, 16},
                        {5, 2048, 7},
                        {1000, 2048, 16, 0, true},
                        {257, 256, 16, 1000, true},
                        {1001, 1000, 5},
                        {777, 1028, 16, 100},
                        {515, 3072, 16, 1, true},
                        {300, 4096, 9},
                        {130, 4100, 16},
                        {2, 500, 3},
                        {400, 516, 32},
                        {3000, 772, 17, 30}}) {
    SCOPED_TRACE(c);
    const Block<float> z = features(c), y = start(c);
    const cuda::FeaturesTarget<float> target(device(), z, weights(c));
    const cuda::Block<float> in = cuda::to_device<float>(device(), y);
    cuda::Block<float> out(device(), c.dim, c.rank), again(device(), c.dim, c.rank);
    cuda::Space<float>(device()).poison(out);
    target.apply(in, out);
    target.apply(in, again);
    const Block<float> got = cuda::to_host<float>(device(), out);
    EXPECT_EQ(got, cuda::to_host<float>(device(), again));  // the same bits
    const Block<double> expected = product(z, weights(c), y);
    for (Index j = 0; j < c.rank; ++j)
      EXPECT_LE((got.col(j).cast<double>() - expected.col(j)).norm(), 16 * double(eps<float>) * expected.col(j).norm())
          << j;
  }
}

// Columns of sizes from 1e-9 to 1e9, some with a sample a thousand times as far out as the others, some that do not
// vary around a mean that is large: each row of W is as accurate as its own column allows.
TEST_F(CudaFusedFeatures, ColumnsOfAllSizesKeepTheirDigits) {
  for (const Case& c : {Case{999, 64, 16}, {700, 2048, 16}, {400, 1028, 7, 0, true}}) {
    SCOPED_TRACE(c);
    Block<float> z = features({c.samples, c.dim, c.rank}), y = start(c);
    for (Index j = 0; j < c.dim; ++j) {
      const auto size = static_cast<float>(std::pow(10.0, double(j % 19) - 9));
      z.col(j) *= size;
      y.row(j) /= size;
      if (j % 5 == 1) z(j % c.samples, j) *= 1000;
      if (j % 7 == 2) z.col(j).setConstant(size * 1234.5F);
    }
    const cuda::FeaturesTarget<float> target(device(), z, weights(c));
    cuda::Block<float> out(device(), c.dim, c.rank);
    target.apply(cuda::to_device<float>(device(), y), out);
    const Block<double> got = cuda::to_host<float>(device(), out).cast<double>(), expected = product(z, weights(c), y);
    // |W_jk| <= |z_j| |Z y_k| by Cauchy and Schwarz, of the centred and weighted samples: the root of Sigma_jj and
    // y_k'W_k.
    const Block<double> unit = Block<double>::Identity(c.dim, c.dim);
    const Eigen::VectorXd variance = product(z, weights(c), unit.cast<float>()).diagonal();
    for (Index k = 0; k < c.rank; ++k) {
      const double length = std::sqrt(y.col(k).cast<double>().dot(expected.col(k)));
      for (Index j = 0; j < c.dim; ++j)
        ASSERT_LE(std::abs(got(j, k) - expected(j, k)),
                  16 * double(eps<float>) * std::sqrt(std::max(0.0, variance(j))) * length)
            << "row " << j << ", column " << k;
    }
  }
}

TEST_F(CudaFusedFeatures, RunsAgreeWithTheHost) {
  for (const Case& c : {Case{1000, 64, 8},
                        {999, 256, 1},
                        {2000, 1000, 16},
                        {600, 1028, 5, 10},
                        {3000, 2048, 16},
                        {300, 2048, 16, 0, true},
                        {500, 772, 16, 1000, true},
                        {400, 3072, 12}})
    for (const double alpha : {0.9, 1.5}) {
      SCOPED_TRACE(::testing::Message() << c << " alpha " << alpha);
      const Block<float> z = features(c), y = start(c);
      const auto options = steps(6, alpha);
      const cuda::FeaturesTarget<float> target(device(), z, weights(c));
      const auto there = cuda::on_host<float>(device(), cuda::align<float>(target, y, options));
      auto kept = options;
      kept.route = Route::gram;
      const auto here = align<float>(FeaturesTarget<float>(z, weights(c)), y, kept);
      ASSERT_TRUE(was_fused(there.trace));
      ASSERT_EQ(there.status(), here.status()) << there.trace.reason;
      EXPECT_TRUE(there.trace.certified());
      ASSERT_EQ(there.trace.steps.size(), here.trace.steps.size());
      const Real size = Real(here.trace.target_trace) + real(here.factor).squaredNorm();
      for (std::size_t k = 0; k < here.trace.steps.size(); ++k) {
        const Step &a = there.trace.steps[k], &b = here.trace.steps[k];
        const Real apart = 2 * ratio_limit * eps<float> * Real(c.rank) * Real(k + 1);
        EXPECT_EQ(a.passes, b.passes);
        EXPECT_LE(std::abs(Real(a.objective) - Real(b.objective)), a.resolution + b.resolution + apart * size) << k;
        EXPECT_LE(a.resolution, 30 * b.resolution) << k;
        EXPECT_LE(a.certificate_gap, 1e-9 * a.objective + a.resolution) << k;
      }
      const RealMatrix p = real(there.factor), q = real(here.factor);
      const Real apart = 2 * ratio_limit * eps<float> * Real(c.rank) * Real(7) * Real(c.rank);
      EXPECT_LE((p * p.transpose() - q * q.transpose()).norm(), apart * q.squaredNorm());
      const auto again = cuda::on_host<float>(device(), cuda::align<float>(target, y, options));
      EXPECT_EQ(there.factor, again.factor);  // the same bits
    }
}

// Rows further apart than they are long are read where they lie, and no further.
TEST_F(CudaFusedFeatures, RowsMayLieApart) {
  const Case c{700, 300, 6};
  const Index stride = 320;
  const Block<float> z = features(c), y = start(c);
  Block<float> wide = Block<float>::Constant(c.samples, stride, std::numeric_limits<float>::quiet_NaN());
  wide.leftCols(c.dim) = z;
  const auto memory = cuda::to_device<float>(device(), wide);
  const cuda::ConstView<float> view(memory.data(), c.samples, c.dim, stride);
  const auto a = cuda::on_host<float>(
      device(), cuda::align<float>(cuda::FeaturesTarget<float>(device(), cuda::DeviceData<float>(view)), y, steps(5)));
  const auto b =
      cuda::on_host<float>(device(), cuda::align<float>(cuda::FeaturesTarget<float>(device(), z), y, steps(5)));
  EXPECT_TRUE(was_fused(a.trace) && was_fused(b.trace));
  EXPECT_EQ(a.factor, b.factor);
}

// What the launch does not take or cannot certify is the general solver's: the same answers, with its words.
TEST_F(CudaFusedFeatures, HandsOverWhatItCannotCertify) {
  const auto compare = [&](const char* what, const Block<float>& z, const Block<float>& y,
                           const AlignOptions& options) {
    SCOPED_TRACE(what);
    const auto there = cuda::align<float>(cuda::FeaturesTarget<float>(device(), z), y, options);
    const auto here = align<float>(FeaturesTarget<float>(z), y, options);
    EXPECT_FALSE(was_fused(there.trace));
    EXPECT_EQ(there.status(), here.status()) << name(there.status()) << ", " << name(here.status());
  };
  const Case c{200, 64, 8}, odd{200, 61, 8}, wide{200, 64, 20}, few{5, 64, 8};
  compare("fewer samples than columns of Y", features(few), start(few), steps(3));
  compare("zeros", features(c), Block<float>::Zero(64, 8), steps(3));
  compare("rows that begin anywhere", features(odd), start(odd), steps(3));
  compare("more than 16 columns", features(wide), start(wide), steps(3));
  auto by_qr = steps(3);
  by_qr.route = Route::qr;
  compare("route qr", features(c), start(c), by_qr);
  Block<float> broken = features(c);
  broken(3, 5) = std::numeric_limits<float>::quiet_NaN();
  const cuda::FeaturesTarget<float> not_finite(device(), broken);
  EXPECT_TRUE(failed(cuda::align<float>(not_finite, start(c), steps(3)).status()));
}

}  // namespace
}  // namespace itspace::test
