// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/completion.hpp"

#include <algorithm>

namespace itspace {

template <Space S>
Index complete(S& space, Product<S>& product, const typename S::ConstView& q, const Random& random, typename S::View z,
               Index dim, ProductData& data, Certificate& certificate) {
  const Index width = std::min({certificate.null_directions.cols() + completion_oversampling, z.cols(), dim});
  const auto drawn = space.columns(z, 0, width);
  space.fill_normal(random, drawn);
  product.extend(q, drawn, certificate.seen, data);
  return fill_null_directions(width, product.energy_noise(), data, certificate);
}

}  // namespace itspace
