// SPDX-License-Identifier: Apache-2.0
//
// Lemma "Support-Function Maximizer": ||A||_* = max tr(Q'A) over ||Q||_2 <= 1, attained by polar(A); for A = 0 every
// feasible Q is optimal. With Sigma = I the certificate factor is polar(Y) itself, so the library's B shows it bare.
#include "runs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace itspace::test {
namespace {

template <Storage Scalar>
void check_support_function(Index dim, Index rank, double kappa, std::uint64_t seed) {
  Draw draw(seed);
  const Block<Scalar> identity = Block<Scalar>::Identity(dim, dim);
  const DenseTarget<Scalar> target(identity);
  const Block<Scalar> a = block<Scalar>(factor_with_condition(dim, rank, kappa, 1, draw));
  const Matrix q = certificate_factor<Scalar>(target, a);

  const Real nuclear = nuclear_norm(real(a));
  // Feasible and attained (Promises 2, both to 30 r eps).
  REQUIRE_LT(ratio<Scalar>(std::max(Real(0), spectral_norm(real(q)) - 1), rank, 1), ratio_limit);
  const Real attained = (real(q).transpose() * real(a)).trace();
  REQUIRE_LT(ratio<Scalar>(attained - nuclear, rank, nuclear), ratio_limit);
  // No feasible Q does better: orthonormal ones, and contractions.
  for (int trial = 0; trial < 20; ++trial) {
    const Matrix other = draw.orthonormal(dim, rank) * (trial % 2 ? 1.0 : draw.uniform());
    REQUIRE_LE((real(other).transpose() * real(a)).trace(), nuclear * (1 + 10 * eps<double>));
  }
}

RC_GTEST_PROP(SupportFunction, PolarIsFeasibleAndAttainsTheMaximumFloat, ()) {
  const auto shape = draw_shape(17, {Spectrum::power_law});
  check_support_function<float>(shape.dim, shape.rank, *rc::gen::element(1.0, 10.0, 100.0), shape.seed);
}

RC_GTEST_PROP(SupportFunction, PolarIsFeasibleAndAttainsTheMaximumDouble, ()) {
  const auto shape = draw_shape(17, {Spectrum::power_law});
  check_support_function<double>(shape.dim, shape.rank, *rc::gen::element(1.0, 10.0, 1e4), shape.seed);
}

// A = 0: the nuclear norm is 0, and whatever the certificate is, it is feasible.
TEST(SupportFunction, ZeroHasEveryFeasibleCertificate) {
  for (const auto [dim, rank] : all_sizes()) {
    const Block<double> identity = Block<double>::Identity(dim, dim);
    const DenseTarget<double> target(identity);
    const Block<double> zero = Block<double>::Zero(dim, rank);
    for (const bool completion : {false, true}) {
      SCOPED_TRACE(std::to_string(dim) + " " + std::to_string(rank) + (completion ? " completed" : " compact"));
      AlignOptions options;
      options.completion = completion;
      const auto result = run<double>(target, zero, 1, StepSize::alpha(1), options);
      const Matrix q = wide(result.iterates.at(1));
      EXPECT_LE(double(spectral_norm(real(q))), 1 + 30 * static_cast<double>(rank) * double(eps<double>));
      if (!completion) {
        EXPECT_EQ(q.norm(), 0);
      }
      // F(0) = tr Sigma - 2 ||0||_* = d.
      EXPECT_EQ(result.trace.steps[0].objective, static_cast<double>(dim));
      EXPECT_EQ(result.trace.steps[0].gram_rank, 0);
    }
  }
}

}  // namespace
}  // namespace itspace::test
