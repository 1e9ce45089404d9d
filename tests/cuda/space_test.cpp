// SPDX-License-Identifier: Apache-2.0
//
// The operations of cuda::Space against their definitions in long double, on strided views, at sizes that fill tiles
// and parts of the kernels and at sizes that do not.
#include "on_device.hpp"

#include <itspace/random.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace itspace::test {
namespace {

template <class Scalar>
class CudaSpace : public ::testing::Test {
 protected:
  void SetUp() override { ITSPACE_NEEDS_DEVICE(); }
  static Block<Scalar> random(Index rows, Index cols, std::uint64_t seed) {
    Draw draw(seed);
    return block<Scalar>(draw.gaussian(rows, cols));
  }
  // The largest take minutes where kernels run on the host.
  static std::vector<Index> row_counts() {
    std::vector<Index> counts{1, 2, 31, 32, 33, 63, 65, 300, 2500};
    if (!device().properties().name.starts_with("the host")) counts.insert(counts.end(), {8193, 40000});
    return counts;
  }
  static constexpr Index widths[] = {1, 2, 7, 16, 31, 33, 70};
};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(CudaSpace, Scalars);

// Sums of n products in double, whatever the storage.
Real sum_limit(Real magnitude) {
  return ratio_limit * eps<double> * magnitude;
}

TYPED_TEST(CudaSpace, Grams) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  for (const Index rows : this->row_counts())
    for (const Index p : this->widths) {
      const Index q = p == 16 ? 16 : 71 - p;
      SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(p));
      const Block<S> x = this->random(rows, p, 1), y = this->random(rows, q, 2);
      Strided<S> a(x), b(y);
      Small ab, aa, ba;
      using Request = GramRequest<cuda::ConstView<S>>;
      const Request requests[] = {Request(a.view(), b.view(), ab), Request(a.view(), aa),
                                  Request(b.view(), a.view(), ba)};
      space.grams(requests);
      const Real size = std::sqrt(Real(rows)) * Real(p + q) + real(x).norm() * real(y).norm();
      EXPECT_LE((real(ab) - real(x).transpose() * real(y)).norm(), sum_limit(size));
      EXPECT_LE((real(aa) - real(x).transpose() * real(x)).norm(), sum_limit(real(x).squaredNorm()));
      EXPECT_EQ(aa, aa.transpose().eval());
      EXPECT_EQ(ba, ab.transpose().eval());
      Small again;
      const Request once(a.view(), b.view(), again);
      space.grams({&once, 1});
      EXPECT_EQ(again, ab) << "the same bits every time, alone or together";
    }
}

TYPED_TEST(CudaSpace, EmptyGrams) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  auto none = space.make_block(0, 3), narrow = space.make_block(5, 0);
  EXPECT_EQ(gram(space, none, none), Small::Zero(3, 3));
  EXPECT_EQ(gram(space, narrow, narrow).size(), 0);
  EXPECT_EQ(space.column_norms(narrow).size(), 0);
  multiply<cuda::Space<S>>(space, narrow, Small(0, 2), Strided<S>(Block<S>::Ones(5, 2)).view());
}

TYPED_TEST(CudaSpace, MultiplyAlsoInPlace) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  Draw draw(3);
  for (const Index rows : {Index(1), Index(33), Index(300), Index(8193)})
    for (const Index p : {1, 3, 16, 40, 150}) {
      const Block<S> x = this->random(rows, p, 4);
      const auto limit = [&](const RealMatrix& m) {
        return ratio_limit * eps<S> * real(x).norm() * m.norm() + ratio_limit * eps<double> * Real(p);
      };
      for (const Index q : {Index(1), Index(5), p}) {
        SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(p) + " " + std::to_string(q));
        const Small m = draw.gaussian(p, q);
        const RealMatrix product = real(x) * real(m);
        Strided<S> a(x), out(Block<S>::Constant(rows, q, std::numeric_limits<S>::quiet_NaN()));
        space.multiply(a.view(), m, out.view(), Write::assign);
        EXPECT_LE((real(out.values()) - product).norm(), limit(real(m)));
        space.multiply(a.view(), m, out.view(), Write::add);
        EXPECT_LE((real(out.values()) - 2 * product).norm(), 3 * limit(real(m)));
        EXPECT_TRUE(out.is_clean());
        if (q <= p) {  // over its own leading columns
          space.multiply(a.view(), m, space.columns(a.view(), 0, q), Write::assign);
          EXPECT_LE((real(a.values()).leftCols(q) - product).norm(), limit(real(m)));
          EXPECT_EQ(a.values().rightCols(p - q), x.rightCols(p - q));
        }
        // From leading columns over the whole block.
        const Small wider = m.topRows(std::max<Index>(1, p / 2)) * Small::Ones(q, 1) * Small::Ones(1, p);
        Strided<S> whole(x);
        space.multiply(space.columns(whole.view(), 0, wider.rows()), wider, whole.view(), Write::assign);
        EXPECT_LE((real(whole.values()) - real(x).leftCols(wider.rows()) * real(wider)).norm(), limit(real(wider)));
        EXPECT_TRUE(whole.is_clean());
      }
    }
}

