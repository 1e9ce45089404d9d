// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over tall blocks, against the same in long double.
#include "kernels/step_sweeps.hpp"

#include "each_kernel.hpp"

#include <itspace/random.hpp>

#include <cmath>
#include <limits>

namespace itspace::kernels {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();
using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

template <Storage Scalar>
Block<Scalar> normal_block(Index rows, Index cols, std::uint64_t seed) {
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
  const Block<Scalar> a = normal_block<Scalar>(rows, left, 1), b = normal_block<Scalar>(rows, right, 2);
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

// By half where there are many columns: what is made is exact, the rest is its mirror image, and what is beside the
// diagonal is made on both sides.
template <Storage Scalar>
void check_symmetric_grams(Index rows, Index cols) {
  const Block<Scalar> a = normal_block<Scalar>(rows, cols, 1), b = normal_block<Scalar>(rows, cols, 2);
  using View = ConstBlockView<Scalar>;
  Small sum;
  const GramRequest<View> request(View(a), View(b), sum, GramSymmetry::nearly_symmetric);
  grams<Scalar>({&request, 1});
  const Exact expected = exact(a).transpose() * exact(b);  // which is not symmetric at all
  const double unit = static_cast<double>(rows) * eps64 * a.norm() * b.norm();
  Index mirrored = 0;
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < cols; ++i) {
      const bool made = std::abs(sum(i, j) - double(expected(i, j))) <= unit;
      EXPECT_TRUE(made || (i > j && sum(i, j) == sum(j, i))) << i << ", " << j << " of " << cols;
      if (std::abs(i - j) <= 8) {
        EXPECT_TRUE(made) << i << ", " << j << " of " << cols;
      }
      mirrored += made ? 0 : 1;
    }
  if (cols >= 130) {
    EXPECT_GT(mirrored, cols * cols / 5);
  }
}

TEST(BlockOps, GramsThatShouldBeSymmetricAreMadeByHalf) {
  with_each_kernel([] {
    for (const Index rows : {13, 500})
      for (const Index cols : {5, 48, 64, 100, 130, 200, 257}) {
        check_symmetric_grams<float>(rows, cols);
        check_symmetric_grams<double>(rows, cols);
      }
  });
}

template <Storage Scalar>
void check_multiply(Index rows, Index inner, Index cols, Write write) {
  Block<Scalar> a = normal_block<Scalar>(rows, inner, 1), out = normal_block<Scalar>(rows, cols, 2);
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

// The zeros of a triangle are left out, and make no difference.
TEST(BlockOps, MultiplyByTriangles) {
  with_each_kernel([] {
    for (const Index cols : {130, 200, 257}) {
      const Block<float> a = normal_block<float>(50, cols, 1);
      Small m = Small::NullaryExpr(cols, cols, [](Index i, Index j) { return i > j ? 0.0 : 1.0 / double(1 + j - i); });
      m.col(cols - 1).setZero();
      Block<float> out(50, cols);
      multiply<float>(a, m, out);
      const Exact expected = exact(a) * m.cast<long double>();
      EXPECT_LE(double((exact(out) - expected).norm()),
                std::numeric_limits<float>::epsilon() * double(expected.norm()));
    }
  });
}

// To the rounding of the blocks, times the root of how many products there are in a sum.
TEST(BlockOps, RoughMultiplication) {
  for (const Index cols : {1, 47, 48, 130, 200}) {
    const Block<float> a = normal_block<float>(300, cols, 1);
    const Small m = Small::NullaryExpr(cols, cols, [](Index i, Index j) { return 1.0 / double(1 + i + 3 * j); });
    Block<float> out = Block<float>::Constant(300, cols, std::numeric_limits<float>::quiet_NaN());
    multiply_roughly<float>(a, m, out);
    const double unit = std::numeric_limits<float>::epsilon() * std::sqrt(double(cols)) * a.norm() * m.norm();
    EXPECT_LE(double((exact(out) - exact(a) * m.cast<long double>()).norm()), unit) << cols;
    const Block<double> wide = a.cast<double>();
    Block<double> exact_out(300, cols), same(300, cols);
    multiply<double>(wide, m, exact_out);
    multiply_roughly<double>(wide, m, same);
    EXPECT_EQ(same, exact_out) << "double is not rough";
  }
}

template <Storage Scalar>
void check_sweeps(Index rows, Index cols) {
  const Block<Scalar> y = normal_block<Scalar>(rows, cols, 1), b = normal_block<Scalar>(rows, cols, 2);
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
  subtract_scaled<Scalar>(b, y, factors, scaled);
  EXPECT_LE(double((exact(scaled) - (exact(b) - exact(y) * factors.cast<long double>().asDiagonal())).norm()),
            eps * scaled.norm() + 2 * eps64 * y.norm());
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
      Block<float> block = normal_block<float>(3000, cols, 1);
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
