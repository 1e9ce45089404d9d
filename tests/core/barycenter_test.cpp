// SPDX-License-Identifier: Apache-2.0
//
// Barycenters of rank r: closed forms, the full-rank fixed point from its definition, the promise of every step against
// the definition, and the single target, where it is align().
#include "expect_throw.hpp"
#include "runs.hpp"

#include <itspace/barycenter.hpp>
#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include <Eigen/LU>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace itspace::test {
namespace {

// Targets of every kind with their oracles.
template <Storage Scalar>
struct Family {
  std::vector<std::shared_ptr<const void>> keepers;
  std::vector<TargetRef<Scalar>> targets;
  std::vector<Oracle> oracles;

  template <class T>
  void add(T target, Oracle oracle) {
    auto kept = std::make_shared<const T>(std::move(target));
    targets.push_back(*kept);
    oracles.push_back(std::move(oracle));
    keepers.push_back(std::move(kept));
  }
  void add_dense(const Matrix& sigma) {
    const Block<Scalar> rounded = block<Scalar>(sigma);
    add(DenseTarget<Scalar>(rounded), Oracle::of_covariance(wide(rounded)));
  }

  Real objective(const Vector& shares, const Matrix& y) const {
    Real sum = 0;
    for (std::size_t i = 0; i < oracles.size(); ++i) sum += Real(shares(Index(i))) * oracles[i].objective(y);
    return sum;
  }
  Real trace(const Vector& shares) const {
    Real sum = 0;
    for (std::size_t i = 0; i < oracles.size(); ++i) sum += Real(shares(Index(i))) * oracles[i].trace();
    return sum;
  }
};

// Kinds and ranks in turn: dense, features (fewer samples than dimensions, too), factor, low rank + diagonal.
template <Storage Scalar>
Family<Scalar> mixed_family(Index dim, Index count, Draw& draw) {
  Family<Scalar> family;
  for (Index i = 0; i < count; ++i) {
    const Vector lambda = eigenvalues_of(i % 2 == 0 ? Spectrum::power_law : Spectrum::graded, dim);
    const Matrix t = factor_with_spectrum(lambda, draw);
    if (i % 4 == 0) {
      family.add_dense(covariance_from(t));
    } else if (i % 4 == 1) {
      const Index samples = 2 + dim / 2 + (i % 8 == 1 ? dim : 0);
      const Block<Scalar> rows = block<Scalar>(features_with(samples, lambda, 1, draw));
      family.add(FeaturesTarget<Scalar>(rows), Oracle::of_factor(centred_factor_of(wide(rows))));
    } else if (i % 4 == 2) {
      const Block<Scalar> factor = block<Scalar>(draw.gaussian(dim, std::max<Index>(1, dim / 2)));
      family.add(FactorTarget<Scalar>(factor), Oracle::of_factor(wide(factor)));
    } else {
      const Block<Scalar> u = block<Scalar>(draw.gaussian(dim, std::max<Index>(1, dim / 3)));
      const itspace::Vector weights = itspace::Vector::Constant(u.cols(), 0.5);
      RealMatrix sigma = 0.5L * real(u) * real(u).transpose();
      sigma.diagonal().array() += 0.25L;
      family.add(LowRankDiagonalTarget<Scalar>(u, weights, 0.25), Oracle::of_factor(principal_root(sigma)));
    }
  }
  return family;
}

Vector drawn_weights(Index count, Draw& draw) {
  Vector weights(count);
  for (double& w : weights) w = 0.05 + draw.uniform();
  return weights / weights.sum();
}

// Sigma_i = U diag(lambda_i) U' with one U: the barycenter is U diag((sum_i w_i sqrt(lambda_i))^2) U', and where all
// spectra have one order its rank-r truncation is the best of rank r.
TEST(BarycenterClosedForm, CommutingTargets) {
  for (const bool diagonal : {true, false}) {
    for (const Index dim : {1, 2, 3, 17}) {
      for (Index rank = 1; rank <= dim; rank += std::max<Index>(1, dim / 4)) {
        Draw draw(std::uint64_t(100 * dim + rank));
        const Matrix u = diagonal ? Matrix(Matrix::Identity(dim, dim)) : draw.orthonormal(dim, dim);
        const Vector w = drawn_weights(4, draw);
        Family<double> family;
        Vector roots = Vector::Zero(dim);
        for (Index i = 0; i < 4; ++i) {
          Vector lambda(dim);  // falls at least by half from one to the next
          double at = 1 + draw.uniform();
          for (double& value : lambda) value = at *= 0.25 + 0.25 * draw.uniform();
          roots += w(i) * lambda.cwiseSqrt();
          family.add_dense(covariance_from(u * lambda.cwiseSqrt().asDiagonal()));
        }
        const Block<double> y0 = draw.gaussian(dim, rank);
        BarycenterOptions options;
        options.steps = 400;
        options.tolerance = 0;
        options.step_size = StepSize::alpha(1);
        const auto result = barycenter_here<double>(family.targets, w, y0, options);
        EXPECT_TRUE(result.trace.certified());
        const Matrix expected =
            u.leftCols(rank) * roots.head(rank).cwiseAbs2().asDiagonal() * u.leftCols(rank).transpose();
        const Matrix found = wide(result.factor) * wide(result.factor).transpose();
        EXPECT_LT((found - expected).norm(), 1e-7 * expected.norm()) << "dim " << dim << " rank " << rank;
        // F is flat there: known to rounding.
        const double least = double(family.trace(w)) - roots.head(rank).squaredNorm();
        const double f = result.trace.steps[std::size_t(result.trace.best)].objective;
        EXPECT_LT(std::abs(f - least), 1e-12 * double(family.trace(w)));
      }
    }
  }
}

// S <- S^(-1/2) (sum_i w_i (S^(1/2) Sigma_i S^(1/2))^(1/2))^2 S^(-1/2) until it stands still (Alvarez-Esteban et al.).
RealMatrix full_rank_barycenter(const std::vector<Matrix>& sigmas, const Vector& w) {
  const Index d = sigmas.front().rows();
  RealMatrix s = RealMatrix::Identity(d, d);
  for (int k = 0; k < 500; ++k) {
    const RealMatrix root = principal_root(s), inverse = root.inverse();
    RealMatrix sum = RealMatrix::Zero(d, d);
    for (std::size_t i = 0; i < sigmas.size(); ++i)
      sum += Real(w(Index(i))) * principal_root(root * real(sigmas[i]) * root);
    RealMatrix next = inverse * sum * sum * inverse;
    next = (0.5L * (next + next.transpose())).eval();
    const Real moved = (next - s).norm();
    s = next;
    if (moved <= 1e-16L * s.norm()) break;
  }
  return s;
}

TEST(BarycenterFullRank, IsTheFixedPointOfItsDefinition) {
  for (const Index dim : {1, 2, 3, 17}) {
    Draw draw(std::uint64_t(40 + dim));
    std::vector<Matrix> sigmas;
    Family<double> family;
    for (Index i = 0; i < 5; ++i) {
      sigmas.push_back(covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::graded, dim), draw)));
      family.add_dense(sigmas.back());
    }
    const Vector w = drawn_weights(5, draw);
    const RealMatrix expected = full_rank_barycenter(sigmas, w);
    for (const double alpha : {1.0, 1.3}) {
      BarycenterOptions options;
      options.steps = 500;
      options.tolerance = 0;
      options.step_size = StepSize::alpha(alpha);
      options.keep_iterates = true;
      const auto result = barycenter_here<double>(family.targets, w, block<double>(draw.gaussian(dim, dim)), options);
      EXPECT_TRUE(result.trace.certified());
      // F is flat at its minimum and says nothing of the last digits: the last iterate is nearest.
      const RealMatrix y = real(result.iterates.back());
      EXPECT_LT((y * y.transpose() - expected).norm(), 1e-10L * expected.norm()) << "dim " << dim << " alpha " << alpha;
    }
  }
}

