// SPDX-License-Identifier: Apache-2.0
//
// Transport maps between models with thin remainders, where a covariance has lost what its factors still know. The
// oracle is the dense definition in long double, from factors: with X = KK' and S = MM', K = [Y, sqrt(delta) I], the
// Monge map is X^(-1/2)(X^(1/2) S X^(1/2))^(1/2) X^(-1/2). An error of eps in the factors is one of eps sqrt(kappa) in
// the map, kappa being the larger condition number of the two covariances: that is the unit here.
#include "oracle.hpp"
#include "problems.hpp"
#include "require.hpp"

#include <itspace/distance.hpp>
#include <itspace/transport_map.hpp>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace::test {
namespace {

// X = U diag(values) U' in long double, from the SVD of Y: delta is added to squares, never lost in a sum of products.
struct Spectral {
  explicit Spectral(const LowRankGaussian& model) {
    const Eigen::JacobiSVD<RealMatrix, Eigen::FullPivHouseholderQRPreconditioner> parts(real(model.factor),
                                                                                        Eigen::ComputeFullU);
    vectors = parts.matrixU();
    values = RealVector::Constant(model.factor.rows(), Real(model.remainder));
    values.head(parts.singularValues().size()) += parts.singularValues().cwiseAbs2();
  }
  RealMatrix power(Real exponent) const {
    return vectors * values.array().pow(exponent).matrix().asDiagonal() * vectors.transpose();
  }
  Real condition() const { return values.maxCoeff() / values.minCoeff(); }

  RealMatrix vectors;
  RealVector values;
};

struct Truth {
  RealMatrix map;
  Real distance_squared;
};

// V W' of the SVD a = W E V', by one-sided Jacobi rotations: columns are turned until they are orthogonal to eps of
// their own sizes, so that small singular values are known to eps of themselves (Eigen's SVD: of the largest).
RealMatrix turn_of(RealMatrix a) {
  const Index n = a.cols();
  RealMatrix v = RealMatrix::Identity(n, n);
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (Index j = 1; j < n; ++j) {
      for (Index i = 0; i < j; ++i) {
        const Real p = a.col(i).squaredNorm(), q = a.col(j).squaredNorm(), dot = a.col(i).dot(a.col(j));
        if (std::abs(dot) <= Real(n) * std::numeric_limits<Real>::epsilon() * std::sqrt(p * q)) continue;
        turned = true;
        const Real zeta = (q - p) / (2 * dot);
        const Real t = (zeta >= 0 ? 1 : -1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const Real c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (RealMatrix* m : {&a, &v}) {
          const RealVector first = m->col(i);
          m->col(i) = c * first - s * m->col(j);
          m->col(j) = s * first + c * m->col(j);
        }
      }
    }
  }
  for (Index j = 0; j < n; ++j) a.col(j).normalize();
  return v * a.transpose();
}

// With roots K = U D of both covariances, (X^(1/2) S X^(1/2))^(1/2) is X^(1/2) K_s V W' K^(-1) X^(1/2) for the SVD
// K'K_s = W E V': the definition again, with D (U'U_s) D_s in the middle.
Truth truth(const Spectral& from, const Spectral& to, MapKind kind) {
  const RealVector d_from = from.values.cwiseSqrt(), d_to = to.values.cwiseSqrt();
  const RealMatrix root_from = from.vectors * d_from.asDiagonal();
  const RealMatrix turned = to.vectors * d_to.asDiagonal() *
                            turn_of(d_from.asDiagonal() * (from.vectors.transpose() * to.vectors) * d_to.asDiagonal());
  const Real distance = (turned - root_from).squaredNorm();
  if (kind == MapKind::whiten) return {to.power(0.5L) * from.power(-0.5L), distance};
  return {turned * d_from.cwiseInverse().asDiagonal() * from.vectors.transpose(), distance};
}

Real norm_of(const RealMatrix& a) {
  return spectral_norm(a);
}

struct ThinMap {
  Index d, r_from, r_to, rank_from, rank_to, shared;
  double delta_from, delta_to;
};

LowRankGaussian model(const ThinMap& c, bool first, const Matrix& shared, Draw& draw) {
  const Index d = c.d, r = first ? c.r_from : c.r_to, rank = std::min(r, first ? c.rank_from : c.rank_to);
  Matrix y = Matrix::Zero(d, r);
  if (rank > 0) {
    Matrix columns = draw.gaussian(d, rank);
    const Index common = std::min(c.shared, rank);
    columns.leftCols(common) = shared.leftCols(common);
    y = columns * draw.gaussian(rank, r) / std::sqrt(double(r));
  }
  return {y, draw.gaussian(d, 1), first ? c.delta_from : c.delta_to};
}

void check(const ThinMap& c, std::uint64_t seed) {
  Draw draw(seed);
  const Matrix shared = draw.gaussian(c.d, std::max<Index>(1, c.shared));
  const LowRankGaussian from = model(c, true, shared, draw), to = model(c, false, shared, draw);
  const Spectral x(from), s(to);
  const Real root_kappa = std::sqrt(std::max(x.condition(), s.condition()));
  const Real unit = 30 * Real(c.d) * eps<double> * root_kappa;
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    const TransportMap map(from, to, kind);
    const Truth there = truth(x, s, kind);
    const RealMatrix found = real(map.matrix());
    const Real size = norm_of(there.map);
    REQUIRE_LE((found - there.map).norm(), unit * size);

    // Backward: the covariance arrives to a rounding of its own size.
    const TransportMap inverse = map.inverse();
    const RealMatrix back = real(inverse.matrix());
    const RealMatrix expected_back =
        kind == MapKind::monge ? truth(s, x, kind).map : RealMatrix(x.power(0.5L) * s.power(-0.5L));
    const Real back_size = norm_of(expected_back);
    REQUIRE_LE((back - expected_back).norm(), unit * back_size);

    // There and back: the image is rounded, and the way back blows that up; the maps' own errors are eps sqrt(kappa) of
    // the same.
    const Matrix samples = draw.gaussian(7, c.d);
    Block<double> moved = samples;
    map.apply<double>(moved);
    inverse.apply<double>(moved);
    REQUIRE_LE(
        (real(moved) - real(samples)).norm(),
        unit * back_size * (size * (real(samples).norm() + 3 * real(from.mean).norm()) + 3 * real(to.mean).norm()));

    // What files keep is enough for the way back.
    const TransportMap loaded{map.parts()};
    REQUIRE_TRUE(loaded.matrix() == map.matrix());
    REQUIRE_TRUE(loaded.inverse().matrix() == inverse.matrix());
    REQUIRE_TRUE(loaded.displacement() == map.displacement());

    const Real condition = size * back_size;
    REQUIRE_LE(std::abs(Real(map.diagnose().condition) - condition), unit * condition);
    if (kind == MapKind::whiten) continue;
    // Symmetric to the last bit, as it is applied.
    REQUIRE_TRUE(map.parts().core == map.parts().core.transpose());
    // The displacement is W2^2 of the models: a sum of squares, good to a rounding of its terms.
    const Real expected = there.distance_squared + (real(from.mean) - real(to.mean)).squaredNorm();
    const Real variance = x.values.sum() + s.values.sum();
    const Real rounding = 30 * Real(c.d) * eps<double>;
    REQUIRE_LE(std::abs(Real(map.displacement()) - expected),
               rounding * (std::sqrt(variance * expected) + expected) + rounding * rounding * variance * root_kappa);
  }
}

