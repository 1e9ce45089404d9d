// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/loss.hpp>

#include "core/basis_impl.hpp"
#include "core/map_models.hpp"
#include "core/polar.hpp"
#include "core/require.hpp"
#include "cuda/launch_product.hpp"

#include <algorithm>
#include <cmath>

namespace itspace::cuda {
namespace {

template <Storage Scalar>
Evaluation<Scalar> evaluated(const TargetArgument<Scalar>& target, const ConstView<Scalar>& factor) {
  check_finite<Scalar>(target.device(), factor, "factor");
  auto at = evaluate<Scalar>(target, factor);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status),
          "the product of the target with the factor is not finite; check both for values that are not finite or too "
          "large");
  return at;
}

template <Storage Scalar>
void check_same_size(const ConstView<Scalar>& block, const View<Scalar>& gradient, const char* of) {
  require(block.rows == gradient.rows && block.cols() == gradient.cols(), "the gradient in the ", of, " is ",
          gradient.rows, " x ", gradient.cols(), " for a block of ", block.rows, " x ", block.cols(),
          "; both have the same size");
}

// gradient = 2 (y - b).
template <Storage Scalar>
void write_gradient(Space<Scalar>& space, const ConstView<Scalar>& y, const ConstView<Scalar>& b,
                    const View<Scalar>& gradient) {
  const Small twice = 2 * Small::Identity(y.cols(), y.cols());
  space.multiply(y, twice, gradient, Write::assign);
  space.multiply(b, -twice, gradient, Write::add);
}

// The polar factor of a tall block, by a basis made twice, which is orthonormal to rounding, and r x r work.
template <Storage Scalar>
Block<Scalar> polar_of(Space<Scalar>& space, const Block<Scalar>& tall) {
  const Index n = tall.rows(), r = tall.cols();
  Block<Scalar> first = space.make_block(n, r), second = space.make_block(n, r);
  Basis rough, basis;
  make_basis(space, ConstView<Scalar>(tall), View<Scalar>(first), rough);
  const auto require_finite = [](const Basis& found) {
    require(found.finite, "the product of the features with the factor is not finite; scale them down");
  };
  require_finite(rough);
  make_basis(space, ConstView<Scalar>(space.columns(first, 0, rough.cols)), View<Scalar>(second), basis);
  require_finite(basis);
  const Small turn = compact_polar(basis.r * rough.r);
  space.multiply(ConstView<Scalar>(space.columns(second, 0, basis.cols)), turn, View<Scalar>(first), Write::assign);
  return first;
}

}  // namespace

template <Storage Scalar>
double objective_and_gradient(const TargetArgument<Scalar>& target,
                              const std::type_identity_t<ConstView<Scalar>>& factor,
                              const std::type_identity_t<View<Scalar>>& gradient) {
  check_same_size<Scalar>(factor, gradient, "factor");
  const auto at = evaluated<Scalar>(target, factor);
  Space<Scalar> space(target.device());
  write_gradient<Scalar>(space, factor, at.image, gradient);
  return at.certificate.objective;
}

// With T = rho (Z - 1 mu'), rho^2 = 1/(n - 1), and P = polar(T Y): dF/dT = 2 (T - P Y'), and pulled back through the
// mean, of which T - P Y' has none but that of P: dF/dZ = 2 rho^2 (Z - 1 mu') - 2 rho (P - 1 mean(P)') Y'.
template <Storage Scalar>
double objective_and_features_gradient(const FeaturesTarget<Scalar>& target,
                                       const std::type_identity_t<ConstView<Scalar>>& features,
                                       const std::type_identity_t<ConstView<Scalar>>& factor,
                                       const std::type_identity_t<View<Scalar>>& gradient,
                                       const std::type_identity_t<View<Scalar>>& features_gradient) {
  require(factor.rows == target.dim() && factor.cols() >= 1, "the factor is ", factor.rows, " x ", factor.cols(),
          " and the features have ", target.dim(), " columns; a factor is d x r with at least one column");
  require(features.rows == target.samples() && features.cols() == target.dim(), "the features are ", features.rows,
          " x ", features.cols(), " and the target was made of ", target.samples(), " x ", target.dim(),
          "; pass what it was made of");
  check_same_size<Scalar>(factor, gradient, "factor");
  check_same_size<Scalar>(features, features_gradient, "features");
  const Device& device = target.device();
  check_finite<Scalar>(device, factor, "factor");
  const UseDevice use(device.ordinal());
  DeviceState& state = device.state();
  Space<Scalar> space(device);
  const Index n = target.samples(), r = factor.cols();

  Block<Scalar> images = space.make_block(n, r);
  target.apply_factor_transposed(factor, images);
  Block<Scalar> polar = polar_of<Scalar>(space, images);
  Block<Scalar> b = space.make_block(target.dim(), r);
  target.apply_factor(polar, b);
  // ||B - Y||^2 + (tr Sigma - ||B||^2): both terms >= 0, and no cancellation near the target.
  const BlendNorms norms = space.blend_norms(factor, b);
  write_gradient<Scalar>(space, factor, b, gradient);

  const double share = 1 / static_cast<double>(n - 1);
  kernels::copy<Scalar>(state.stream(), in(features), out(features_gradient));
  const Vector& mean = target.mean();
  kernels::subtract_row<Scalar>(state.stream(), state.upload(mean.data(), mean.size()), nullptr, 2 * share,
                                out(features_gradient));
  const SmallVector polar_mean = column_sums<Scalar>(state, kernels::ColumnSum::plain, polar) / static_cast<double>(n);
  kernels::subtract_row<Scalar>(state.stream(), state.upload(polar_mean.data(), r), nullptr, -2 * std::sqrt(share),
                                out(View<Scalar>(polar)));
  const itspace::Block<Scalar> turned = to_host<Scalar>(device, factor).transpose();
  const Block<Scalar> factor_rows = to_device<Scalar>(device, turned);
  launch_product<Scalar>(state, Op::plain, polar, nullptr, factor_rows, features_gradient, {}, true);
  return norms.difference_squared + std::max(0.0, target.trace() - norms.b_squared);
}

template <Storage Scalar>
double remainder_of(const TargetArgument<Scalar>& target, const std::type_identity_t<ConstView<Scalar>>& factor,
                    const ModelOptions& options) {
  check_model_options(options);
  const auto at = evaluated<Scalar>(target, factor);
  Space<Scalar> space(target.device());
  const double captured = space.column_norms(at.image).squaredNorm();
  return remainder_beyond(at.target_trace, captured, target.ref().dim(), factor.cols(), options);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                   \
  template double objective_and_gradient<Scalar>(const TargetArgument<Scalar>&,                                       \
                                                 const std::type_identity_t<ConstView<Scalar>>&,                      \
                                                 const std::type_identity_t<View<Scalar>>&);                          \
  template double objective_and_features_gradient<Scalar>(                                                            \
      const FeaturesTarget<Scalar>&, const std::type_identity_t<ConstView<Scalar>>&,                                  \
      const std::type_identity_t<ConstView<Scalar>>&, const std::type_identity_t<View<Scalar>>&,                      \
      const std::type_identity_t<View<Scalar>>&);                                                                     \
  template double remainder_of<Scalar>(const TargetArgument<Scalar>&, const std::type_identity_t<ConstView<Scalar>>&, \
                                       const ModelOptions&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