// F(Y+) <= F(Y) + 2 sum w_i eps_i - alpha (2 - alpha) ||Bbar - Y||^2, and no rise, by the definition.
template <Storage Scalar>
void check_descent(Index dim, Index rank, Index count, std::uint64_t seed, double alpha) {
  Draw draw(seed);
  const auto family = mixed_family<Scalar>(dim, count, draw);
  const Vector w = drawn_weights(count, draw);
  BarycenterOptions options;
  options.steps = 6;
  options.tolerance = 0;
  options.step_size = StepSize::alpha(alpha);
  options.keep_iterates = true;
  const auto result = barycenter_here<Scalar>(family.targets, w, block<Scalar>(draw.gaussian(dim, rank)), options);
  REQUIRE_TRUE(!failed(result.status()));
  REQUIRE_TRUE(result.trace.certified());
  std::vector<Real> f;
  for (const auto& y : result.iterates) f.push_back(family.objective(w, wide(y)));
  for (std::size_t k = 0; k < f.size(); ++k) {
    const Step& row = result.trace.steps[k];
    REQUIRE_LE(std::abs(Real(row.objective) - f[k]), Real(row.resolution));
    if (k == 0) continue;
    const Real moved = (real(result.iterates[k]) - real(result.iterates[k - 1])).squaredNorm();
    const Real gap = result.trace.steps[k - 1].certificate_gap;
    REQUIRE_LE(f[k], f[k - 1] + 2 * gap - (2 - Real(row.alpha)) / Real(row.alpha) * moved + Real(row.allowance));
    REQUIRE_LE(f[k], f[k - 1] + Real(row.allowance));
    REQUIRE_LE(f[k], Real(row.objective_bound) + Real(row.allowance));
  }
  // The allowance is rounding, and no excuse.
  const Real unit = eps<Scalar> * (family.trace(w) + real(result.iterates.front()).squaredNorm());
  REQUIRE_LE(Real(result.trace.steps.back().resolution), 1000 * unit);
  for (Index i = 0; i < count; ++i)
    REQUIRE_LE(std::abs(Real(result.objectives(i)) - family.oracles[std::size_t(i)].objective(wide(result.factor))),
               1000 * eps<Scalar> * (family.oracles[std::size_t(i)].trace() + real(result.factor).squaredNorm()));
}

