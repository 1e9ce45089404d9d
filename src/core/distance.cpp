// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/evaluate.hpp>

#include "core/factors.hpp"
#include "core/lapack.hpp"
#include "core/text.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace itspace {
namespace {

// Above this many columns a target's factor is not spelled out, and its distance is taken from the certificate.
constexpr Index most_factor_cols = 2048;

void check_dims(Index a, Index b) {
  require(a == b, "the two sides have dimensions ", a, " and ", b, "; a distance needs them equal");
}

// The optimal coupling of two factors: `wide` and `narrow` turned to it, so that W2^2 = ||wide - turned||^2.
struct Coupling {
  Small wide, turned;
  bool first_is_wide;
};

Coupling couple(const Small& a_in, const Small& b_in) {
  check_dims(a_in.rows(), b_in.rows());
  Coupling coupling;
  Small a = narrow_factor(a_in), b = narrow_factor(b_in);
  coupling.first_is_wide = a.cols() >= b.cols();
  if (!coupling.first_is_wide) std::swap(a, b);
  // polar(b'a) with orthonormal rows, so that all of b is coupled even where b'a is rank-deficient.
  Svd parts;
  const Small product = product_transposed(b, a);
  require(product.allFinite(), "the product of the two factors is beyond the largest number; scale both to order one");
  require_converged(svd(product, SvdSize::thin, parts), "singular values of the factors' product");
  const Small b_transposed = b.transpose(), v_transposed = parts.v.transpose();
  coupling.turned = product_transposed(product_transposed(parts.u, b_transposed), v_transposed);
  coupling.wide = std::move(a);
  return coupling;
}

constexpr double eps64 = std::numeric_limits<double>::epsilon();

// D L, L of Cholesky with complete pivoting of C = D^(-1) Sigma D^(-1) down to pivots of d eps; nothing where what is
// left is more than rounding of C, so that Sigma is indefinite by more than that.
std::optional<Small> pivoted_factor_scaled(const Small& sigma, const SmallVector& scale) {
  const Index d = sigma.rows();
  const SmallVector inverse = scale.cwiseInverse();
  const Small c = inverse.asDiagonal() * sigma * inverse.asDiagonal();
  const double rounding = static_cast<double>(d) * eps64 * c.diagonal().maxCoeff();
  if (!c.allFinite() || !(rounding >= 0)) return std::nullopt;
  Small l = pivoted_cholesky(c, rounding);
  if (l.cols() < d) {
    Small rest = -c;
    add_gram(l.transpose(), rest);  // its lower triangle: LL' - C
    for (Index j = 0; j < d; ++j)
      if (!(rest.col(j).tail(d - j).cwiseAbs().maxCoeff() <= 10 * rounding)) return std::nullopt;
  }
  return Small(scale.asDiagonal() * l);
}

// A d x rank factor of a covariance without eigenvalues. Scaled by powers of two to a diagonal of order one first: then
// what Cholesky rounds, and what is cut, is d eps (Sigma_ii Sigma_jj)^(1/2) in entry [i, j], the size of the entry's
// own rounding, and small variances beside large ones are kept. Where a row's entries have the rounding of a larger one
// in them, that scaling finds Sigma indefinite, and d eps max Sigma_ii is what can be had.
std::optional<Small> pivoted_factor_of(const Small& sigma) {
  SmallVector scale = SmallVector::Ones(sigma.rows());
  for (Index i = 0; i < sigma.rows(); ++i)
    if (sigma(i, i) > 0) scale(i) = std::ldexp(1.0, std::ilogb(sigma(i, i)) / 2);
  if (auto found = pivoted_factor_scaled(sigma, scale)) return found;
  return pivoted_factor_scaled(sigma, SmallVector::Ones(sigma.rows()));
}

// U diag(lambda^(1/2)). Eigenvalues at rounding of the largest are rounding: their roots would not be. Double's
// rounding, also for float entries: d float's eps would take real variance away with the noise (1e-4 of the largest at
// d = 1024).
Small eigen_factor(const Small& vectors, SmallVector values) {
  const double cut = static_cast<double>(values.size()) * eps64 * std::max(0.0, values.maxCoeff());
  for (Index i = 0; i < values.size(); ++i)
    if (values(i) <= cut) values(i) = 0;
  return vectors * values.cwiseSqrt().asDiagonal();
}

void eigen_of_covariance(const Small& sigma, SmallVector& values, Small& vectors) {
  require_converged(symmetric_eigen(sigma, values, vectors), "eigenvalues of the covariance");
}

template <Storage Scalar>
Small dense_factor(const ConstBlockView<Scalar>& sigma) {
  require(sigma.rows() == sigma.cols() && sigma.rows() > 0, "the covariance is ", sigma.rows(), " x ", sigma.cols(),
          "; it must be square and not empty");
  check_finite<Scalar>(sigma, "covariance");
  const Small wide = sigma.template cast<double>();
  if (auto found = pivoted_factor_of(wide)) return std::move(*found);
  SmallVector values;
  Small vectors;
  eigen_of_covariance(wide, values, vectors);
  return eigen_factor(vectors, values);
}

Small symmetric_root(const Small& a) {
  SmallVector values;
  Small vectors;
  eigen_of_covariance(a, values, vectors);
  return vectors * values.cwiseMax(0.0).cwiseSqrt().asDiagonal() * vectors.transpose();
}

// T of a factored target, a few columns at a time.
template <Storage Scalar>
Small spell_out(TargetRef<Scalar> target) {
  const Index d = target.dim(), n = target.factor_cols();
  constexpr Index step = 128;
  Small factor(d, n);
  for (Index first = 0; first < n; first += step) {
    const Index count = std::min(step, n - first);
    Block<Scalar> unit = Block<Scalar>::Zero(n, count), part(d, count);
    for (Index j = 0; j < count; ++j) unit(first + j, j) = Scalar(1);
    target.apply_factor(unit, part);
    factor.middleCols(first, count) = part.template cast<double>();
  }
  return factor;
}

// A covariance in double with what the routes of its distances need, each made when first asked for.
class Prepared {
 public:
  template <Storage Scalar>
  explicit Prepared(const ConstBlockView<Scalar>& sigma) {
    constexpr double rounded_to_float = Eigen::NumTraits<float>::epsilon();
    check_symmetric<Scalar>(sigma, rounded_to_float);
    sigma_ = sigma.template cast<double>();
    trace_ = sigma_.trace();
    norm_ = sigma_.norm();
  }

