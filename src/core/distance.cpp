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
  require(svd(product_transposed(b, a), SvdSize::thin, parts), "a factor has a value that is not finite");
  const Small b_transposed = b.transpose(), v_transposed = parts.v.transpose();
  coupling.turned = product_transposed(product_transposed(parts.u, b_transposed), v_transposed);
  coupling.wide = std::move(a);
  return coupling;
}

template <Storage Scalar>
Small dense_factor(const ConstBlockView<Scalar>& sigma) {
  require(sigma.rows() == sigma.cols(), "the covariance is ", sigma.rows(), " x ", sigma.cols(), "; it must be square");
  Small wide = sigma.template cast<double>();
  const double cut = std::sqrt(static_cast<double>(sigma.rows()) * Eigen::NumTraits<double>::epsilon());
  Small root = leading_root(wide, wide.rows());
  // Eigenvalues at rounding of the largest are rounding: their roots would not be. Double's rounding, also for float
  // entries: d float's eps would take real variance away with the noise (1e-4 of the largest at d = 1024).
  for (Index j = 0; j < root.cols(); ++j)
    if (root.col(j).norm() <= cut * root.col(0).norm()) root.col(j).setZero();
  return root;
}

Small symmetric_root(const Small& a) {
  SmallVector values;
  Small vectors;
  require(symmetric_eigen(a, values, vectors), "the covariance has a value that is not finite");
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

  // A d x rank factor, null where pivoted Cholesky leaves more than rounding: Sigma is indefinite by more than that.
  const Small* pivoted_factor() {
    if (!tried_pivoted_) {
      tried_pivoted_ = true;
      const double rounding = static_cast<double>(dim()) * Eigen::NumTraits<double>::epsilon();
      pivoted_ = pivoted_cholesky(sigma_, rounding * sigma_.diagonal().maxCoeff());
      pivoted_fits_ = std::abs(trace_ - pivoted_.squaredNorm()) <= 10 * rounding * trace_;
    }
    return pivoted_fits_ ? &pivoted_ : nullptr;
  }

  // U diag(lambda^(1/2)).
  const Small& root() {
    if (root_.size() > 0) return root_;
    SmallVector values;
    Small vectors;
    require(symmetric_eigen(sigma_, values, vectors), "the eigenvalues of the covariance did not converge");
    const double d = static_cast<double>(dim());
    const double largest = std::max(0.0, values.maxCoeff()), least = values.minCoeff();
    const double limit = d * static_cast<double>(Eigen::NumTraits<float>::epsilon()) * largest;
    require(least >= -limit, "the covariance is indefinite: its smallest eigenvalue is ", least, " (limit ", -limit,
            ", largest ", largest, "). Pass a covariance, or add a ridge of at least ", -least, " to its diagonal");
    // As in dense_factor.
    for (Index i = 0; i < values.size(); ++i)
      if (values(i) <= d * Eigen::NumTraits<double>::epsilon() * largest) values(i) = 0;
    root_ = vectors * values.cwiseSqrt().asDiagonal();
    return root_;
  }

 private:
  Small sigma_, cholesky_, pivoted_, root_;
  double trace_ = 0, norm_ = 0;
  bool tried_cholesky_ = false, tried_pivoted_ = false, pivoted_fits_ = false;
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
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const double delta = eps * a.norm() * b.norm(), root_delta = std::sqrt(delta);
  double sum = 0, error = 0;
  for (const double value : values) {
    const double root = std::sqrt(std::max(0.0, value));
    sum += root;
    if (delta > 0) error += delta / (root + root_delta);
  }
  // A negative direction of B beyond rounding is not for this route to judge.
  if (values.minCoeff() < -static_cast<double>(values.size()) * delta) return {};
  const double variance = a.trace() + b.trace();
  return {variance - 2 * sum, 2 * error + 4 * eps * variance};
}

// Each singular value errs by about eps ||L_A|| ||L_B||.
Bounded by_singular_values(Prepared& a, Prepared& b) {
  const Small *la = a.pivoted_factor(), *lb = b.pivoted_factor();
  if (!la || !lb) return {};
  SmallVector values;
  if (!singular_values(product_transposed(*lb, *la), values)) return {};
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const double variance = a.trace() + b.trace();
  const double error = eps * static_cast<double>(values.size()) * std::sqrt(a.norm() * b.norm());
  return {variance - 2 * values.sum(), 2 * error + 4 * eps * variance};
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
  const Coupling coupling = couple(a.root(), b.root());
  return (coupling.wide - coupling.turned).squaredNorm();
}

template <Storage Scalar>
ConstBlockView<Scalar> matrix_of(const StackView<Scalar>& stack, Index i) {
  return Eigen::Map<const Block<Scalar>>(stack.data + i * stack.dim * stack.dim, stack.dim, stack.dim);
}

}  // namespace

double Distance::w2() const {
  return std::sqrt(squared());
}

double mean_distance_squared(const Eigen::VectorXd& mean_a, const Eigen::VectorXd& mean_b) {
  check_dims(mean_a.size(), mean_b.size());
  return (mean_a - mean_b).squaredNorm();
}

double factor_distance_squared(const ConstBlockView<double>& a, const ConstBlockView<double>& b) {
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
Eigen::VectorXd paired_distances_squared(const StackView<Scalar>& a, const StackView<Scalar>& b,
                                         const Accuracy& accuracy, const std::function<void()>& between) {
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
  const Moments of_a = gather_moments<Scalar>(a, {}), of_b = gather_moments<Scalar>(b, {});
  Prepared first(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(a, of_a)))),
      second(ConstBlockView<double>(Block<double>(features_covariance<Scalar>(b, of_b))));
  // Their entries are rounded, eps ||Sigma||, which the routes' bounds have in them. The factors are not.
  if (const auto found = cheap_distance_squared(first, second, accuracy))
    return {*found, mean_distance_squared(of_a.mean, of_b.mean)};
  return features_distance<Scalar>(a, b);
}

template <Storage Scalar>
double target_distance_squared(const std::type_identity_t<ConstBlockView<Scalar>>& factor, TargetRef<Scalar> target) {
  check_dims(factor.rows(), target.dim());
  if (target.has_factor() && target.factor_cols() <= most_factor_cols) {
    const Coupling coupling = couple(factor.template cast<double>(), spell_out<Scalar>(target));
    return (coupling.wide - coupling.turned).squaredNorm();
  }
  const Route route = target.has_factor() ? Route::factor : Route::qr;
  return evaluate<Scalar>(target, factor, route).certificate.objective;
}

Block<double> geodesic_factor(const ConstBlockView<double>& a, const ConstBlockView<double>& b, double t) {
  require(t >= 0 && t <= 1, "t is ", t, "; the geodesic runs from t = 0 (the first) to t = 1 (the second)");
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
  template Eigen::VectorXd paired_distances_squared<Scalar>(const StackView<Scalar>&, const StackView<Scalar>&,  \
                                                            const Accuracy&, const std::function<void()>&);      \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);     \
  template Distance features_distance<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&,      \
                                              const Accuracy&);                                                  \
  template double target_distance_squared<Scalar>(const std::type_identity_t<ConstBlockView<Scalar>>&,           \
                                                  TargetRef<Scalar>);                                            \
  template Block<Scalar> geodesic<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double); \
  template double coupling_cost<Scalar>(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