template <Storage Scalar>
void check_drawn_descent() {
  const Index dim = *rc::gen::inRange(1, 13).as("dim");
  check_descent<Scalar>(dim, *rc::gen::inRange<Index>(1, dim + 1).as("rank"), *rc::gen::inRange(1, 7).as("targets"),
                        *rc::gen::inRange(0, 1000).as("seed"), draw_alpha());
}

RC_GTEST_PROP(BarycenterDescent, SufficientDouble, ()) {
  check_drawn_descent<double>();
}

RC_GTEST_PROP(BarycenterDescent, SufficientFloat, ()) {
  check_drawn_descent<float>();
}

TEST(BarycenterOfOne, IsAlign) {
  for (const auto [dim, rank] : small_sizes()) {
    const auto p = make_problem<double>({.dim = dim, .rank = rank, .seed = 5});
    const DenseTarget<double> target(p.sigma);
    AlignOptions align_options;
    align_options.route = Route::qr;
    BarycenterOptions options;
    options.steps = 8;
    options.tolerance = 0;
    options.step_size = StepSize::alpha(1.2);
    options.keep_iterates = true;
    const auto alone = run<double>(target, p.start, 8, StepSize::alpha(1.2), align_options);
    const auto found = barycenter_here<double>({target}, {}, p.start, options);
    ASSERT_EQ(found.iterates.size(), alone.iterates.size());
    for (std::size_t k = 0; k < alone.iterates.size(); ++k)
      EXPECT_EQ(found.iterates[k], alone.iterates[k]) << "dim " << dim << " rank " << rank << " step " << k;
    EXPECT_EQ(found.trace.passes_total, alone.trace.passes_total);
  }
}

// The fixed point of rank r is that of align: the leading part of Sigma.
TEST(BarycenterOfOne, EndsAtTheFloor) {
  const auto p = make_problem<double>({.dim = 17, .rank = 3, .seed = 6});
  const DenseTarget<double> target(p.sigma);
  BarycenterOptions options;
  options.steps = 400;
  options.tolerance = 0;
  const auto result = barycenter<double>(std::vector<TargetRef<double>>{target}, {}, 3, options);
  EXPECT_LE(std::abs(result.objectives(0) - double(p.oracle.floor(3))),
            double(100 * eps_units<double>(p.oracle, wide(result.factor))));
  // The random start is align's own.
  AlignOptions zero;
  zero.steps = 0;
  options.steps = 0;
  EXPECT_EQ(barycenter<double>(std::vector<TargetRef<double>>{target}, {}, 3, options).factor,
            align<double>(target, 3, zero).factor);
}

TEST(BarycenterSubsets, NeverRiseAndEndWherePlainStepsEnd) {
  for (const Index subset : {1, 3, 10, 100}) {
    Draw draw(11);
    const auto family = mixed_family<double>(12, 24, draw);
    const Vector w = drawn_weights(24, draw);
    // Of full rank: one minimum.
    const Block<double> start = block<double>(draw.gaussian(12, 12));
    BarycenterOptions options;
    options.steps = 300;
    options.tolerance = 0;
    options.keep_iterates = true;
    const auto plain = barycenter_here<double>(family.targets, w, start, options);
    options.subset = subset;
    const auto result = barycenter_here<double>(family.targets, w, start, options);
    EXPECT_TRUE(result.trace.certified());
    Real last = std::numeric_limits<Real>::infinity();
    for (std::size_t k = 0; k < result.iterates.size(); ++k) {
      const Real f = family.objective(w, wide(result.iterates[k]));
      EXPECT_LE(f, last + 2 * Real(result.trace.steps[k].resolution));
      last = f;
    }
    // One subset of all targets is the plain step.
    if (subset >= 24) {
      EXPECT_EQ(result.factor, plain.factor);
    }
    const Real f = family.objective(w, wide(result.factor)), least = family.objective(w, wide(plain.factor));
    EXPECT_LE(f - least, 1e-4L * (family.objective(w, wide(start)) - least)) << subset;
    // What was by subsets promises nothing; what replaced such a step does.
    for (std::size_t k = 1; k < result.trace.steps.size(); ++k)
      EXPECT_EQ(std::isnan(result.trace.steps[k].alpha), std::isnan(result.trace.steps[k].promised_descent));
  }
}

