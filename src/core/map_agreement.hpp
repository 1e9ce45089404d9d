// SPDX-License-Identifier: Apache-2.0
//
// Whether the parts of a transport map that came from elsewhere tell one story.
#pragma once

#include <itspace/export.hpp>
#include <itspace/transport_map.hpp>

namespace itspace {

// @throws std::invalid_argument naming the parts that contradict each other beyond what rounding explains: the scalar
// and the remainders, or a core that does not carry the one covariance to the other as its kind says.
// @pre the shapes fit, as TransportMap has checked.
ITSPACE_API void check_agreement(const TransportMap::Parts& parts);

}  // namespace itspace
