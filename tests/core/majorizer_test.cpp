// SPDX-License-Identifier: Apache-2.0
//
// Lemma "Global Quadratic Majorizer": F(Y) <= ||Y - B_k||^2 + tr Sigma - ||B_k||^2 for every Y, tight at Y_k.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_majorizer(const ProblemShape& shape) {
  const auto p = make_problem<Scalar>(shape);
  const DenseTarget<Scalar> target(p.sigma);
  const Matrix b = certificate_factor<Scalar>(target, p.start);
  const auto tolerance = [&](const Matrix& y) {
    return ratio_limit * Real(shape.rank) * eps<Scalar> * 2 * real(b).norm() * real(y).norm();
  };

  const Matrix y_k = wide(p.start);
  REQUIRE_LE(std::abs(p.oracle.majorizer(y_k, b) - p.oracle.objective(y_k)), tolerance(y_k));

  Draw draw(shape.seed + 77);
  for (int trial = 0; trial < 12; ++trial) {
    // Far away, near Y_k, near B, and on the line through both.
    const Matrix noise = draw.gaussian(shape.dim, shape.rank) * (b.norm() / std::sqrt(double(b.size())));
    Matrix y;
    switch (trial % 4) {
      case 0:
        y = 3 * noise;
        break;
      case 1:
        y = y_k + 0.01 * noise;
        break;
      case 2:
        y = b + 0.1 * noise;
        break;
      default:
        y = y_k + 3 * draw.normal() * (b - y_k);
    }
    REQUIRE_LE(p.oracle.objective(y), p.oracle.majorizer(y, b) + tolerance(y));
  }
}

RC_GTEST_PROP(Majorizer, GlobalAndTightFloat, ()) {
  check_majorizer<float>(draw_shape(17, any_rank()));
}

RC_GTEST_PROP(Majorizer, GlobalAndTightDouble, ()) {
  check_majorizer<double>(draw_shape(17, any_rank()));
}

TEST(Majorizer, LargeDimension) {
  check_majorizer<float>({.dim = 300, .rank = 16, .seed = 1});
  check_majorizer<double>({.dim = 300, .rank = 1, .seed = 2});
  check_majorizer<double>({.dim = 300, .rank = 16, .seed = 3});
}

}  // namespace
}  // namespace itspace::test