// The first pass by subsets is worth more than a plain step where targets are many and alike.
TEST(BarycenterSubsets, GainFirst) {
  Draw draw(12);
  Family<double> family;
  for (Index i = 0; i < 60; ++i)
    family.add_dense(covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, 10), draw)) * 0.05 +
                     Matrix(eigenvalues_of(Spectrum::power_law, 10).asDiagonal()));
  BarycenterOptions options;
  options.steps = 1;
  options.step_size = StepSize::alpha(1);
  const Block<double> start = block<double>(draw.gaussian(10, 3));
  const auto plain = barycenter_here<double>(family.targets, {}, start, options);
  options.subset = 5;
  const auto subsets = barycenter_here<double>(family.targets, {}, start, options);
  EXPECT_LT(subsets.trace.steps[1].objective, plain.trace.steps[1].objective);
  EXPECT_EQ(plain.trace.passes_total, 2 * 60);
  EXPECT_EQ(subsets.trace.passes_total, 3 * 60);
}

TEST(BarycenterStarts, TheLowestEndCounts) {
  Draw draw(13);
  const auto family = mixed_family<double>(9, 5, draw);
  BarycenterOptions options;
  options.steps = 10;
  const auto one = barycenter<double>(family.targets, {}, 2, options);
  options.starts = 6;
  const auto best = barycenter<double>(family.targets, {}, 2, options);
  ASSERT_EQ(best.start_objectives.size(), 6u);
  EXPECT_EQ(best.start_objectives.front(), one.start_objectives.front());
  const auto least = std::min_element(best.start_objectives.begin(), best.start_objectives.end());
  EXPECT_EQ(best.best_start, least - best.start_objectives.begin());
  EXPECT_EQ(best.trace.steps[std::size_t(best.trace.best)].objective, *least);
  EXPECT_NE(best.start_objectives[1], best.start_objectives[2]);
  EXPECT_EQ(barycenter<double>(family.targets, {}, 2, options).factor, best.factor);
}

// One that must not be touched.
struct Untouchable {
  Index dim() const { return 4; }
  double trace() const { throw std::logic_error("a target of weight 0 was asked for its trace"); }
  void apply(const ConstBlockView<double>&, BlockView<double>) const {
    throw std::logic_error("a target of weight 0 was multiplied");
  }
};

TEST(BarycenterWeights, ZeroCostsNothingAndScaleMeansNothing) {
  Draw draw(14);
  const auto family = mixed_family<double>(4, 2, draw);
  const Untouchable untouchable;
  BarycenterOptions options;
  options.steps = 4;
  const std::vector<TargetRef<double>> three = {family.targets[0], untouchable, family.targets[1]};
  const auto found = barycenter<double>(three, Vector{{3.0, 0.0, 1.0}}, 2, options);
  const auto two = barycenter<double>(family.targets, Vector{{0.75, 0.25}}, 2, options);
  EXPECT_EQ(found.factor, two.factor);
  EXPECT_TRUE(found.weights_normalised);
  EXPECT_FALSE(two.weights_normalised);
  EXPECT_EQ(found.weights, (Vector{{0.75, 0.0, 0.25}}));
  EXPECT_TRUE(std::isnan(found.objectives(1)));
  const auto huge = barycenter<double>(family.targets, Vector{{1.5e308, 0.5e308}}, 2, options);
  EXPECT_LT((huge.factor - two.factor).norm(), 1e-13 * two.factor.norm());
}

