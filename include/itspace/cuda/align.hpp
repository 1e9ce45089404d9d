// SPDX-License-Identifier: Apache-2.0
//
// align on a GPU: the solvers, options, trace, certificates and statuses of align.hpp, with blocks that stay on the
// device (all routes but `root`, which forms the square root of a dense matrix on the host).
//
//     cuda::Device device(0);
//     cuda::DenseTarget<float> target(device, sigma);                       // from the host, or memory of the device
//     auto result = cuda::align<float>(target, 16, {.steps = 5});           // a random start
//     Block<float> factor = cuda::to_host<float>(device, result.factor);
//
// The objective trace and YY' agree with the host's to rounding. Work is launched on the target's device and stream;
// the factor that comes back is written by work on that stream, as any block. on_step sees the iterate on the device.
#pragma once

#include <itspace/align.hpp>
#include <itspace/cuda/space.hpp>
#include <itspace/evaluate.hpp>

#include <optional>

namespace itspace::cuda {

template <Storage Scalar>
using TargetRef = BasicTargetRef<Space<Scalar>>;
template <Storage Scalar>
using Result = BasicResult<Space<Scalar>>;
template <Storage Scalar>
using OnStep = BasicOnStep<Space<Scalar>>;
template <Storage Scalar>
using Evaluation = BasicEvaluation<Space<Scalar>>;

// A target of blocks on a device, and the device that it works on. The targets of cuda/targets.hpp, or your own.
template <class T, class Scalar>
concept Target = Storage<Scalar> && TargetIn<T, Space<Scalar>> && requires(const T& target) {
  { target.device() } -> std::convertible_to<Device>;
};

// What a covariance of features is made of, all of it on the device:
// Sigma = factor sum_i w_i (z_i - s)(z_i - s)' - total delta delta'.
template <Storage Scalar>
struct CentredRows {
  ConstView<Scalar> rows;  // z_i
  const Scalar* shift;     // s
  const Scalar* scale;     // powers of four c_j, |z_ij - s_j| c_j <= 2^15; null: not known, and no launch for all steps
  const double* weights;   // w_i; null: all 1
  const double* delta;
  double factor, total;
};

// What functions take: any such target, a temporary too, which lives as long as the call.
template <Storage Scalar>
class TargetArgument {
 public:
  template <Target<Scalar> T>
  TargetArgument(const T& target)  // NOLINT(google-explicit-constructor): every target converts
      : ref_(target), device_(target.device()) {
    if constexpr (requires {
                    { target.entries() } -> std::convertible_to<ConstView<Scalar>>;
                  })
      entries_ = target.entries();
    if constexpr (requires {
                    { target.centred_rows() } -> std::convertible_to<CentredRows<Scalar>>;
                  })
      centred_rows_ = target.centred_rows();
  }
  TargetArgument(const TargetRef<Scalar>& target, Device device) : ref_(target), device_(std::move(device)) {}
  TargetArgument(const TargetArgument&) = delete;
  TargetArgument& operator=(const TargetArgument&) = delete;

  const TargetRef<Scalar>& ref() const { return ref_; }
  const Device& device() const { return device_; }
  // Of a dense target, and of features: all steps of a run may then be made in one launch.
  const std::optional<ConstView<Scalar>>& entries() const { return entries_; }
  const std::optional<CentredRows<Scalar>>& centred_rows() const { return centred_rows_; }

 private:
  TargetRef<Scalar> ref_;
  Device device_;
  std::optional<ConstView<Scalar>> entries_;
  std::optional<CentredRows<Scalar>> centred_rows_;
};

// From an explicit start, d x r: on the device, or on the host.
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target,
                                 const std::type_identity_t<ConstView<Scalar>>& start, const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target,
                                 const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                 const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// From the seeded random start Y0 = Sigma*Omega, scaled to ||Y0||^2 = tr Sigma (one pass, counted).
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// The certificate at one factor, without a step.
template <Storage Scalar>
ITSPACE_API Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target,
                                        const std::type_identity_t<ConstView<Scalar>>& factor,
                                        Route route = Route::automatic);

// The same run with its factor and iterates on the host.
template <Storage Scalar>
itspace::Result<Scalar> on_host(const Device& device, const Result<Scalar>& result) {
  itspace::Result<Scalar> copy;
  copy.factor = to_host<Scalar>(device, result.factor);
  copy.trace = result.trace;
  for (const Block<Scalar>& iterate : result.iterates) copy.iterates.push_back(to_host<Scalar>(device, iterate));
  return copy;
}

}  // namespace itspace::cuda
