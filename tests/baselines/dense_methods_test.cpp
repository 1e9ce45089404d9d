// SPDX-License-Identifier: Apache-2.0
//
// Each path where its definition can be read off: at its ends, on commuting matrices, under the maps it is invariant
// to. With rank = d the truncated iterate is the iterate, so the whole matrix is seen.
#include "baselines/dense_methods.hpp"
#include "expect_throw.hpp"
#include "problems.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace itspace::test {
namespace {

using baselines::DenseOptions;
using baselines::GradientOptions;
using baselines::SpectralTarget;
using baselines::TimedResult;
using Method = std::function<TimedResult(const SpectralTarget&, const Block<double>&, const DenseOptions&)>;

struct Named {
  std::string name;
  Method run;
  bool arrives = true;  // its last row is at the target
};

const std::vector<Named>& paths() {
  static const std::vector<Named> all{
      {"bw_geodesic", [](auto&&... p) { return baselines::bw_geodesic(p...); }},
      {"euclidean", [](auto&&... p) { return baselines::euclidean_path(p...); }},
      {"log_euclidean", [](auto&&... p) { return baselines::log_euclidean_path(p...); }},
      {"airm", [](auto&&... p) { return baselines::airm_path(p...); }},
  };
  return all;
}

Named gradient_descent(double step, bool backtracking) {
  const Method run = [=](const SpectralTarget& target, const Block<double>& start, const DenseOptions& options) {
    return baselines::bw_gradient_descent(target, start, options, {.step = step, .backtracking = backtracking});
  };
  return {"bw_gradient_descent", run, step == 1};
}

std::vector<Named> everything() {
  std::vector<Named> all = paths();
  all.push_back(gradient_descent(0.5, true));
  all.push_back(gradient_descent(1, false));
  all.push_back({"coral", [](auto&&... p) { return baselines::coral(p...); }});
  return all;
}

const Named& path(const std::string& name) {
  for (const Named& named : paths())
    if (named.name == name) return named;
  throw std::logic_error("no path " + name);
}

Matrix covariance_of(const Block<double>& factor) {
  return factor * factor.transpose();
}

// Every row of the trace as a full matrix.
std::vector<Matrix> matrices(const Named& method, const Matrix& start, const Matrix& target, Index steps) {
  const TimedResult timed =
      method.run(SpectralTarget(block<double>(target)), block<double>(start), {.rank = start.rows(), .steps = steps});
  std::vector<Matrix> out;
  for (const Block<double>& factor : timed.result.iterates) out.push_back(covariance_of(factor));
  return out;
}

Matrix random_covariance(Index dim, Spectrum spectrum, Draw& draw) {
  return covariance_from(factor_with_spectrum(eigenvalues_of(spectrum, dim), draw));
}

// Matrix functions of matrices with condition 100 carry that many eps.
constexpr double conditioned = 1e3;
double units(const Matrix& error, const Matrix& size) {
  return error.norm() / (double(eps<double>) * conditioned * double(size.rows()) * size.norm());
}
constexpr double limit = 30;

TEST(DenseMethods, PathsBeginAtTheStartAndEndAtTheTarget) {
  for (const Index d : {1, 2, 17}) {
    Draw draw(std::uint64_t(3 + d));
    const Matrix start = random_covariance(d, Spectrum::graded, draw),
                 target = random_covariance(d, Spectrum::graded, draw);
    for (const Named& method : paths()) {
      SCOPED_TRACE(method.name);
      const std::vector<Matrix> x = matrices(method, start, target, 3);
      ASSERT_EQ(x.size(), 4U);
      EXPECT_LT(units(x.front() - start, start), limit);
      EXPECT_LT(units(x.back() - target, target), limit);
    }
  }
}

TEST(DenseMethods, CommutingMatricesFollowTheClosedForms) {
  const Index d = 6, steps = 4;
  Draw draw(11);
  const Matrix q = draw.orthonormal(d, d);
  Vector a(d), b(d);
  for (Index i = 0; i < d; ++i) {
    a(i) = 0.05 + draw.uniform();
    b(i) = 0.05 + 3 * draw.uniform();
  }
  const Matrix start = q * a.asDiagonal() * q.transpose(), target = q * b.asDiagonal() * q.transpose();
  for (const Named& method : paths()) {
    const std::vector<Matrix> x =
        matrices(method, (start + start.transpose()) / 2, (target + target.transpose()) / 2, steps);
    for (Index k = 0; k <= steps; ++k) {
      SCOPED_TRACE(::testing::Message() << method.name << " at step " << k);
      const double t = double(k) / double(steps);
      Vector expected(d);
      for (Index i = 0; i < d; ++i) {
        if (method.name == "bw_geodesic")
          expected(i) = std::pow((1 - t) * std::sqrt(a(i)) + t * std::sqrt(b(i)), 2);
        else if (method.name == "euclidean")
          expected(i) = (1 - t) * a(i) + t * b(i);
        else
          expected(i) = std::pow(a(i), 1 - t) * std::pow(b(i), t);
      }
      EXPECT_LT(units(x[std::size_t(k)] - q * expected.asDiagonal() * q.transpose(), target), limit);
    }
  }
}

TEST(DenseMethods, TurnWithTheirData) {
  const Index d = 9;
  Draw draw(5);
  const Matrix start = random_covariance(d, Spectrum::graded, draw),
               target = random_covariance(d, Spectrum::power_law, draw);
  const Matrix q = draw.orthonormal(d, d);
  const auto turned = [&](const Matrix& x) -> Matrix {
    const Matrix y = q * x * q.transpose();
    return (y + y.transpose()) / 2;
  };
  for (const Named& method : everything()) {
    SCOPED_TRACE(method.name);
    const std::vector<Matrix> x = matrices(method, start, target, 3);
    const std::vector<Matrix> y = matrices(method, turned(start), turned(target), 3);
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t k = 0; k < x.size(); ++k) EXPECT_LT(units(y[k] - turned(x[k]), target), limit) << "step " << k;
  }
}

