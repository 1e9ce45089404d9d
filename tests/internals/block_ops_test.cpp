// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over tall blocks, against the same in long double.
#include "kernels/step_sweeps.hpp"

#include "each_kernel.hpp"

#include <itspace/random.hpp>

#include <limits>

namespace itspace::kernels {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();
using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

template <Storage Scalar>
Block<Scalar> normal(Index rows, Index cols, std::uint64_t seed) {
  Block<Scalar> block(rows, cols);
  Random(seed).fill_normal<Scalar>(block);
  return block;
}
template <Storage Scalar>
Exact exact(const Block<Scalar>& block) {
  return block.template cast<long double>();
}

template <Storage Scalar>
void check_grams(Index rows, Index left, Index right) {
  const Block<Scalar> a = normal<Scalar>(rows, left, 1), b = normal<Scalar>(rows, right, 2);
  Small cross, own;
  using View = ConstBlockView<Scalar>;
  const GramRequest<View> requests[] = {{View(a), View(b), cross}, {View(b), own}};
  grams<Scalar>(requests);
  const double size = static_cast<double>(rows) * eps64;
  const Exact expected_cross = exact(a).transpose() * exact(b), expected_own = exact(b).transpose() * exact(b);
  EXPECT_LE(double((cross.cast<long double>() - expected_cross).norm()), size * a.norm() * b.norm());
  EXPECT_LE(double((own.cast<long double>() - expected_own).norm()), size * b.squaredNorm());
  EXPECT_EQ(own, Small(own.transpose())) << "symmetric to the last bit";
}

TEST(BlockOps, GramsAreExactToDouble) {
  with_each_kernel([] {
    for (const Index rows : {1, 13, 500})
      for (const Index cols : {1, 17, 60, 130}) {
        check_grams<float>(rows, cols, 16);
        check_grams<double>(rows, 5, cols);
      }
    for (const Index cols : {50, 64, 128}) check_grams<float>(170, cols, cols);  // shorter than the sums of all threads
    check_grams<double>(170, 64, 130);
  });
}

template <Storage Scalar>
void check_multiply(Index rows, Index inner, Index cols, Write write) {
  Block<Scalar> a = normal<Scalar>(rows, inner, 1), out = normal<Scalar>(rows, cols, 2);
  const Small m = Small::NullaryExpr(inner, cols, [](Index i, Index j) { return 1.0 / double(1 + i + 3 * j); });
  Exact expected = exact(a) * m.cast<long double>();
  if (write == Write::add) expected += exact(out);
  multiply<Scalar>(a, m, out, write);
  const double unit = std::numeric_limits<Scalar>::epsilon() * double(expected.norm()) + eps64 * a.norm() * m.norm();
  EXPECT_LE(double((exact(out) - expected).norm()), unit) << rows << ", " << inner << " x " << cols;
  if (write == Write::add || cols > inner) return;
  multiply<Scalar>(a, m, a.leftCols(cols), Write::assign);
  EXPECT_EQ(Block<Scalar>(a.leftCols(cols)), out) << "in place";
}

TEST(BlockOps, MultiplyIsExactToStorage) {
  with_each_kernel([] {
    for (const Index rows : {1, 13, 500})
      for (const Index inner : {1, 16, 70, 130})
        for (const Index cols : {1, 40, 130})
          for (const Write write : {Write::assign, Write::add}) {
            check_multiply<float>(rows, inner, cols, write);
            check_multiply<double>(rows, inner, cols, write);
          }
  });
}

template <Storage Scalar>
void check_sweeps(Index rows, Index cols) {
  const Block<Scalar> y = normal<Scalar>(rows, cols, 1), b = normal<Scalar>(rows, cols, 2);
  const double size = static_cast<double>(rows * cols) * eps64;
  SmallVector squares;
  column_squares<Scalar>(y, squares);
  for (Index j = 0; j < cols; ++j) EXPECT_NEAR(squares(j), double(exact(y).col(j).squaredNorm()), size * squares(j));
  const BlendNorms norms = blend_norms<Scalar>(y, b);
  EXPECT_NEAR(norms.b_squared, double(exact(b).squaredNorm()), size * norms.b_squared);
  EXPECT_NEAR(norms.difference_squared, double((exact(b) - exact(y)).squaredNorm()), size * norms.difference_squared);
  Block<Scalar> out(rows, cols);
  blend<Scalar>(y, b, 0.9, out);
  const double eps = std::numeric_limits<Scalar>::epsilon();
  EXPECT_LE(double((exact(out) - (0.1L * exact(y) + 0.9L * exact(b))).norm()), eps * (y.norm() + b.norm()));
  // Two sweeps in one are those two.
  Block<Scalar> at_once(rows, cols);
  Small gram_at_once, gram;
  blend_and_gram<Scalar>(y, b, 0.9, at_once, gram_at_once);
  const GramRequest<ConstBlockView<Scalar>> request(ConstBlockView<Scalar>(out), gram);
  grams<Scalar>({&request, 1});
  EXPECT_EQ(at_once, out);
  EXPECT_EQ(gram_at_once, gram);
  const Small m = Small::Random(cols, cols);
  const BlendNorms norms_at_once = multiply_and_norms<Scalar>(b, m, y, at_once);
  multiply<Scalar>(b, m, out);
  const BlendNorms norms_apart = blend_norms<Scalar>(y, out);
  EXPECT_EQ(at_once, out);
  EXPECT_NEAR(norms_at_once.b_squared, norms_apart.b_squared, size * norms_apart.b_squared);
  EXPECT_NEAR(norms_at_once.difference_squared, norms_apart.difference_squared, size * norms_apart.difference_squared);
  const SmallVector factors = SmallVector::LinSpaced(cols, 0.5, 2.0);
  Block<Scalar> scaled = y;
  scale_columns<Scalar>(factors, scaled);
  EXPECT_LE(double((exact(scaled) - exact(y) * factors.cast<long double>().asDiagonal()).norm()), 2 * eps * y.norm());
}

TEST(BlockOps, SweepsAreExact) {
  with_each_kernel([] {
    for (const Index rows : {1, 13, 6000})
      for (const Index cols : {1, 8, 17, 130}) {
        if (rows > 1000 && cols > 100) continue;
        check_sweeps<float>(rows, cols);
        check_sweeps<double>(rows, cols);
      }
  });
}

TEST(BlockOps, FindsWhatIsNotFinite) {
  with_each_kernel([] {
    for (const Index cols : {1, 15, 16, 40}) {
      Block<float> block = normal<float>(3000, cols, 1);
      EXPECT_TRUE(all_finite<float>(block));
      for (const float strange : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        block(2990, cols - 1) = strange;
        EXPECT_FALSE(all_finite<float>(block));
        block(2990, cols - 1) = std::numeric_limits<float>::max();
        EXPECT_TRUE(all_finite<float>(block)) << "large is finite";
      }
    }
  });
}

}  // namespace
}  // namespace itspace::kernels