// Rows that do not fit on the chip.
TYPED_TEST(CudaSpace, MultiplyOfVeryWideRows) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  const Index p = 13000;
  const Block<S> x = this->random(6, p, 5);
  Draw draw(6);
  const Small m = draw.gaussian(p, 2);
  Strided<S> a(x);
  space.multiply(a.view(), m, space.columns(a.view(), 0, 2), Write::assign);
  EXPECT_LE((real(a.values()).leftCols(2) - real(x) * real(m)).norm(),
            ratio_limit * eps<S> * real(x).norm() * real(m).norm());
}

TYPED_TEST(CudaSpace, NormsAndBlends) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  for (const Index rows : this->row_counts())
    for (const Index cols : this->widths) {
      SCOPED_TRACE(std::to_string(rows) + " " + std::to_string(cols));
      const Block<S> x = this->random(rows, cols, 7), y = this->random(rows, cols, 8);
      Strided<S> a(x), b(y), out(x);
      const BlendNorms norms = space.blend_norms(a.view(), b.view());
      EXPECT_LE(std::abs(norms.b_squared - real(y).squaredNorm()), sum_limit(real(y).squaredNorm()));
      const Real difference = (real(y) - real(x)).squaredNorm();
      EXPECT_LE(std::abs(norms.difference_squared - difference), sum_limit(difference));
      const SmallVector lengths = space.column_norms(a.view());
      for (Index j = 0; j < cols; ++j)
        EXPECT_LE(std::abs(lengths(j) - real(x).col(j).norm()), sum_limit(real(x).col(j).norm()));

      space.blend(a.view(), b.view(), 1.3, out.view());
      const RealMatrix blended = (1 - Real(1.3)) * real(x) + Real(1.3) * real(y);
      EXPECT_LE((real(out.values()) - blended).norm(), ratio_limit * eps<S> * (real(x).norm() + real(y).norm()));
      space.blend(a.view(), out.view(), 0.5, out.view());  // in place
      EXPECT_LE((real(out.values()) - (real(x) + blended) / 2).norm(),
                ratio_limit * eps<S> * (real(x).norm() + real(y).norm()));

      const SmallVector factors = SmallVector::LinSpaced(cols, -1, 2);
      space.subtract_scaled(a.view(), b.view(), factors, out.view());
      EXPECT_LE((real(out.values()) - (real(x) - real(y) * RealMatrix(real(factors).asDiagonal()))).norm(),
                ratio_limit * eps<S> * (real(x).norm() + 2 * real(y).norm()));
      space.scale_columns(b.view(), factors);
      EXPECT_LE((real(b.values()) - real(y) * RealMatrix(real(factors).asDiagonal())).norm(),
                ratio_limit * eps<S> * 2 * real(y).norm());
      space.copy(a.view(), out.view());
      EXPECT_EQ(out.values(), x);
      space.set_zero(out.view());
      EXPECT_EQ(out.values(), Block<S>::Zero(rows, cols));
      EXPECT_TRUE(a.is_clean() && b.is_clean() && out.is_clean());
    }
}

TEST(CudaSpaceRange, ColumnNormsWhereSquaresOverflowOrVanish) {
  ITSPACE_NEEDS_DEVICE();
  cuda::Space<double> space(device());
  const double largest = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const double sizes[] = {1, 1e200, 1e-200, largest / 4, least * 64, 0};
  Block<double> x(4, 6);
  for (Index j = 0; j < 6; ++j) x.col(j).setConstant(sizes[j]);
  Strided<double> a(x);
  const SmallVector norms = space.column_norms(a.view());
  for (Index j = 0; j < 6; ++j)
    EXPECT_LE(std::abs(norms(j) - 2 * sizes[j]), 4 * std::numeric_limits<double>::epsilon() * 2 * sizes[j]) << j;
  x(1, 2) = std::numeric_limits<double>::quiet_NaN();
  x(2, 3) = std::numeric_limits<double>::infinity();
  Strided<double> bad(x);
  const SmallVector others = space.column_norms(bad.view());
  EXPECT_TRUE(std::isnan(others(2)));
  EXPECT_FALSE(std::isfinite(others(3)));
  EXPECT_EQ(others(0), 2);
}

TYPED_TEST(CudaSpace, DrawsTheNumbersOfTheHost) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  for (const Random& random : {Random(0), Random(1, 1024), Random(~std::uint64_t(0), 7)}) {
    Block<S> expected(5000, 13);
    random.template fill_normal<S>(expected);
    Strided<S> drawn(Block<S>::Zero(5000, 13));
    space.fill_normal(random, drawn.view());
    EXPECT_EQ(drawn.values(), expected);
    EXPECT_TRUE(drawn.is_clean());
  }
}

TYPED_TEST(CudaSpace, Poison) {
  using S = TypeParam;
  cuda::Space<S> space(device());
  Strided<S> a(this->random(300, 5, 9));
  EXPECT_FALSE(space.is_poisoned(a.view()));
  space.poison(a.view());
  EXPECT_TRUE(space.is_poisoned(a.view()));
  EXPECT_TRUE(a.values().row(0).array().isNaN().all());
  EXPECT_TRUE(a.values().bottomRows(299).allFinite());
  EXPECT_TRUE(a.is_clean());
  Block<S> worse = a.values();
  worse(299, 4) = std::numeric_limits<S>::infinity();
  Strided<S> b(worse);
  EXPECT_FALSE(space.is_poisoned(b.view())) << "the product is not finite elsewhere either";
}

}  // namespace
}  // namespace itspace::test