TEST(DenseMethods, AirmIsInvariantToCongruence) {
  const Index d = 8;
  Draw draw(6);
  const Matrix start = random_covariance(d, Spectrum::graded, draw),
               target = random_covariance(d, Spectrum::power_law, draw);
  const Matrix m = draw.gaussian(d, d) + 3 * Matrix::Identity(d, d);
  const auto mapped = [&](const Matrix& x) -> Matrix {
    const Matrix y = m * x * m.transpose();
    return (y + y.transpose()) / 2;
  };
  const std::vector<Matrix> x = matrices(path("airm"), start, target, 4);
  const std::vector<Matrix> y = matrices(path("airm"), mapped(start), mapped(target), 4);
  for (std::size_t k = 0; k < x.size(); ++k)
    EXPECT_LT(units(y[k] - mapped(x[k]), mapped(target)), limit) << "step " << k;
  // The log-Euclidean path is not, so the statement is not empty.
  const std::vector<Matrix> u = matrices(path("log_euclidean"), start, target, 4);
  const std::vector<Matrix> v = matrices(path("log_euclidean"), mapped(start), mapped(target), 4);
  EXPECT_GT(units(v[2] - mapped(u[2]), mapped(target)), 1e3 * limit);
}

TEST(DenseMethods, TheGeodesicHasConstantSpeed) {
  const Index d = 7, steps = 5;
  Draw draw(8);
  const Matrix start = random_covariance(d, Spectrum::graded, draw),
               target = random_covariance(d, Spectrum::power_law, draw);
  const std::vector<Matrix> x = matrices(path("bw_geodesic"), start, target, steps);
  const double whole = std::sqrt(double(w2_squared(start, target)));
  for (Index s = 0; s <= steps; ++s)
    for (Index t = 0; t < s; ++t) {
      const double part = std::sqrt(double(w2_squared(x[std::size_t(s)], x[std::size_t(t)])));
      EXPECT_NEAR(part / whole, double(s - t) / double(steps), 1e-9) << s << ", " << t;
    }
}

TEST(DenseMethods, AUnitGradientStepArrives) {
  Draw draw(9);
  const Matrix start = random_covariance(12, Spectrum::graded, draw),
               target = random_covariance(12, Spectrum::power_law, draw);
  const std::vector<Matrix> x = matrices(gradient_descent(1, false), start, target, 2);
  EXPECT_LT(units(x[1] - target, target), limit);
  EXPECT_LT(units(x[2] - target, target), limit);
}

