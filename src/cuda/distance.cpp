// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/distance.hpp>
#include <itspace/cuda/targets.hpp>

#include "core/nuclear_norm.hpp"
#include "core/require.hpp"
#include "core/rounding.hpp"
#include "cuda/linear_algebra.hpp"
#include "cuda/views.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace itspace::cuda {
namespace {

// What nuclear_norm asks of a place.
class DeviceWork {
 public:
  using Matrix = Block<double>;

  DeviceWork(const Device& device, Index dim)
      : device_(device), state_(device.state()), algebra_(LinearAlgebra::of(device.state())), dim_(dim) {}

  Matrix make() { return Matrix(device_, dim_, dim_); }
  void multiply(bool op_a, const Matrix& a, bool op_b, const Matrix& b, Matrix& c) {
    algebra_.multiply(op_a, a.data(), op_b, b.data(), dim_, dim_, dim_, 0, c.data());
  }
  void combine(double x, const Matrix& a, double y, double diagonal, Matrix& c) {
    kernels::combine(state_.stream(), x, a.data(), y, diagonal, c.data(), dim_);
  }
  double inner(const Matrix& a, const Matrix& b) { return algebra_.inner(a.data(), b.data(), dim_ * dim_); }
  // Both become their Cholesky factors; false where one is not definite.
  bool factorize(Matrix& a, Matrix& b) {
    if (!algebra_.cholesky(state_, {a.data(), b.data()}, dim_)) return false;
    for (Matrix* factor : {&a, &b}) kernels::keep_lower(state_.stream(), factor->data(), dim_);
    return true;
  }

 private:
  const Device& device_;
  DeviceState& state_;
  LinearAlgebra& algebra_;
  Index dim_;
};

// A covariance in double that may be overwritten.
struct Prepared {
  Block<double> sigma;
  double trace = 0, norm = 0;
};

template <Storage Scalar>
Prepared prepared(const Device& device, const ConstView<Scalar>& a, double asymmetry) {
  Prepared made{Block<double>(device, a.rows, a.rows)};
  DeviceState& state = device.state();
  if (asymmetry > 0)
    kernels::widen_symmetric<Scalar>(state.stream(), in(a), made.sigma.data());
  else
    kernels::widen<Scalar>(state.stream(), in(a), nullptr, out(View<double>(made.sigma)));
  return made;
}

void measure(const Device& device, Prepared& of) {
  of.trace = diagonal_of(device, of.sigma.data(), of.sigma.rows()).sum();
  const double* data = of.sigma.data();
  of.norm = std::sqrt(LinearAlgebra::of(device.state()).inner(data, data, of.sigma.rows() * of.sigma.cols()));
}

// Nothing where one of the two is not definite, or the bound is more than the accuracy allows. Overwrites both.
std::optional<DeviceDistance> by_products(const Device& device, Prepared& a, Prepared& b, const Accuracy& accuracy) {
  measure(device, a);
  measure(device, b);
  const Index d = a.sigma.rows();
  DeviceWork work(device, d);
  if (!work.factorize(a.sigma, b.sigma)) return std::nullopt;
  Block<double> k = work.make();
  work.multiply(true, a.sigma, false, b.sigma, k);
  // The smallest singular value is not known. The least of the factors' diagonals is seldom far above theirs.
  const double least =
      diagonal_of(device, a.sigma.data(), d).minCoeff() * diagonal_of(device, b.sigma.data(), d).minCoeff();
  a.sigma = {};  // their memory is the iteration's
  b.sigma = {};
  const double variance = a.trace + b.trace, allowed = accuracy.of_variance * variance;
  // Each singular value errs by about eps ||L_A|| ||L_B||, as on the host.
  const double rounding = 2 * eps64 * static_cast<double>(d) * std::sqrt(a.norm * b.norm) + 4 * eps64 * variance;
  DeviceDistance found;
  const auto good = [&](double value, double missed) {
    found.squared = variance - 2 * value;
    found.error = 2 * missed + rounding;
    return found.error <= std::max(allowed, accuracy.relative * (found.squared - found.error));
  };
  constexpr double safety = 0.5;
  const NuclearNorm norm = nuclear_norm(work, k, safety * least, good);
  found.products = norm.products + 1;
  if (!std::isfinite(norm.missed) || !good(norm.value, norm.missed)) return std::nullopt;
  found.squared = std::max(0.0, found.squared);
  return found;
}

void check_shares(const Accuracy& accuracy) {
  for (const double share : {accuracy.relative, accuracy.of_variance})
    require(share >= 0 && std::isfinite(share), "an accuracy is ", share,
            "; it is a share of the distance or of the variance, 0 or more and finite");
}

// Whether to try: products and their bound reach no accuracy of 0, and their libraries no dimension.
bool wants_products(Index dim, const Accuracy& accuracy) {
  return dim <= most_square_dim && (accuracy.relative > 0 || accuracy.of_variance > 0);
}

// Sigma = (1/(n - 1)) sum (z - mu)(z - mu)' spelled out, a piece of the rows at a time.
template <Storage Scalar>
Block<double> covariance_of(const Device& device, const ConstView<Scalar>& z, const Eigen::VectorXd& mean) {
  constexpr Index piece_values = Index(1) << 25;
  const Index n = z.rows, d = z.cols(), step = std::clamp<Index>(piece_values / d, 1, n);
  DeviceState& state = device.state();
  LinearAlgebra& algebra = LinearAlgebra::of(state);
  Block<double> sigma(device, d, d), piece(device, step, d);
  const Block<double> centre = to_device<double>(device, itspace::Block<double>(mean.transpose()));
  for (Index first = 0; first < n; first += step) {
    const Index rows = std::min(step, n - first);
    const ConstView<Scalar> part(z.data + first * z.stride, rows, d, z.stride);
    kernels::widen<Scalar>(state.stream(), in(part), centre.data(), {piece.data(), rows, d, d});
    algebra.multiply(true, piece.data(), false, piece.data(), d, rows, d, first > 0 ? 1 : 0, sigma.data());
  }
  kernels::combine(state.stream(), 0, sigma.data(), 1 / static_cast<double>(n - 1), 0, sigma.data(), d);
  return sigma;
}

}  // namespace