  Index dim() const { return sigma_.rows(); }
  double trace() const { return trace_; }
  double norm() const { return norm_; }  // Frobenius, >= ||Sigma||_2
  const Small& sigma() const { return sigma_; }

  // L with LL' = Sigma, null where Sigma is not numerically definite.
  const Small* cholesky_factor() {
    if (!tried_cholesky_) {
      tried_cholesky_ = true;
      cholesky_ = sigma_;
      if (!cholesky(cholesky_)) cholesky_.resize(0, 0);
    }
    return cholesky_.size() > 0 ? &cholesky_ : nullptr;
  }

  // A d x rank factor, null where Sigma is indefinite by more than rounding.
  const Small* pivoted_factor() {
    if (!tried_pivoted_) {
      tried_pivoted_ = true;
      pivoted_ = pivoted_factor_of(sigma_);
    }
    return pivoted_ ? &*pivoted_ : nullptr;
  }

  // The best factor there is; through eigenvalues where Sigma is indefinite, as one rounded to float may be.
  const Small& factor() {
    if (const Small* pivoted = pivoted_factor()) return *pivoted;
    if (root_.size() > 0) return root_;
    SmallVector values;
    Small vectors;
    eigen_of_covariance(sigma_, values, vectors);
    const double d = static_cast<double>(dim());
    const double largest = std::max(0.0, values.maxCoeff()), least = values.minCoeff();
    const double limit = d * static_cast<double>(Eigen::NumTraits<float>::epsilon()) * largest;
    require(least >= -limit, "the covariance is indefinite: its smallest eigenvalue is ", least, " (limit ", -limit,
            ", largest ", largest, "). Pass a covariance, or add a ridge of at least ", -least, " to its diagonal");
    root_ = eigen_factor(vectors, values);
    return root_;
  }

