// SPDX-License-Identifier: Apache-2.0
//
// evaluate: the certificate at one factor, without a step. What align() knows of each iterate, for a factor at hand:
// the exact objective and how finely it is known, the certificate, and the point B that a full step would go to.
//
//     const auto at = itspace::evaluate<double>(target, factor);
//     at.certificate.objective;          // F(Y) = W2^2(YY', Sigma)
//     2 * (factor - at.image);           // its gradient
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>
#include <itspace/trace.hpp>

#include <string>
#include <type_traits>

namespace itspace {

template <Space S>
struct BasicEvaluation {
  Step certificate;         // the row of the factor; NaN where the status is a failure
  typename S::Block image;  // B = Sigma^(1/2) polar(Sigma^(1/2) Y), d x r; null directions are left alone
  double target_trace = not_a_number;
  Status status = Status::step_limit;  // or not_finite, not_a_covariance
  std::string reason;                  // of a failure, where the status does not explain it
};
template <Storage Scalar>
using Evaluation = BasicEvaluation<HostSpace<Scalar>>;

// One pass (a second where `automatic` turns to the factor of the target). A factor may have more columns than rows.
template <Storage Scalar>
ITSPACE_API Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& target,
                                        const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                        Route route = Route::automatic);

}  // namespace itspace
