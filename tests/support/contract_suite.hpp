// SPDX-License-Identifier: Apache-2.0
//
// One contract for every target (Promise 5): linear, symmetric, positive semidefinite, the trace that belongs to it,
// any number of columns, any stride, and products with its factor that agree with the products with Sigma. A maker has
// a Scalar and makes a target of any dimension; the suite is instantiated for lists of them, in each place.
#pragma once

#include "runs.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>

namespace itspace::test {
namespace {

// What a maker hands out: a target, whatever it stands on, and its covariance from the definition.
template <Storage Scalar>
struct Made {
  std::shared_ptr<const void> keep_alive;
  TargetRef<Scalar> ref;
  RealMatrix sigma;
  // Rounding in units of eps ||Sigma||: features cannot be centred better than eps times their mean allows.
  Real rounding = 1;
};

template <Storage Scalar, class TargetType>
Made<Scalar> made(TargetType target, RealMatrix sigma, Real rounding = 1) {
  const auto held = std::make_shared<const TargetType>(std::move(target));
  return {held, TargetRef<Scalar>(*held), std::move(sigma), rounding};
}

RealMatrix square(const RealMatrix& factor) {
  return factor * factor.transpose();
}

template <class Maker>
class Contract : public ::testing::Test {
 protected:
  using Scalar = typename Maker::Scalar;

  static constexpr Index dims[] = {1, 2, 3, 17, 61};

  // A maker of targets in a place that is not here says why.
  void SetUp() override {
    if constexpr (requires { Maker::why_not_here(); })
      if (const std::string why = Maker::why_not_here(); !why.empty()) GTEST_SKIP() << why;
  }

  Block<Scalar> apply(const Made<Scalar>& m, const Block<Scalar>& y) const {
    Block<Scalar> out = Block<Scalar>::Constant(m.ref.dim(), y.cols(), Scalar(-7));
    m.ref.apply(y, out);
    return out;
  }
  // 30 d eps ||Sigma|| ||Y||, the unit of every comparison here.
  static Real limit(const Made<Scalar>& m, Real y_norm) {
    return ratio_limit * Real(m.ref.dim()) * eps<Scalar> * m.rounding * m.sigma.norm() * y_norm;
  }
};

TYPED_TEST_SUITE_P(Contract);

TYPED_TEST_P(Contract, AppliesItsCovariance) {
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    ASSERT_EQ(m.ref.dim(), dim);
    Draw draw(10);
    for (const Index cols : {1, 2, 5, 40}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(cols));
      using S = typename TypeParam::Scalar;
      const Block<S> y = block<S>(draw.gaussian(dim, cols));
      EXPECT_LE((real(this->apply(m, y)) - m.sigma * real(y)).norm(), this->limit(m, real(y).norm()));
    }
  }
}

TYPED_TEST_P(Contract, IsSymmetric) {
  using S = typename TypeParam::Scalar;
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    Draw draw(11);
    const Block<S> x = block<S>(draw.gaussian(dim, 3)), y = block<S>(draw.gaussian(dim, 4));
    const RealMatrix there = real(x).transpose() * real(this->apply(m, y));
    const RealMatrix back = real(this->apply(m, x)).transpose() * real(y);
    EXPECT_LE((there - back).norm(), this->limit(m, real(x).norm() * real(y).norm())) << dim;
  }
}

TYPED_TEST_P(Contract, IsLinear) {
  using S = typename TypeParam::Scalar;
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    Draw draw(12);
    const Block<S> x = block<S>(draw.gaussian(dim, 3)), y = block<S>(draw.gaussian(dim, 3));
    const Block<S> sum = x + S(2) * y;
    const RealMatrix expected = real(this->apply(m, x)) + 2 * real(this->apply(m, y));
    EXPECT_LE((real(this->apply(m, sum)) - expected).norm(), this->limit(m, real(x).norm() + 2 * real(y).norm()))
        << dim;
    EXPECT_EQ(this->apply(m, Block<S>::Zero(dim, 2)).norm(), 0) << dim;
  }
}

TYPED_TEST_P(Contract, IsPositiveSemidefinite) {
  using S = typename TypeParam::Scalar;
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    Draw draw(13);
    const Block<S> y = block<S>(draw.gaussian(dim, 4));
    const RealMatrix gram = real(y).transpose() * real(this->apply(m, y));
    EXPECT_GE(eigenvalues((gram + gram.transpose()) / 2)(3), -this->limit(m, real(y).squaredNorm())) << dim;
  }
}