 private:
  Small sigma_, cholesky_, root_;
  std::optional<Small> pivoted_;
  double trace_ = 0, norm_ = 0;
  bool tried_cholesky_ = false, tried_pivoted_ = false;
};

// A value with a bound on its rounding; the bound is infinite where the route does not apply.
struct Bounded {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();
};

// Products and reductions err by about eps ||A|| ||B|| in every eigenvalue lambda of L'BL, so its root by at most
// delta/(lambda^(1/2) + delta^(1/2)); the sum takes all of these with one sign.
Bounded by_eigenvalues(Prepared& a, Prepared& b) {
  const Small* l = a.cholesky_factor();
  if (!l) return {};
  Small c = b.sigma();
  congruence(*l, c);
  SmallVector values;
  if (!symmetric_eigenvalues(c, values)) return {};
  const double delta = eps64 * a.norm() * b.norm(), root_delta = std::sqrt(delta);
  double sum = 0, error = 0;
  for (const double value : values) {
    const double root = std::sqrt(std::max(0.0, value));
    sum += root;
    if (delta > 0) error += delta / (root + root_delta);
  }
  // A negative direction of B beyond rounding is not for this route to judge.
  if (values.minCoeff() < -static_cast<double>(values.size()) * delta) return {};
  const double variance = a.trace() + b.trace();
  return {variance - 2 * sum, 2 * error + 4 * eps64 * variance};
}

// Each singular value errs by about eps ||L_A|| ||L_B||. What the factors leave of the covariances is not in the bound:
// it is the rounding of the entries, and no other route sees more in them.
Bounded by_singular_values(Prepared& a, Prepared& b) {
  const Small *la = a.pivoted_factor(), *lb = b.pivoted_factor();
  if (!la || !lb) return {};
  SmallVector values;
  if (!singular_values(product_transposed(*lb, *la), values)) return {};
  const double variance = a.trace() + b.trace();
  const double error = eps64 * static_cast<double>(values.size()) * std::sqrt(a.norm() * b.norm());
  return {variance - 2 * values.sum(), 2 * error + 4 * eps64 * variance};
}

// By the first route whose bound is good enough.
std::optional<double> cheap_distance_squared(Prepared& a, Prepared& b, const Accuracy& accuracy) {
  const double allowed = accuracy.of_variance * (a.trace() + b.trace());
  for (const auto route : {by_eigenvalues, by_singular_values}) {
    const Bounded found = route(a, b);
    if (found.error <= std::max(allowed, accuracy.relative * (found.value - found.error)))
      return std::max(0.0, found.value);
  }
  return std::nullopt;
}

double distance_squared(Prepared& a, Prepared& b, const Accuracy& accuracy) {
  check_dims(a.dim(), b.dim());
  if (const auto found = cheap_distance_squared(a, b, accuracy)) return *found;
  const Coupling coupling = couple(a.factor(), b.factor());
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
ConstBlockView<Scalar> matrix_of(const StackView<Scalar>& stack, Index i) {
  return Eigen::Map<const RowMajorMatrix<Scalar>>(stack.data + i * stack.dim * stack.dim, stack.dim, stack.dim);
}

}  // namespace

double Distance::w2() const {
  return std::sqrt(squared());
}

double mean_distance_squared(const Eigen::VectorXd& mean_a, const Eigen::VectorXd& mean_b) {
  check_dims(mean_a.size(), mean_b.size());
  require(mean_a.allFinite() && mean_b.allFinite(),
          "a mean has a value that is not finite; remove or replace such samples first");
  return (mean_a - mean_b).squaredNorm();
}

double factor_distance_squared(const ConstBlockView<double>& a, const ConstBlockView<double>& b) {
  check_finite<double>(a, "factor");
  check_finite<double>(b, "factor");
  const Coupling coupling = couple(a, b);
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
double dense_distance_squared(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.rows(), b.rows());
  const Coupling coupling = couple(dense_factor<Scalar>(a), dense_factor<Scalar>(b));
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
double dense_distance_squared(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b,
                              const Accuracy& accuracy) {
  Prepared first(a), second(b);
  return distance_squared(first, second, accuracy);
}

template <Storage Scalar>
Block<double> cross_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b, const Accuracy& accuracy,
                                      const std::function<void()>& between) {
  check_dims(a.dim, b.dim);
  // Columns a tile at a time, so that what is kept of them (up to four d x d matrices each) stays within about 256 MiB;
  // a row is factored once for each tile.
  const Index bytes = 4 * a.dim * a.dim * static_cast<Index>(sizeof(double));
  const Index tile = std::clamp<Index>((Index(1) << 28) / std::max<Index>(bytes, 1), 1, std::max<Index>(b.count, 1));
  Block<double> out(a.count, b.count);
  for (Index first = 0; first < b.count; first += tile) {
    const Index count = std::min(tile, b.count - first);
    std::vector<Prepared> columns;
    for (Index j = 0; j < count; ++j) columns.emplace_back(matrix_of(b, first + j));
    for (Index i = 0; i < a.count; ++i) {
      Prepared row(matrix_of(a, i));
      for (Index j = 0; j < count; ++j) {
        if (between) between();
        out(i, first + j) = distance_squared(row, columns[static_cast<std::size_t>(j)], accuracy);
      }
    }
  }
  return out;
}

template <Storage Scalar>
Vector paired_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b, const Accuracy& accuracy,
                                const std::function<void()>& between) {
  check_dims(a.dim, b.dim);
  require(a.count == b.count, "there are ", a.count, " and ", b.count,
          " covariances; to pair them both stacks need the same number");
  Eigen::VectorXd out(a.count);
  for (Index i = 0; i < a.count; ++i) {
    if (between) between();
    out(i) = dense_distance_squared<Scalar>(matrix_of(a, i), matrix_of(b, i), accuracy);
  }
  return out;
}