// The case of a user: thirty normal directions each way and a remainder of 1e-6.
TEST(ThinMap, InverseUndoesIt) {
  Draw draw(1);
  const LowRankGaussian from{draw.gaussian(40, 30), Eigen::VectorXd::Zero(40), 1e-6};
  const LowRankGaussian to{draw.gaussian(40, 30), Eigen::VectorXd::Zero(40), 1e-6};
  const Matrix samples = draw.gaussian(20, 40);
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    const TransportMap map(from, to, kind);
    Block<double> moved = samples;
    map.apply<double>(moved);
    map.inverse().apply<double>(moved);
    // cond(A) is 1e6 for Monge, and up to kappa = 1e8 for whitening.
    EXPECT_LT((Matrix(moved) - samples).norm(), (kind == MapKind::monge ? 1e-9 : 1e-7) * samples.norm()) << name(kind);
    const Matrix expected = truth(Spectral(from), Spectral(to), kind).map.cast<double>();
    EXPECT_LT((Matrix(map.matrix()) - expected).norm(), 1e-11 * expected.norm()) << name(kind);
  }
}

TEST(ThinMap, AgreesWithTheDefinitionForAllRemainders) {
  const double deltas[] = {1e-12, 1e-9, 1e-6, 1e-3, 1};
  const Index shapes[][6] = {// d, r, s, rank of Y, rank of Y_s, shared columns
                             {1, 1, 1, 0, 1, 0},  {2, 1, 2, 1, 2, 1},     {7, 7, 7, 7, 7, 0},  {7, 3, 2, 0, 0, 0},
                             {9, 9, 9, 4, 9, 2},  {12, 5, 5, 5, 5, 5},    {12, 5, 5, 5, 5, 2}, {12, 3, 9, 3, 9, 3},
                             {20, 4, 4, 2, 4, 1}, {40, 30, 30, 30, 30, 0}};
  std::uint64_t seed = 0;
  for (const auto& [d, r, s, rank_from, rank_to, shared] : shapes) {
    for (const double delta_from : deltas) {
      for (const double delta_to : deltas) {
        if (d == 40 && (delta_from != delta_to || delta_from == 1e-9)) continue;  // long double is slow
        const ThinMap c{d, r, s, rank_from, rank_to, shared, delta_from, delta_to};
        SCOPED_TRACE(testing::Message() << "d=" << d << " r=" << r << "," << s << " ranks " << rank_from << ","
                                        << rank_to << " shared " << shared << " deltas " << delta_from << ","
                                        << delta_to);
        EXPECT_NO_THROW(check(c, ++seed));
      }
    }
  }
}

TEST(ThinMap, AgreesWithTheDefinitionForRandomShapes) {
  Draw draw(77);
  const auto up_to = [&](Index most) { return Index(draw.uniform() * double(most + 1)); };
  for (std::uint64_t i = 0; i < 60; ++i) {
    ThinMap c{};
    c.d = 1 + up_to(i % 12 == 0 ? 59 : 24);
    c.r_from = 1 + up_to(c.d - 1);
    c.r_to = 1 + up_to(c.d - 1);
    c.rank_from = up_to(c.r_from);
    c.rank_to = up_to(c.r_to);
    c.shared = up_to(std::min(c.rank_from, c.rank_to));
    c.delta_from = std::pow(10.0, -12 * draw.uniform());
    c.delta_to = i % 3 == 0 ? c.delta_from : std::pow(10.0, -12 * draw.uniform());
    SCOPED_TRACE(testing::Message() << "d=" << c.d << " r=" << c.r_from << "," << c.r_to << " ranks " << c.rank_from
                                    << "," << c.rank_to << " shared " << c.shared << " deltas " << c.delta_from << ","
                                    << c.delta_to);
    EXPECT_NO_THROW(check(c, 1000 + i));
  }
}

}  // namespace
}  // namespace itspace::test