// trace = sum_i e_i' Sigma e_i, by the operator itself and by the definition.
TYPED_TEST_P(Contract, TraceBelongsToIt) {
  using S = typename TypeParam::Scalar;
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    const Real by_columns = real(this->apply(m, Block<S>::Identity(dim, dim))).trace();
    EXPECT_LE(std::abs(m.ref.trace() - by_columns), this->limit(m, 1)) << dim;
    EXPECT_LE(std::abs(m.ref.trace() - m.sigma.trace()), this->limit(m, 1)) << dim;
  }
}

// A column is computed alike whatever stands beside it, up to rounding; nothing but `out` is written, all of it is.
TYPED_TEST_P(Contract, StridedViewsAndCanaries) {
  using S = typename TypeParam::Scalar;
  const S canary(-12345);
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    Draw draw(14);
    Block<S> in = Block<S>::Constant(dim, 11, std::numeric_limits<S>::quiet_NaN());
    in.middleCols(2, 5) = block<S>(draw.gaussian(dim, 5));
    Block<S> out = Block<S>::Constant(dim, 9, canary);
    out.middleCols(3, 5).setConstant(std::numeric_limits<S>::quiet_NaN());  // overwritten, not added to
    m.ref.apply(in.middleCols(2, 5), out.middleCols(3, 5));
    const RealMatrix expected = m.sigma * real(in.middleCols(2, 5));
    EXPECT_LE((real(out.middleCols(3, 5)) - expected).norm(), this->limit(m, real(in.middleCols(2, 5)).norm())) << dim;
    EXPECT_TRUE((out.leftCols(3).array() == canary).all()) << dim;
    EXPECT_TRUE((out.rightCols(1).array() == canary).all()) << dim;
  }
}

TYPED_TEST_P(Contract, NoColumns) {
  using S = typename TypeParam::Scalar;
  const auto m = TypeParam::make(3);
  Block<S> none(3, 0), out(3, 0);
  m.ref.apply(none, out);
  EXPECT_EQ(out.cols(), 0);
}

TYPED_TEST_P(Contract, SameBitsEveryTime) {
  using S = typename TypeParam::Scalar;
  const auto m = TypeParam::make(61);
  Draw draw(15);
  const Block<S> y = block<S>(draw.gaussian(61, 5));
  EXPECT_EQ(this->apply(m, y), this->apply(m, y));
  EXPECT_EQ(m.ref.trace(), TypeParam::make(61).ref.trace());
}

// T (T'Y) = Sigma Y, and T, T' are each other's transposes.
TYPED_TEST_P(Contract, FactorProducts) {
  using S = typename TypeParam::Scalar;
  for (const Index dim : this->dims) {
    const auto m = TypeParam::make(dim);
    if (!m.ref.has_factor()) {
      EXPECT_EQ(m.ref.factor_cols(), 0);
      continue;
    }
    SCOPED_TRACE(dim);
    const Index n = m.ref.factor_cols();
    ASSERT_GT(n, 0);
    Draw draw(16);
    const Block<S> y = block<S>(draw.gaussian(dim, 4)), p = block<S>(draw.gaussian(n, 3));
    Block<S> wide_ty = Block<S>::Constant(n, 6, S(5)), tty(dim, 4), tp(dim, 3);
    m.ref.apply_factor_transposed(y, wide_ty.leftCols(4));
    EXPECT_TRUE((wide_ty.rightCols(2).array() == S(5)).all());
    m.ref.apply_factor(wide_ty.leftCols(4), tty);
    EXPECT_LE((real(tty) - m.sigma * real(y)).norm(), this->limit(m, real(y).norm()));
    EXPECT_LE((real(tty) - real(this->apply(m, y))).norm(), this->limit(m, real(y).norm()));

    m.ref.apply_factor(p, tp);
    const RealMatrix there = real(y).transpose() * real(tp);
    const RealMatrix back = real(wide_ty.leftCols(4)).transpose() * real(p);
    const Real t_norm = std::sqrt(m.sigma.trace());
    EXPECT_LE((there - back).norm(),
              ratio_limit * Real(std::max(dim, n)) * eps<S> * t_norm * real(y).norm() * real(p).norm());
  }
}

REGISTER_TYPED_TEST_SUITE_P(Contract, AppliesItsCovariance, IsSymmetric, IsLinear, IsPositiveSemidefinite,
                            TraceBelongsToIt, StridedViewsAndCanaries, NoColumns, SameBitsEveryTime, FactorProducts);

}  // namespace
}  // namespace itspace::test