template <Storage Scalar>
Distance features_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.cols(), b.cols());
  Distance distance;
  distance.covariance_part = factor_distance_squared(compact_factor<Scalar>(a), compact_factor<Scalar>(b));
  distance.mean_part = mean_distance_squared(mean<Scalar>(a), mean<Scalar>(b));
  return distance;
}

template <Storage Scalar>
Distance features_distance(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, const Accuracy& accuracy) {
  check_dims(a.cols(), b.cols());
  const Index d = a.cols();
  if (a.rows() <= d || b.rows() <= d) return features_distance<Scalar>(a, b);
  check_finite<Scalar>(a, "features");
  check_finite<Scalar>(b, "features");
  const Moments of_a = gather_moments<Scalar>(a, {}), of_b = gather_moments<Scalar>(b, {});
  Prepared first(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(a, of_a)))),
      second(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(b, of_b))));
  // Their entries are rounded, eps ||Sigma||, which the routes' bounds have in them. The factors are not.
  if (const auto found = cheap_distance_squared(first, second, accuracy))
    return {*found, mean_distance_squared(of_a.mean, of_b.mean)};
  return features_distance<Scalar>(a, b);
}

template <Storage Scalar>
double target_distance_squared(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                               const TargetArgument<Scalar>& given) {
  const TargetRef<Scalar> target = given;
  check_dims(factor.rows(), target.dim());
  check_finite<Scalar>(factor, "factor");
  if (target.has_factor() && target.factor_cols() <= most_factor_cols) {
    const Small spelled = spell_out<Scalar>(target);
    require(spelled.allFinite(), "the target's factor has a value that is not finite; check what it was made of");
    const Coupling coupling = couple(factor.template cast<double>(), spelled);
    return (coupling.wide - coupling.turned).squaredNorm();
  }
  const auto at = evaluate<Scalar>(target, factor, target.has_factor() ? Route::factor : Route::qr);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status),
          "the product of the target with the factor is not finite; check both for values that are not finite or too "
          "large");
  return at.certificate.objective;
}

Block<double> geodesic_factor(const ConstBlockView<double>& a, const ConstBlockView<double>& b, double t) {
  require(t >= 0 && t <= 1, "t is ", t, "; the geodesic runs from t = 0 (the first) to t = 1 (the second)");
  check_finite<double>(a, "factor");
  check_finite<double>(b, "factor");
  const Coupling coupling = couple(a, b);
  const double to_wide = coupling.first_is_wide ? 1 - t : t;
  return to_wide * coupling.wide + (1 - to_wide) * coupling.turned;
}

template <Storage Scalar>
Block<Scalar> geodesic(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b, double t) {
  const Block<double> factor = geodesic_factor(dense_factor<Scalar>(a), dense_factor<Scalar>(b), t);
  Small point = Small::Zero(factor.rows(), factor.rows());
  point.selfadjointView<Eigen::Lower>().rankUpdate(factor);
  point.triangularView<Eigen::StrictlyUpper>() = point.transpose();
  return point.cast<Scalar>();
}

template <Storage Scalar>
double coupling_cost(const ConstBlockView<Scalar>& a, const ConstBlockView<Scalar>& b) {
  check_dims(a.rows(), b.rows());
  check_finite<Scalar>(a, "covariance");
  check_finite<Scalar>(b, "covariance");
  const Small wide_a = a.template cast<double>(), wide_b = b.template cast<double>();
  const Small root = symmetric_root(wide_a);
  const Eigen::LLT<Small> llt(root);
  require(llt.info() == Eigen::Success,
          "the first covariance is singular, so there is no map from it; swap the two, or add a ridge to it");
  // M A^(1/2) = A^(-1/2) (A^(1/2) B A^(1/2))^(1/2)
  const Small moved = llt.solve(symmetric_root(root * wide_b * root));
  return (root - moved).squaredNorm();
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                              \
  template double dense_distance_squared<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);  \
  template double dense_distance_squared<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&,   \
                                                 const Accuracy&);                                               \
  template Block<double> cross_distances_squared<Scalar>(const StackView<Scalar>&, const StackView<Scalar>&,     \
                                                         const Accuracy&, const std::function<void()>&);         \
  template Vector paired_distances_squared<Scalar>(const StackView<Scalar>&, const StackView<Scalar>&,           \
                                                   const Accuracy&, const std::function<void()>&);               \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);     \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&,      \
                                              const Accuracy&);                                                  \
  template double target_distance_squared<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&,           \
                                                  const TargetArgument<Scalar>&);                                \
  template Block<Scalar> geodesic<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double); \
  template double coupling_cost<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