TEST(BarycenterScale, FollowsTheTargets) {
  for (const double scale : {1e-140, 1e140}) {
    Draw draw(15);
    const Block<double> start = block<double>(draw.gaussian(6, 2));
    Family<double> plain, scaled;
    for (int i = 0; i < 3; ++i) {
      const Matrix sigma = covariance_from(factor_with_spectrum(eigenvalues_of(Spectrum::power_law, 6), draw));
      plain.add_dense(sigma);
      scaled.add(DenseTarget<double>(block<double>(sigma * scale)), Oracle());
    }
    BarycenterOptions options;
    options.steps = 5;
    const auto one = barycenter_here<double>(plain.targets, {}, start, options);
    const auto other = barycenter_here<double>(scaled.targets, {}, start * std::sqrt(scale), options);
    EXPECT_TRUE(other.trace.certified());
    EXPECT_LT((other.factor / std::sqrt(scale) - one.factor).norm(), 1e-12 * one.factor.norm());
  }
}

TEST(BarycenterOutcome, ABadTargetIsNamed) {
  Block<double> good = Block<double>::Identity(3, 3), negative = good, broken = good;
  negative(1, 1) = -2;
  broken(0, 0) = std::numeric_limits<double>::quiet_NaN();
  const DenseTarget<double> fine(good), indefinite(negative), nan(broken);
  const Block<double> start = Block<double>::Identity(3, 2);
  const auto refused = barycenter_here<double>({fine, indefinite}, {}, start);
  EXPECT_EQ(refused.status(), Status::not_a_covariance);
  EXPECT_NE(refused.trace.reason.find("target 1"), std::string::npos) << refused.trace.reason;
  EXPECT_EQ(refused.factor, start);
  EXPECT_TRUE(failed(barycenter_here<double>({fine, fine, nan}, {}, start).status()));
}

TEST(BarycenterOutcome, ZeroTargetsAndZeroStarts) {
  const DenseTarget<double> zero(Block<double>(Block<double>::Zero(3, 3))),
      one(Block<double>(Block<double>::Identity(3, 3)));
  BarycenterOptions options;
  options.step_size = StepSize::alpha(1);
  const auto nothing = barycenter_here<double>({zero, zero}, {}, Block<double>::Identity(3, 2), options);
  EXPECT_TRUE(nothing.trace.certified());
  EXPECT_EQ(nothing.factor.norm(), 0);
  const auto stays = barycenter_here<double>({zero, one}, {}, Block<double>::Zero(3, 2));
  EXPECT_EQ(stays.status(), Status::converged);
  EXPECT_EQ(stays.objectives, (Vector{{0.0, 3.0}}));
}

template <class Call>
void expect_invalid(Call&& call, const std::string& part) {
  expect_throws_naming<std::invalid_argument>({part}, std::forward<Call>(call));
}

TEST(BarycenterMisuse, IsRefusedByName) {
  const DenseTarget<double> three(Block<double>(Block<double>::Identity(3, 3))),
      two(Block<double>(Block<double>::Identity(2, 2)));
  const std::vector<TargetRef<double>> none, both = {three, three}, unequal = {three, two};
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto call = [](const std::vector<TargetRef<double>>& targets, const Vector& w, Index rank,
                       const BarycenterOptions& options = {}) { barycenter<double>(targets, w, rank, options); };
  expect_invalid([&] { call(none, {}, 1); }, "no target");
  expect_invalid([&] { call(unequal, {}, 1); }, "dimension 2");
  expect_invalid([&] { call(both, Vector{{1.0}}, 1); }, "1 weights and 2 targets");
  expect_invalid([&] { call(both, Vector{{1.0, -0.5}}, 1); }, "-0.5");
  expect_invalid([&] { call(both, Vector{{nan, 1.0}}, 1); }, "nan");
  expect_invalid([&] { call(both, Vector{{1.0, inf}}, 1); }, "inf");
  expect_invalid([&] { call(both, Vector{{0.0, 0.0}}, 1); }, "all 2 weights are 0");
  expect_invalid([&] { call(both, {}, 4); }, "4");
  expect_invalid([&] { call(both, {}, 0); }, "0");
  expect_invalid([&] { call(both, {}, 1, {.steps = -1}); }, "steps is -1");
  expect_invalid([&] { call(both, {}, 1, {.tolerance = -1}); }, "tolerance is -1");
  expect_invalid([&] { call(both, {}, 1, {.subset = -2}); }, "subset is -2");
  expect_invalid([&] { call(both, {}, 1, {.starts = 0}); }, "starts is 0");
  expect_invalid([&] { call(both, {}, 1, {.step_size = StepSize::line_search()}); }, "line search");
  expect_invalid([&] { barycenter<double>(both, {}, Block<double>(Block<double>::Zero(2, 1))); }, "2 rows");
  expect_invalid([&] { barycenter<double>(both, {}, Block<double>(Block<double>::Zero(3, 4))); }, "4 columns");
}

}  // namespace
}  // namespace itspace::test
