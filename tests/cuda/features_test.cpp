// SPDX-License-Identifier: Apache-2.0
//
// Features in one sweep: products against the definition in double.
#include "on_device.hpp"

#include <itspace/random.hpp>

#include <cmath>

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

}  // namespace
}  // namespace itspace::test
