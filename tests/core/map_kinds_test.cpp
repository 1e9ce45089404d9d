// SPDX-License-Identifier: Apache-2.0
//
// All kinds of maps, with and without shrinkage, against dense d x d matrices formed from the definition: A carries the
// one model's covariance to the other's, x -> x + t (T(x) - x) where a share t is kept, the inverse undoes it, and
// displacement and condition are those of the matrix.
#include "expect_throw.hpp"
#include "oracle.hpp"
#include "problems.hpp"

#include <itspace/covariance.hpp>
#include <itspace/targets.hpp>
#include <itspace/transport_map.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <cmath>

namespace itspace::test {
namespace {

constexpr double eps32 = std::numeric_limits<float>::epsilon();

Eigen::VectorXd positive(Index d, Draw& draw) {
  return draw.gaussian(d, 1).unaryExpr([](double x) { return std::exp(0.7 * x); });
}

// A model with everything a map of any kind may ask for; the covariance of the standardised one has a unit diagonal.
LowRankGaussian model(Index d, Index r, double remainder, bool standardised, std::uint64_t seed) {
  Draw draw(seed);
  LowRankGaussian made;
  Matrix y = draw.gaussian(d, r);
  made.mean = draw.gaussian(d, 1);
  made.deviations = positive(d, draw);
  made.standardised = standardised;
  if (standardised)
    for (Index j = 0; j < d; ++j) y.row(j) *= std::sqrt(1 - remainder) / y.row(j).norm();
  made.factor = y;
  made.remainder = remainder;
  made.samples = 100;
  return made;
}

// YY' + delta I, without the features that are constant on either side.
Matrix frame_covariance(const LowRankGaussian& model, const LowRankGaussian& other) {
  Matrix y = model.factor;
  if (model.standardised)
    for (Index j = 0; j < y.rows(); ++j)
      if (model.deviations(j) == 0 || other.deviations(j) == 0) y.row(j).setZero();
  return y * y.transpose() + model.remainder * Matrix::Identity(y.rows(), y.rows());
}

// The matrix of the map, and the covariance of the model it starts from.
struct DenseMap {
  Matrix a, from;
  Eigen::VectorXd mean_to;
};

DenseMap define(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind, const Kept& kept) {
  const Index d = from.mean.size();
  const Matrix identity = Matrix::Identity(d, d);
  DenseMap out;
  out.mean_to = from.mean + kept.mean * (to.mean - from.mean);
  const double t = kept.covariance;
  Eigen::VectorXd before = Eigen::VectorXd::Ones(d), after = before;
  for (Index j = 0; j < d && (kind == MapKind::scale || kind == MapKind::scale_monge); ++j) {
    const double a = from.deviations(j), b = to.deviations(j), share = kept.deviations.size() ? kept.deviations(j) : 1;
    if (a > 0) before(j) = after(j) = a;
    if (a > 0 && b > 0) after(j) = a + share * (b - a);
  }
  const Matrix x = frame_covariance(from, to), s = frame_covariance(to, from);
  Matrix inner = identity;
  if (kind == MapKind::monge || kind == MapKind::scale_monge) inner = (1 - t) * identity + t * monge_map(x, s);
  if (kind == MapKind::whiten) {
    const Matrix way = (1 - t) * identity + t * monge_map(x, s);
    inner = symmetric_power(way * x * way, 0.5) * symmetric_power(x, -0.5);
  }
  // A constant feature is shifted and nothing else.
  for (Index j = 0; j < d && kind == MapKind::scale_monge; ++j)
    if (from.deviations(j) == 0 || to.deviations(j) == 0) inner.col(j) = inner.row(j) = identity.row(j);
  out.a = after.asDiagonal() * inner * before.cwiseInverse().asDiagonal();
  if (kind == MapKind::monge || kind == MapKind::whiten)
    out.from = x;
  else if (kind == MapKind::scale_monge)
    out.from = before.asDiagonal() * x * before.asDiagonal();
  else if (kind == MapKind::scale)
    out.from = before.cwiseAbs2().asDiagonal();
  else
    out.from = from.deviations.squaredNorm() / double(d) * identity;
  return out;
}

struct Ranks {
  Index d, r_from, r_to;
};
// d = 1, more columns than d together, more than the strips take, and the common one.
const Ranks rank_pairs[] = {{1, 1, 1}, {9, 3, 2}, {12, 9, 7}, {60, 5, 8}, {200, 70, 66}};

Kept some_kept(Index d, int which, Draw& draw) {
  if (which == 0) return {};
  Kept kept{0.25, 0.6, Eigen::VectorXd(d)};
  for (Index j = 0; j < d; ++j) kept.deviations(j) = draw.uniform();
  if (which == 2) kept = {0, 0, Eigen::VectorXd::Zero(d)};
  return kept;
}

// Calls check(from, to, kind, kept, map) for all kinds, shapes and shares.
template <class Check>
void for_each_map(Check check) {
  std::uint64_t seed = 1;
  for (const MapKind kind : map_kinds)
    for (const Ranks& shape : rank_pairs)
      for (const int which : {0, 1, 2}) {
        SCOPED_TRACE(testing::Message() << name(kind) << " d=" << shape.d << " kept " << which);
        const bool standardised = kind == MapKind::scale_monge;
        const auto from = model(shape.d, shape.r_from, 0.3, standardised, ++seed);
        const auto to = model(shape.d, shape.r_to, 0.2, standardised, ++seed);
        Draw draw(++seed);
        const Kept kept = some_kept(shape.d, which, draw);
        check(from, to, kind, kept, TransportMap(from, to, kind, kept));
      }
}

TEST(MapKinds, AgreeWithTheDenseDefinition) {
  for_each_map([](const auto& from, const auto& to, MapKind kind, const Kept& kept, const TransportMap& map) {
    const Index d = map.dim();
    const DenseMap wanted = define(from, to, kind, kept);
    const double bound = 30 * double(d) * eps64 * condition_number(wanted.from) * wanted.a.norm();
    EXPECT_LE((Matrix(map.matrix()) - wanted.a).norm(), bound);

    Draw draw(3);
    const Matrix samples = draw.gaussian(37, d);
    const Matrix image =
        ((samples.rowwise() - from.mean.transpose()) * wanted.a.transpose()).rowwise() + wanted.mean_to.transpose();
    Block<double> wide = samples;
    map.apply<double>(wide);
    EXPECT_LE((Matrix(wide) - image).norm(), bound * (samples.norm() + 7 * from.mean.norm()) + eps64 * image.norm());
    Block<float> narrow = samples.cast<float>();
    map.apply<float>(narrow);
    EXPECT_LE((narrow.cast<double>() - image).norm(),
              30 * double(d) * eps32 * wanted.a.norm() * (image.norm() + samples.norm()));
  });
}

TEST(MapKinds, DisplacementAndConditionAreThoseOfTheMatrix) {
  for_each_map([](const auto& from, const auto& to, MapKind kind, const Kept& kept, const TransportMap& map) {
    const Index d = map.dim();
    const DenseMap wanted = define(from, to, kind, kept);
    const Matrix change = wanted.a - Matrix::Identity(d, d);
    const double means = (wanted.mean_to - from.mean).squaredNorm();
    const double expected = means + (change * wanted.from * change.transpose()).trace();
    const double scale = (wanted.a * wanted.from * wanted.a.transpose()).trace() + wanted.from.trace() + expected;
    const double bound = 30 * double(d) * eps64 * condition_number(wanted.from) * scale;
    EXPECT_NEAR(map.displacement(), expected, bound);
    const MapDiagnosis found = map.diagnose();
    EXPECT_NEAR(found.relative_displacement * found.relative_displacement * wanted.from.trace(), expected, bound);
    EXPECT_NEAR(found.mean_share * expected, means, bound);
    EXPECT_GE(found.touched_variance, 0);
    EXPECT_LE(found.touched_variance, 1 + 10 * eps64);
    const double kappa = condition_number(wanted.a);
    EXPECT_NEAR(found.condition, kappa, 1e-3 * kappa);  // with scales by an iteration
  });
}

TEST(MapKinds, InverseUndoesThem) {
  for_each_map([](const auto& from, const auto&, MapKind kind, const Kept& kept, const TransportMap& map) {
    const TransportMap back = map.inverse();
    Draw draw(8);
    const Matrix samples = draw.gaussian(20, map.dim());
    Block<double> there_and_back = samples;
    map.apply<double>(there_and_back);
    back.apply<double>(there_and_back);
    EXPECT_LE(
        (Matrix(there_and_back) - samples).norm(),
        1e3 * double(map.dim()) * eps64 * condition_number(map.matrix()) * (samples.norm() + 5 * from.mean.norm()));
    EXPECT_EQ(back.kind(), kind);
    EXPECT_EQ(back.parts().samples_from, map.parts().samples_to);
    EXPECT_EQ(back.parts().kept.covariance, kept.covariance);
  });
}

// Where nothing is kept, no bit changes; and a share of the mean alone moves the mean alone.
TEST(MapKinds, WhereNothingIsKeptSamplesAreLeftAlone) {
  for_each_map([](const auto&, const auto&, MapKind, const Kept& kept, const TransportMap& map) {
    if (kept.mean > 0) return;
    Draw draw(9);
    const Block<double> samples = 1e3 * draw.gaussian(20, map.dim());
    Block<double> moved = samples;
    map.apply<double>(moved);
    EXPECT_EQ(moved, samples);
    EXPECT_EQ(map.displacement(), 0);
    EXPECT_EQ(map.inverse().displacement(), 0);
  });
}

// A feature that is constant on one side or both keeps its scale and takes no part in the rest; means still move it.
TEST(MapKinds, ConstantFeaturesAreShiftedAndNothingElse) {
  for (const MapKind kind : {MapKind::scale, MapKind::scale_monge})
    for (const double share : {1.0, 0.5}) {
      SCOPED_TRACE(testing::Message() << name(kind) << " " << share);
      const Index d = 11;
      auto from = model(d, 3, 0.3, kind == MapKind::scale_monge, 1), to = model(d, 2, 0.1, from.standardised, 2);
      from.deviations(2) = 0;
      to.deviations(5) = 0;
      from.deviations(7) = to.deviations(7) = 0;
      const Kept kept{1, share, Eigen::VectorXd::Constant(d, share)};
      const TransportMap map(from, to, kind, kept);
      const Matrix a = map.matrix();
      const DenseMap wanted = define(from, to, kind, kept);
      EXPECT_LE((a - wanted.a).norm(), 30 * d * eps64 * wanted.a.norm() * condition_number(wanted.a));
      for (const Index j : {2, 5, 7}) {
        Eigen::VectorXd unit = Eigen::VectorXd::Unit(d, j);
        EXPECT_LE((a.col(j) - unit).norm(), 30 * d * eps64 * a.norm());
        EXPECT_LE((a.row(j).transpose() - unit).norm(), 30 * d * eps64 * a.norm());
      }
      Block<double> samples = Matrix(from.mean.transpose());
      map.apply<double>(samples);
      EXPECT_LE((samples.row(0).transpose() - to.mean).norm(), 30 * eps64 * (to.mean.norm() + from.mean.norm()));
    }
  // All constant: the means alone.
  auto flat = model(4, 1, 0.3, true, 3), other = model(4, 1, 0.3, true, 4);
  flat.deviations.setZero();
  for (const MapKind kind : {MapKind::scale, MapKind::scale_monge})
    EXPECT_LE((Matrix(TransportMap(flat, other, kind).matrix()) - Matrix::Identity(4, 4)).norm(), 100 * eps64);
}

// The scale map of two feature sets gives one the means and deviations of the other; so does the mean map its mean.
TEST(MapKinds, OfFeaturesGiveThemTheMomentsOfTheOther) {
  Draw draw(5);
  Matrix a = draw.gaussian(80, 6), b = draw.gaussian(50, 6);
  a *= positive(6, draw).asDiagonal();
  b *= positive(6, draw).asDiagonal();
  b.rowwise() += draw.gaussian(1, 6).row(0);
  const auto from = model_of_features<double>(a), to = model_of_features<double>(b);
  EXPECT_EQ(from.samples, 80);
  EXPECT_NEAR(from.remainder, covariance<double>(a).trace() / 6, 30 * eps64 * covariance<double>(a).trace());
  Block<double> scaled = a, shifted = a;
  TransportMap(from, to, MapKind::scale).apply<double>(scaled);
  TransportMap(from, to, MapKind::mean).apply<double>(shifted);
  const Eigen::VectorXd wanted = covariance<double>(b).diagonal();
  EXPECT_LE((Eigen::VectorXd(covariance<double>(scaled).diagonal()) - wanted).norm(), 100 * eps64 * wanted.norm());
  EXPECT_LE((mean<double>(scaled) - mean<double>(b)).norm(), 100 * eps64 * (a.norm() + b.norm()));
  EXPECT_LE((mean<double>(shifted) - mean<double>(b)).norm(), 100 * eps64 * (a.norm() + b.norm()));
  EXPECT_LE((covariance<double>(shifted) - covariance<double>(a)).norm(), 100 * eps64 * a.squaredNorm());
}

// Rows with weights count as often as their weight says, and a row of weight 0 is not there.
TEST(MapKinds, WeightsCount) {
  Draw draw(6);
  const Matrix once = draw.gaussian(7, 3);
  Matrix repeated(9, 3);
  repeated << once, once.row(2), once.row(2);
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(7);
  weights(2) = 3;
  const auto by_weight = model_of_features<double>(once, weights), by_row = model_of_features<double>(repeated);
  EXPECT_LE((by_weight.mean - by_row.mean).norm(), 30 * eps64);
  // The two normalise by sum w - (sum w^2)/(sum w) and by n - 1.
  const double c = 9 - 15.0 / 9;
  EXPECT_LE((by_weight.deviations * std::sqrt(c / 8) - by_row.deviations).norm(), 30 * eps64);
  EXPECT_NEAR(by_weight.samples, 81.0 / 15, 30 * eps64);
  weights(4) = 0;
  Eigen::VectorXd huge = 1e300 * weights;
  EXPECT_NEAR(effective_samples(7, huge), 64.0 / 14, 30 * eps64);
}

TEST(MapKinds, StandardisedFeaturesHaveTheCorrelationMatrix) {
  Draw draw(7);
  Block<double> z = draw.gaussian(40, 5) * positive(5, draw).asDiagonal();
  z.col(3).setConstant(0.1);
  const Vector mu = mean<double>(z), sigma = deviations<double>(z);
  EXPECT_EQ(sigma(3), 0);
  Block<double> correlation = covariance<double>(z);
  for (Index j = 0; j < 5; ++j) EXPECT_NEAR(sigma(j) * sigma(j), correlation(j, j), 30 * eps64 * correlation(j, j));
  standardise_covariance<double>(sigma, correlation);
  standardise_features<double>(mu, sigma, z);
  EXPECT_LE((covariance<double>(z) - correlation).norm(), 100 * eps64);
  for (Index j = 0; j < 5; ++j) EXPECT_NEAR(correlation(j, j), j == 3 ? 0 : 1, 30 * eps64);
}

TEST(MapKinds, RefuseWhatTheyLack) {
  const auto plain = model(6, 2, 0.4, false, 1), standard = model(6, 2, 0.4, true, 2);
  auto bare = plain;
  bare.deviations.resize(0);
  expect_misuse({"to model", "no deviations", "kind scale"}, [&] { TransportMap(plain, bare, MapKind::scale); });
  expect_misuse({"from model", "not standardised"}, [&] { TransportMap(plain, standard, MapKind::scale_monge); });
  expect_misuse({"to model", "is standardised", "scale+monge"}, [&] { TransportMap(plain, standard, MapKind::monge); });
  auto bad = plain;
  bad.deviations(3) = -1;
  expect_misuse({"deviations[3] is -1", "0 or more"}, [&] { TransportMap(bad, plain, MapKind::scale); });
  bad.deviations(3) = std::nan("");
  expect_misuse({"deviations[3] is nan"}, [&] { TransportMap(plain, bad, MapKind::scale); });
  bad = plain;
  bad.deviations.resize(4);
  bad.deviations.setOnes();
  expect_misuse({"4 values for 6 features"}, [&] { TransportMap(plain, bad, MapKind::scale); });
  bad = plain;
  bad.samples = 0.5;
  expect_misuse({"0.5 samples", "at least 1"}, [&] { TransportMap(plain, bad); });
  auto no_factor = plain;
  no_factor.factor.resize(6, 0);
  expect_misuse({"6 x 0", "one column"}, [&] { TransportMap(plain, no_factor); });
  EXPECT_NO_THROW(TransportMap(plain, no_factor, MapKind::mean));
  expect_misuse({"kept.mean is 1.5", "[0, 1]"}, [&] { TransportMap(plain, plain, MapKind::mean, {1.5, 1}); });
  expect_misuse({"kept.covariance is nan"}, [&] { TransportMap(plain, plain, MapKind::monge, {1, std::nan("")}); });
  expect_misuse({"kept.deviations has 2 values for 6"}, [&] {
    TransportMap(plain, plain, MapKind::scale, {1, 1, Eigen::VectorXd::Ones(2)});
  });
  auto tiny = plain, large = plain;
  tiny.deviations(1) = 1e-200;
  large.deviations(1) = 1e200;
  expect_misuse({"feature 1", "too far apart"}, [&] { TransportMap(tiny, large, MapKind::scale); });
  auto parts = TransportMap(plain, plain, MapKind::scale).parts();
  parts.scale_to(2) = 0;
  expect_misuse({"scale_to[2] is 0"}, [&] { TransportMap{parts}; });
  parts.kind = MapKind::mean;
  expect_misuse({"scale_from", "has 0"}, [&] { TransportMap{parts}; });
  const Matrix one = Matrix::Ones(1, 3);
  expect_misuse({"1 row", "at least 2"}, [&] { model_of_features<double>(one); });
}

}  // namespace
}  // namespace itspace::test