TEST(DenseMethods, GradientStepsFollowTheGeodesicAndDescend) {
  // T is the same map, shortened, all along the geodesic: after k steps the iterate is at t = 1 - (1 - eta)^k.
  const Index d = 8;
  Draw draw(10);
  const Matrix start = random_covariance(d, Spectrum::graded, draw),
               target = random_covariance(d, Spectrum::power_law, draw);
  const double whole = double(w2_squared(start, target));
  const std::vector<Matrix> geodesic = matrices(path("bw_geodesic"), start, target, 10);
  for (const bool backtracking : {true, false})
    for (const double eta : {0.1, 0.5, 0.9}) {
      SCOPED_TRACE(::testing::Message() << "eta " << eta << (backtracking ? ", checked" : ""));
      const std::vector<Matrix> x = matrices(gradient_descent(eta, backtracking), start, target, 4);
      EXPECT_LT(units(x[1] - geodesic[std::size_t(std::lround(10 * eta))], target), limit);
      double previous = whole;
      for (Index k = 1; k <= 4; ++k) {
        const double ahead = std::pow(1 - eta, double(k));
        const double objective = double(w2_squared(x[std::size_t(k)], target));
        EXPECT_NEAR(objective / whole, ahead * ahead, 1e-9);
        EXPECT_LT(objective, previous);
        previous = objective;
      }
    }
}

TEST(DenseMethods, BacktrackingCountsItsChecks) {
  Draw draw(12);
  const Matrix start = random_covariance(6, Spectrum::graded, draw),
               target = random_covariance(6, Spectrum::power_law, draw);
  const SpectralTarget spectral(block<double>(target));
  const DenseOptions options{.rank = 2, .steps = 3};
  const TimedResult plain =
      baselines::bw_gradient_descent(spectral, block<double>(start), options, {.step = 0.5, .backtracking = false});
  EXPECT_EQ(plain.timing.checks, 0);
  const TimedResult checked = baselines::bw_gradient_descent(spectral, block<double>(start), options, {.step = 0.5});
  EXPECT_EQ(checked.timing.checks, 3);  // on the geodesic every first trial descends
  EXPECT_GT(checked.result.trace.passes_total, plain.result.trace.passes_total);
  // F(X+) = (1-eta)^2 F <= (1 - 2 c eta) F holds for eta <= 2 (1 - c); with c = 0.49 a unit step is just admissible.
  const TimedResult strict =
      baselines::bw_gradient_descent(spectral, block<double>(start), options, {.step = 1, .armijo = 0.49});
  EXPECT_EQ(strict.result.trace.steps[1].alpha, 1);
}

TEST(DenseMethods, CoralArrivesInOneShot) {
  Draw draw(13);
  const Matrix start = random_covariance(10, Spectrum::graded, draw),
               target = random_covariance(10, Spectrum::power_law, draw);
  const std::vector<Matrix> x = matrices(everything().back(), start, target, 20);
  ASSERT_EQ(x.size(), 2U);
  EXPECT_LT(units(x[1] - target, target), limit);
}

TEST(DenseMethods, SingularCovariancesAreShiftedNotBroken) {
  // Half of the directions are missing on both sides, other ones on each.
  const Index d = 16;
  Draw draw(14);
  const Matrix start = random_covariance(d, Spectrum::rank_deficient, draw),
               target = random_covariance(d, Spectrum::rank_deficient, draw);
  const SpectralTarget spectral(block<double>(target));
  EXPECT_GE(spectral.shift(), 1e-8);
  EXPECT_LT(spectral.shift(), 1.001e-8);
  EXPECT_GT(spectral.values().minCoeff(), 0);
  for (const Named& method : everything()) {
    SCOPED_TRACE(method.name);
    const std::vector<Matrix> x = matrices(method, start, target, 2);
    for (const Matrix& matrix : x) EXPECT_TRUE(matrix.allFinite());
    // The shift is 1e-8 in each direction; CORAL's whitening by 1e4 amplifies rounding to about the same.
    if (!method.arrives) continue;
    EXPECT_LT((x.back() - target).norm(), 1e-6) << "the end";
  }
}

