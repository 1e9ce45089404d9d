// SPDX-License-Identifier: Apache-2.0
//
// Noise against the definition and against simulation; where there is no shift next to nothing of it is kept, where
// there is one nearly all; covariance shrinkage against its formulas on dense matrices.
#include "expect_throw.hpp"
#include "oracle.hpp"
#include "problems.hpp"

#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/shrinkage.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <cmath>

namespace itspace::test {
namespace {

TEST(ShiftNoise, IsTheDoubleSum) {
  for (const Index d : {1, 2, 9}) {
    Eigen::VectorXd l = eigenvalues_of(Spectrum::power_law, d);
    if (d == 9) l.tail(3).setZero();
    double mean = l.sum() / 2, variance = 0.25 * l.squaredNorm();
    for (Index i = 0; i < d; ++i)
      for (Index j = 0; j < d; ++j) {
        const double pair = l(i) + l(j) > 0 ? l(i) * l(j) / (l(i) + l(j)) : 0;
        mean += pair;
        if (i < j) variance += pair * pair;
      }
    const double c = 1.0 / 30 + 1.0 / 50;
    const NoiseMoments found = covariance_noise(l, c);
    EXPECT_NEAR(found.mean, c / 2 * mean, 30 * eps64 * mean);
    EXPECT_NEAR(found.variance, 2 * c * c * variance, 30 * eps64 * variance);
  }
}

// To leading order: at n = 300 the next one is a few percent. Five standard errors of 200 draws beside that.
TEST(ShiftNoise, IsWhatSamplesOfOneDistributionShow) {
  const Index d = 8, n1 = 300, n2 = 200, draws = 200;
  Draw draw(1);
  const Eigen::VectorXd l = eigenvalues_of(Spectrum::power_law, d);
  const Matrix scale = l.cwiseSqrt().asDiagonal();
  double sum = 0, squares = 0;
  for (Index k = 0; k < draws; ++k) {
    const Matrix a = draw.gaussian(n1, d) * scale, b = draw.gaussian(n2, d) * scale;
    const double found = dense_distance_squared<double>(covariance<double>(a), covariance<double>(b));
    sum += found;
    squares += found * found;
  }
  const double mean = sum / double(draws), variance = squares / double(draws) - mean * mean;
  const NoiseMoments theory = covariance_noise(l, 1.0 / n1 + 1.0 / n2);
  EXPECT_NEAR(mean, theory.mean, 0.05 * theory.mean + 5 * std::sqrt(theory.variance / double(draws)));
  EXPECT_NEAR(variance, theory.variance, (0.1 + 5 * std::sqrt(2.0 / double(draws))) * theory.variance);
}

TEST(ShiftNoise, KeepsThePositivePart) {
  EXPECT_EQ((Seen{4, 1}.kept()), 0.75);
  EXPECT_EQ((Seen{4, 8}.kept()), 0);
  EXPECT_EQ((Seen{0, 0}.kept()), 0);
  EXPECT_EQ((Seen{0, 1}.kept()), 0);
  SeenShift seen{.mean = {4, 1}, .covariance = {2, 1}};
  seen.deviations_observed = Eigen::Vector3d(1, 2, 0);
  seen.deviations_noise = Eigen::Vector3d(2, 1, 0);
  const Kept kept = seen.kept();
  EXPECT_EQ(kept.mean, 0.75);
  EXPECT_EQ(kept.covariance, 0.5);
  // 0 and 1/2 of each by itself; of all together 1 - 2/(1/2 + 2), the third without noise left out.
  EXPECT_LT((Eigen::VectorXd(kept.deviations) - Eigen::Vector3d(0, 0.1, 0)).norm(), 1e-15);
}

// Of features that did not move a third seem to, each by itself. Together they do not.
TEST(ShiftNoise, ManyScalesThatDidNotMoveAreLeftAlone) {
  SeenShift seen;
  seen.deviations_noise = Eigen::VectorXd::Ones(1000);
  seen.deviations_observed = Draw(5).gaussian(1000, 1).col(0).cwiseAbs2();
  double each = 0;
  for (const double observed : seen.deviations_observed) each += Seen{observed, 1}.kept() / 1000;
  EXPECT_GT(each, 0.1);
  EXPECT_LT(seen.kept().deviations.mean(), 0.1 * each);
  seen.deviations_observed *= 100.0;
  EXPECT_GT(seen.kept().deviations.mean(), 0.8);
}

struct Side {
  Block<double> features;  // in the frame of its model
  LowRankGaussian model;
};

struct Domains {
  Side from, to;
};

// As a user makes them: the to side cut to the rank, the from side aligned from it.
Domains make_pair(Matrix from, Matrix to, Index rank, MapKind kind) {
  Domains out{{from, model_of_features<double>(from)}, {to, model_of_features<double>(to)}};
  if (kind == MapKind::mean || kind == MapKind::scale) return out;
  const bool standardised = kind == MapKind::scale_monge;
  for (Side* side : {&out.from, &out.to})
    if (standardised) standardise_features<double>(side->model.mean, side->model.deviations, side->features);
  const FeaturesTarget<double> from_target(out.from.features), to_target(out.to.features);
  const Block<double> start = start_from_target<double>(to_target, rank);
  const Block<double> aligned = align<double>(from_target, start).factor;
  const auto finish = [&](Side& side, const FeaturesTarget<double>& target, const Block<double>& factor) {
    const LowRankGaussian moments = side.model;
    side.model = model_of<double>(
        target, factor, moments.mean,
        ModelOptions{.deviations = moments.deviations, .standardised = standardised, .samples = moments.samples});
  };
  finish(out.from, from_target, aligned);
  finish(out.to, to_target, start);
  return out;
}

SeenShift seen_by(Shrink shrink, const Domains& pair, MapKind kind) {
  if (shrink == Shrink::halves)
    return seen_shift_by_halves<double>(pair.from.features, pair.from.model, pair.to.features, pair.to.model, kind);
  const FeaturesTarget<double> from(pair.from.features), to(pair.to.features);
  return seen_shift<double>(from, pair.from.model, to, pair.to.model, kind);
}

struct Samples {
  Index d, n_from, n_to, rank;
};
const Samples sample_sizes[] = {{20, 200, 150, 4}, {90, 40, 60, 6}};  // n > d and n < d

// On average over draws, as one draw may look like a shift.
TEST(ShiftNoise, OfNoShiftNextToNothingIsKept) {
  for (const MapKind kind : map_kinds)
    for (const Shrink shrink : {Shrink::noise, Shrink::halves})
      for (const Samples& shape : sample_sizes) {
        SCOPED_TRACE(testing::Message() << name(kind) << " " << name(shrink) << " d=" << shape.d);
        constexpr int draws = 12;
        double mean = 0, covariance = 0, displacement = 0, whole = 0;
        for (int k = 0; k < draws; ++k) {
          Draw draw(100 + std::uint64_t(k));
          const Matrix scale = eigenvalues_of(Spectrum::power_law, shape.d).cwiseSqrt().asDiagonal();
          const auto pair = make_pair(draw.gaussian(shape.n_from, shape.d) * scale,
                                      draw.gaussian(shape.n_to, shape.d) * scale, shape.rank, kind);
          const SeenShift seen = seen_by(shrink, pair, kind);
          mean += seen.kept().mean / draws;
          covariance += seen.kept().covariance / draws;
          whole += TransportMap(pair.from.model, pair.to.model, kind).displacement() / draws;
          displacement += TransportMap(pair.from.model, pair.to.model, kind, seen.kept()).displacement() / draws;
        }
        EXPECT_LT(mean, 0.3);
        EXPECT_LT(covariance, 0.2);
        EXPECT_LT(displacement, 0.3 * whole);  // t^2 of it, and deviations one by one keep more
      }
}

TEST(ShiftNoise, OfAShiftNearlyAllIsKept) {
  for (const MapKind kind : map_kinds)
    for (const Shrink shrink : {Shrink::noise, Shrink::halves})
      for (const Samples& shape : sample_sizes) {
        SCOPED_TRACE(testing::Message() << name(kind) << " " << name(shrink) << " d=" << shape.d);
        Draw draw(7);
        const Matrix scale = eigenvalues_of(Spectrum::power_law, shape.d).cwiseSqrt().asDiagonal();
        // The leading directions are stretched, and the correlations change: features are mixed.
        Matrix drift = Matrix::Identity(shape.d, shape.d);
        drift.topLeftCorner(4, 4) *= 4;
        drift.topRows(1).setConstant(1.5);
        Matrix from = draw.gaussian(shape.n_from, shape.d) * scale * drift;
        from.rowwise() += 3 * draw.gaussian(1, shape.d).row(0);
        const auto pair = make_pair(from, draw.gaussian(shape.n_to, shape.d) * scale, shape.rank, kind);
        const Kept kept = seen_by(shrink, pair, kind).kept();
        EXPECT_GT(kept.mean, 0.9);
        if (kind != MapKind::mean && kind != MapKind::scale) {
          EXPECT_GT(kept.covariance, 0.75);
        }
        if (kept.deviations.size() > 0) {
          EXPECT_GT(kept.deviations.head(4).minCoeff(), 0.8);
        }
      }
}

// The deviations' noise is (m4 - s^4)/(4 n s^2), which is s^2/(2 n) for normal samples.
TEST(ShiftNoise, DeviationsByTheoryAndByFourthMoments) {
  Draw draw(3);
  const Matrix a = draw.gaussian(400, 3), b = 2 * draw.gaussian(300, 3);
  const auto from = model_of_features<double>(a), to = model_of_features<double>(b);
  const SeenShift theory = seen_shift(from, to, MapKind::scale);
  const SeenShift free = seen_shift_by_halves<double>(a, from, b, to, MapKind::scale);
  for (Index j = 0; j < 3; ++j) {
    const double s = from.deviations(j), t = to.deviations(j);
    EXPECT_NEAR(theory.deviations_noise(j), s * s / 800 + t * t / 600, 30 * eps64);
    EXPECT_NEAR(theory.deviations_observed(j), (s - t) * (s - t), 30 * eps64);
    double expected = 0;
    for (const auto* side : {&a, &b}) {
      const double n = double(side->rows()), mean = side->col(j).mean();
      const Eigen::ArrayXd square = (side->col(j).array() - mean).square();
      const double kurtosis = square.square().mean() / (square.mean() * square.mean());
      const double deviation = side == &a ? s : t;
      expected += deviation * deviation * (kurtosis - 1) / (4 * n);
    }
    EXPECT_NEAR(free.deviations_noise(j), expected, 30 * eps64 * expected);
    EXPECT_NEAR(theory.deviations_noise(j), expected, 0.35 * expected);  // normal samples
  }
  EXPECT_NEAR(theory.mean.noise, from.deviations.squaredNorm() / 400 + to.deviations.squaredNorm() / 300, 30 * eps64);
}

TEST(ShiftNoise, FollowsItsSeed) {
  Draw draw(4);
  const auto pair = make_pair(draw.gaussian(60, 10), draw.gaussian(50, 10), 3, MapKind::monge);
  const FeaturesTarget<double> from(pair.from.features), to(pair.to.features);
  const auto by = [&](std::uint64_t seed) {
    return seen_shift<double>(from, pair.from.model, to, pair.to.model, MapKind::monge, seed).covariance.noise;
  };
  EXPECT_EQ(by(1), by(1));
  const auto halves = [&](std::uint64_t seed) {
    return seen_shift_by_halves<double>(pair.from.features, pair.from.model, pair.to.features, pair.to.model,
                                        MapKind::monge, {.seed = seed})
        .covariance.noise;
  };
  EXPECT_EQ(halves(1), halves(1));
  EXPECT_NE(halves(1), halves(2));
}

TEST(ShiftNoise, RefusesWhatItCannotKnow) {
  Draw draw(5);
  const auto pair = make_pair(draw.gaussian(30, 5), draw.gaussian(20, 5), 2, MapKind::monge);
  const FeaturesTarget<double> from(pair.from.features), to(pair.to.features);
  auto unknown = pair.to.model;
  unknown.samples = 0;
  expect_misuse({"to model has 0 samples", "at least 2", "do not shrink"},
                [&] { seen_shift<double>(from, pair.from.model, to, unknown, MapKind::monge); });
  expect_misuse({"kind monge", "give them too"}, [&] { seen_shift(pair.from.model, pair.to.model, MapKind::monge); });
  const Matrix few = draw.gaussian(3, 5), wide = draw.gaussian(9, 6);
  expect_misuse({"from features have 3 rows", "need 4"}, [&] {
    seen_shift_by_halves<double>(few, pair.from.model, pair.to.features, pair.to.model, MapKind::monge);
  });
  expect_misuse({"6 columns", "dimension 5"}, [&] {
    seen_shift_by_halves<double>(wide, pair.from.model, pair.to.features, pair.to.model, MapKind::monge);
  });
  expect_misuse({"eigenvalues[1] is -1"}, [&] { covariance_noise(Eigen::Vector2d(1, -1), 0.1); });
  expect_misuse({"c is 0"}, [&] { covariance_noise(Eigen::Vector2d(1, 1), 0); });
}

// The definitions, on dense matrices.
TEST(Shrinkage, IsThatOfTheFormulas) {
  for (const Index n : {2, 7, 40})
    for (const Index d : {1, 5, 30}) {
      SCOPED_TRACE(testing::Message() << n << " x " << d);
      Draw draw(std::uint64_t(n * 100 + d));
      const Matrix scale = eigenvalues_of(Spectrum::power_law, d).asDiagonal();
      Block<double> z = draw.gaussian(n, d) * scale;
      z.array() += 3;
      const Matrix centred = z.rowwise() - z.colwise().mean();
      const Matrix s = centred.transpose() * centred / double(n);
      const double mu = s.trace() / double(d);
      const Matrix identity = Matrix::Identity(d, d);
      const double spread = (s - mu * identity).squaredNorm() / double(d);
      double noise = 0;
      for (Index i = 0; i < n; ++i)
        noise += (centred.row(i).transpose() * centred.row(i) - s).squaredNorm() / (double(n) * double(n) * double(d));
      const double wolf = spread > 100 * eps64 * mu * mu ? std::min(noise, spread) / spread : -1;
      if (wolf >= 0) {
        EXPECT_NEAR(ledoit_wolf_shrinkage<double>(z), wolf, 1e3 * eps64 * mu * mu / spread + 1e3 * eps64);
      }
      const double a = s.squaredNorm() / double(d * d), below = (double(n) + 1) * (a - mu * mu / double(d));
      const double oas = below > 100 * eps64 * a ? std::min(1.0, (a + mu * mu) / below) : 1.0;
      const DenseTarget<double> dense(covariance<double>(z));
      const FeaturesTarget<double> features(z);
      EXPECT_NEAR(oas_shrinkage<double>(dense, double(n)), oas, 1e4 * eps64);
      EXPECT_NEAR(oas_shrinkage<double>(features, double(n)), oas, 1e4 * eps64);
    }
}

// The model of a shrunk covariance is that of the covariance, shrunk.
TEST(Shrinkage, OfAModel) {
  const auto p = make_problem<double>({.dim = 20, .rank = 3});
  const DenseTarget<double> target(p.sigma);
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(20);
  const auto plain = model_of<double>(target, p.start, zero);
  const auto shrunk = model_of<double>(target, p.start, zero, ModelOptions{.shrinkage = 0.3});
  const Matrix identity = Matrix::Identity(20, 20), y = plain.factor, ys = shrunk.factor;
  const Matrix expected =
      0.7 * (y * y.transpose() + plain.remainder * identity) + 0.3 * p.sigma.trace() / 20 * identity;
  EXPECT_LE((ys * ys.transpose() + shrunk.remainder * identity - expected).norm(), 100 * eps64 * expected.norm());
  expect_misuse({"shrinkage is 2", "[0, 1]"},
                [&] { model_of<double>(target, p.start, zero, ModelOptions{.shrinkage = 2}); });
  expect_misuse({"samples is 0"}, [&] { oas_shrinkage<double>(target, 0); });
}

}  // namespace
}  // namespace itspace::test
