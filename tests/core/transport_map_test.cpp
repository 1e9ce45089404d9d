// SPDX-License-Identifier: Apache-2.0
//
// Transport maps against the dense formulas, formed from the definition in double: the Monge map
// X^(-1/2)(X^(1/2) S X^(1/2))^(1/2) X^(-1/2) and whitening-recoloring S^(1/2) X^(-1/2), X = YY' + delta I.
#include "oracle.hpp"
#include "problems.hpp"

#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <cmath>

namespace itspace::test {
namespace {

LowRankGaussian cut_model(Index d, Index r, double remainder, std::uint64_t seed, Index true_rank) {
  Draw draw(seed);
  Matrix y = draw.gaussian(d, true_rank) * draw.gaussian(true_rank, r) / std::sqrt(double(r));
  return {y, draw.gaussian(d, 1), remainder};
}

Matrix covariance_of(const LowRankGaussian& model) {
  const Matrix y = model.factor;
  return y * y.transpose() + model.remainder * Matrix::Identity(y.rows(), y.rows());
}

Matrix dense_map(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind) {
  const Matrix x = covariance_of(from), s = covariance_of(to);
  if (kind == MapKind::whiten) return symmetric_power(s, 0.5) * symmetric_power(x, -0.5);
  return monge_map(x, s);
}

struct Shape {
  Index d, r_from, r_to, true_rank_from, true_rank_to;
};
// r = d, more columns than d together, rank-deficient factors, d = 1.
const Shape shapes[] = {{1, 1, 1, 1, 1},    {3, 1, 2, 1, 2},  {17, 4, 4, 4, 4},      {17, 17, 17, 17, 17},
                        {17, 12, 9, 12, 9}, {30, 6, 6, 3, 6}, {300, 16, 16, 16, 16}, {300, 16, 8, 5, 8}};

TEST(TransportMap, AgreesWithTheDenseFormulas) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    for (const Shape& shape : shapes) {
      const auto from = cut_model(shape.d, shape.r_from, 0.3, 1, shape.true_rank_from);
      const auto to = cut_model(shape.d, shape.r_to, 0.7, 2, shape.true_rank_to);
      const TransportMap map(from, to, kind);
      const Matrix expected = dense_map(from, to, kind);
      const double bound = 30 * double(shape.d) * eps64 * condition_number(covariance_of(from)) * expected.norm();
      EXPECT_LT((Matrix(map.matrix()) - expected).norm(), bound) << name(kind) << " d=" << shape.d;
      // It does what it is for: A X A' = S.
      const Matrix moved = Matrix(map.matrix()) * covariance_of(from) * Matrix(map.matrix()).transpose();
      EXPECT_LT((moved - covariance_of(to)).norm(), bound * expected.norm() * covariance_of(from).norm());

      // apply() is mu_to + A (x - mu_from), row by row.
      Draw draw(3);
      const Matrix samples = draw.gaussian(23, shape.d);
      const Matrix image =
          ((samples.rowwise() - from.mean.transpose()) * expected.transpose()).rowwise() + to.mean.transpose();
      Block<double> wide_samples = samples;
      map.apply<double>(wide_samples);
      EXPECT_LT((Matrix(wide_samples) - image).norm(), bound * (samples.norm() + from.mean.norm() * 5));
      Block<float> narrow_samples = samples.cast<float>();
      map.apply<float>(narrow_samples);
      EXPECT_LT((narrow_samples.cast<double>() - image).norm(), 30 * double(std::numeric_limits<float>::epsilon()) *
                                                                    double(shape.d) * (image.norm() + samples.norm()) *
                                                                    expected.norm());
    }
  }
}

TEST(TransportMap, OfIdenticalModelsIsTheIdentity) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    const auto same = cut_model(40, 6, 0.2, 5, 6);
    const TransportMap map(same, same, kind);
    const Matrix identity = Matrix::Identity(40, 40);
    EXPECT_LT((Matrix(map.matrix()) - identity).norm(), 30 * 40 * eps64 * condition_number(covariance_of(same)));
    EXPECT_LT(map.displacement(),
              std::pow(30 * 40 * eps64, 2) * condition_number(covariance_of(same)) * covariance_of(same).trace());
  }
}

TEST(TransportMap, InverseUndoesIt) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    const auto from = cut_model(25, 5, 0.5, 6, 5), to = cut_model(25, 7, 0.1, 7, 4);
    const TransportMap map(from, to, kind);
    Draw draw(8);
    const Matrix samples = draw.gaussian(50, 25);
    Block<double> there_and_back = samples;
    map.apply<double>(there_and_back);
    map.inverse().apply<double>(there_and_back);
    EXPECT_LT((Matrix(there_and_back) - samples).norm(), 30 * 25 * eps64 * condition_number(map.matrix()) *
                                                             condition_number(covariance_of(from)) * samples.norm());
  }
}

