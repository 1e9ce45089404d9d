// SPDX-License-Identifier: Apache-2.0
//
// The objective as a loss on a GPU, and what is left of a target beyond a factor: gradient.hpp and model_of of
// transport_map.hpp, with blocks that stay on the device. The numbers agree with the host's to rounding.
#pragma once

#include <itspace/cuda/targets.hpp>
#include <itspace/transport_map.hpp>

namespace itspace::cuda {

// F(Y), returned, and dF/dY, written to `gradient`. One pass. @pre the two have the same size, and share no memory.
template <Storage Scalar>
ITSPACE_API double objective_and_gradient(const TargetArgument<Scalar>& target,
                                          const std::type_identity_t<ConstView<Scalar>>& factor,
                                          const std::type_identity_t<View<Scalar>>& gradient);

// The same for the covariance of features that all weigh the same, with the gradient in the features. `features` is
// what `target` was made of.
template <Storage Scalar>
ITSPACE_API double objective_and_features_gradient(const FeaturesTarget<Scalar>& target,
                                                   const std::type_identity_t<ConstView<Scalar>>& features,
                                                   const std::type_identity_t<ConstView<Scalar>>& factor,
                                                   const std::type_identity_t<View<Scalar>>& gradient,
                                                   const std::type_identity_t<View<Scalar>>& features_gradient);

// The remainder of the model of a target with that factor. One pass.
template <Storage Scalar>
ITSPACE_API double remainder_of(const TargetArgument<Scalar>& target,
                                const std::type_identity_t<ConstView<Scalar>>& factor,
                                const ModelOptions& options = {});

}  // namespace itspace::cuda