template <Storage Scalar>
DeviceDistance dense_distance(const Device& device, const std::type_identity_t<ConstView<Scalar>>& a,
                              const std::type_identity_t<ConstView<Scalar>>& b, const Accuracy& accuracy) {
  check_shares(accuracy);
  const UseDevice use(device.ordinal());
  const double asymmetry[] = {check_symmetric<Scalar>(device, a, "the first covariance"),
                              check_symmetric<Scalar>(device, b, "the second covariance")};
  require(a.rows == b.rows, "the covariances have dimensions ", a.rows, " and ", b.rows, "; they must be equal");
  if (wants_products(a.rows, accuracy)) {
    Prepared first = prepared<Scalar>(device, a, asymmetry[0]), second = prepared<Scalar>(device, b, asymmetry[1]);
    if (const auto found = by_products(device, first, second, accuracy)) return *found;
  }
  DeviceDistance found;
  found.on_host = true;
  found.squared = dense_distance_squared<Scalar>(to_host<Scalar>(device, a), to_host<Scalar>(device, b), accuracy);
  return found;
}

template <Storage Scalar>
Distance features_distance(const Device& device, const std::type_identity_t<ConstView<Scalar>>& a,
                           const std::type_identity_t<ConstView<Scalar>>& b, const Accuracy& accuracy) {
  check_shares(accuracy);
  require(a.cols() == b.cols(), "the feature sets have ", a.cols(), " and ", b.cols(),
          " columns; rows are samples of one dimension");
  const UseDevice use(device.ordinal());
  check_finite<Scalar>(device, a, "X1");
  check_finite<Scalar>(device, b, "X2");
  const Index d = a.cols();
  if (a.rows > d && b.rows > d && wants_products(d, accuracy)) {
    const FeaturesTarget<Scalar> first(device, DeviceData<Scalar>(a)), second(device, DeviceData<Scalar>(b));
    Prepared one{covariance_of<Scalar>(device, a, first.mean())}, two{covariance_of<Scalar>(device, b, second.mean())};
    if (const auto found = by_products(device, one, two, accuracy))
      return {found->squared, mean_distance_squared(first.mean(), second.mean())};
  }
  return itspace::features_distance<Scalar>(to_host<Scalar>(device, a), to_host<Scalar>(device, b), accuracy);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                \
  template DeviceDistance dense_distance<Scalar>(const Device&, const std::type_identity_t<ConstView<Scalar>>&,    \
                                                 const std::type_identity_t<ConstView<Scalar>>&, const Accuracy&); \
  template Distance features_distance<Scalar>(const Device&, const std::type_identity_t<ConstView<Scalar>>&,       \
                                              const std::type_identity_t<ConstView<Scalar>>&, const Accuracy&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