// The Monge map's displacement is W2^2 of the two models, means included; whitening never moves less.
TEST(TransportMap, DisplacementIsTheDistance) {
  for (const Shape& shape : shapes) {
    const auto from = cut_model(shape.d, shape.r_from, 0.3, 11, shape.true_rank_from);
    const auto to = cut_model(shape.d, shape.r_to, 0.7, 12, shape.true_rank_to);
    const double expected =
        double(w2_squared(covariance_of(from), covariance_of(to))) + (from.mean - to.mean).squaredNorm();
    const double bound = 30 * double(shape.d) * eps64 * condition_number(covariance_of(from)) *
                         (covariance_of(from).trace() + covariance_of(to).trace() + expected);
    EXPECT_NEAR(TransportMap(from, to).displacement(), expected, bound) << shape.d;
    EXPECT_GE(TransportMap(from, to, MapKind::whiten).displacement(), expected - bound);
  }
}

TEST(TransportMap, DiagnosisNamesWhatIsDoubtful) {
  const auto from = cut_model(50, 4, 0.3, 1, 4), to = cut_model(50, 4, 0.7, 2, 4);
  const MapDiagnosis plenty = TransportMap(from, to).diagnose(1000, 1000);
  EXPECT_GT(plenty.touched_variance, 0);
  EXPECT_LE(plenty.touched_variance, 1);
  EXPECT_GE(plenty.condition, 1);
  const auto warns_of = [](const MapDiagnosis& diagnosis, const std::string& part) {
    for (const std::string& warning : diagnosis.warnings)
      if (warning.find(part) != std::string::npos) return true;
    return false;
  };
  EXPECT_FALSE(warns_of(plenty, "samples in dimension"));
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(30, 1000), "samples in dimension"));
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(1000, 7), "lower the rank"));
  // By the names that whoever asks has for the sides.
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(30, 7), "the from side has 30 samples in"));
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(30, 7), "the to side has 7 samples for"));
  const SideNames names{.from = "the clinic", .to = "the laboratory"};
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(30, 7, names), "the clinic has 30 samples in"));
  EXPECT_TRUE(warns_of(TransportMap(from, to).diagnose(30, 7, names), "the laboratory has 7 samples for"));
  auto thin = from;
  thin.remainder = 1e-9;
  EXPECT_TRUE(warns_of(TransportMap(thin, to).diagnose(), "condition number"));
  auto far = to;
  far.mean.array() += 1e3;
  EXPECT_TRUE(warns_of(TransportMap(from, far).diagnose(), "times their own spread"));
}

// delta = (tr Sigma - ||B||^2)/(d - r) is the mean of what B leaves, and never negative even where ||Y||^2 > tr Sigma.
TEST(TransportMap, ModelOfATarget) {
  const auto p = make_problem<double>({.dim = 30, .rank = 4});
  const DenseTarget<double> target(p.sigma);
  const Block<double> large = 10 * p.start;
  for (const Block<double>& y : {p.start, large}) {
    const LowRankGaussian fitted = model_of<double>(target, y, Eigen::VectorXd::Zero(30));
    const Matrix b = p.oracle.certificate_factor(y).cast<double>();
    EXPECT_NEAR(fitted.remainder, (p.sigma.trace() - b.squaredNorm()) / 26, 30 * 30 * eps64 * p.sigma.trace());
    EXPECT_GT(fitted.remainder, 0);
  }
  // r = d: nothing is left, and the floor holds.
  const auto full = make_problem<double>({.dim = 5, .rank = 5});
  const DenseTarget<double> full_target(full.sigma);
  EXPECT_NEAR(model_of<double>(full_target, full.start, Eigen::VectorXd::Zero(5), 0.01).remainder,
              0.01 * full.sigma.trace() / 5, eps64 * full.sigma.trace());
}

TEST(TransportMap, RefusesWhatDoesNotFit) {
  const auto a = cut_model(10, 2, 0.5, 1, 2), b = cut_model(11, 2, 0.5, 2, 2);
  EXPECT_THROW(TransportMap(a, b), std::invalid_argument);
  auto flat = a;
  flat.remainder = 0;
  EXPECT_THROW(TransportMap(a, flat), std::invalid_argument);
  Block<double> samples = Block<double>::Zero(3, 11);
  EXPECT_THROW(TransportMap(a, a).apply<double>(samples), std::invalid_argument);
  TransportMap::Parts parts = TransportMap(a, a).parts();
  parts.basis *= 2;
  EXPECT_THROW(TransportMap{parts}, std::invalid_argument);
}

}  // namespace
}  // namespace itspace::test