TEST(DenseMethods, ADefiniteTargetIsNotShifted) {
  Draw draw(15);
  EXPECT_EQ(SpectralTarget(block<double>(random_covariance(9, Spectrum::graded, draw))).shift(), 0);
}

TEST(DenseMethods, RowsCarryTheClocksAndThePasses) {
  Draw draw(16);
  const Matrix start = random_covariance(20, Spectrum::graded, draw),
               target = random_covariance(20, Spectrum::power_law, draw);
  const SpectralTarget spectral(block<double>(target));
  for (const Named& method : everything()) {
    SCOPED_TRACE(method.name);
    Index called = 0;
    const TimedResult timed =
        method.run(spectral, block<double>(start),
                   {.rank = 3, .steps = 4, .on_step = [&](const Step& row, const ConstBlockView<double>& y) {
                      EXPECT_EQ(row.index, called++);
                      EXPECT_EQ(y.cols(), 3);
                      return row.index == 2 ? StepAction::stop : StepAction::proceed;
                    }});
    const auto& trace = timed.result.trace;
    const bool one_shot = method.name == "coral";
    ASSERT_EQ(trace.steps.size(), one_shot ? 2U : 3U);
    EXPECT_EQ(trace.status, one_shot ? Status::step_limit : Status::stopped);
    EXPECT_EQ(std::size_t(called), trace.steps.size());
    EXPECT_EQ(timed.result.iterates.size(), trace.steps.size());
    EXPECT_EQ(timed.timing.update_seconds.size(), trace.steps.size());
    EXPECT_EQ(timed.timing.projection_seconds.size(), trace.steps.size());
    EXPECT_EQ(trace.steps[0].passes, 0);
    EXPECT_EQ(trace.steps[0].seconds, 0);
    for (std::size_t k = 1; k < trace.steps.size(); ++k) {
      EXPECT_GT(trace.steps[k].passes, trace.steps[k - 1].passes);
      EXPECT_GE(timed.timing.update_seconds[k], timed.timing.update_seconds[k - 1]);
      EXPECT_EQ(trace.steps[k].seconds, timed.timing.update_seconds[k] + timed.timing.projection_seconds[k]);
    }
    // What is shown is the best of its rank: the distance from X to its truncation is the sum of the dropped
    // eigenvalues.
    const Matrix whole = matrices(method, start, target, 4)[1];
    const double dropped = double(eigenvalues(real(whole)).tail(17).sum());
    EXPECT_NEAR(double(w2_squared(covariance_of(timed.result.iterates[1]), whole)), dropped, 1e-7 * whole.trace());
  }
}

TEST(DenseMethods, MisuseIsNamed) {
  const Matrix two = Matrix::Identity(2, 2), three = Matrix::Identity(3, 3);
  const SpectralTarget target(block<double>(three));
  const auto run = [&](const Matrix& start, const DenseOptions& options) {
    return baselines::euclidean_path(target, block<double>(start), options);
  };
  expect_throws_naming<std::invalid_argument>({"2 x 2", "3 x 3"}, [&] { run(two, {.rank = 1}); });
  expect_throws_naming<std::invalid_argument>({"rank is 4", "3"}, [&] { run(three, {.rank = 4}); });
  expect_throws_naming<std::invalid_argument>({"rank is 0"}, [&] { run(three, {.rank = 0}); });
  expect_throws_naming<std::invalid_argument>({"steps is 0"}, [&] { run(three, {.rank = 1, .steps = 0}); });
  Matrix broken = three;
  broken(1, 2) = std::nan("");
  expect_throws_naming<std::invalid_argument>({"[1, 2]", "nan"}, [&] { run(broken, {.rank = 1}); });
  broken(1, 2) = 0.5;
  expect_throws_naming<std::invalid_argument>({"not symmetric", "0.5"}, [&] { SpectralTarget{block<double>(broken)}; });
  expect_throws_naming<std::invalid_argument>({"step is 1.5"}, [&] {
    baselines::bw_gradient_descent(target, block<double>(three), {.rank = 1}, GradientOptions{.step = 1.5});
  });
}

}  // namespace
}  // namespace itspace::test
