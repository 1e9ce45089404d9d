// SPDX-License-Identifier: Apache-2.0
#include "baselines/dense_algebra.hpp"
#include "baselines/dense_methods.hpp"

#include <chrono>

namespace itspace::baselines {

SpectralTarget::SpectralTarget(const ConstBlockView<double>& sigma) {
  check_symmetric(sigma, sigma.rows(), "the target");
  sigma_ = sigma;
  const auto begin = std::chrono::steady_clock::now();
  const SymmetricEigen eigen(sigma_);
  vectors_ = eigen.vectors();
  shift_ = positive_definite_shift(eigen.values());
  values_ = eigen.values().array() + shift_;
  root_ = weighted_square(vectors_, values_.cwiseSqrt());
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Small SpectralTarget::shifted() const {
  Small shifted = sigma_;
  shifted.diagonal().array() += shift_;
  return shifted;
}

}  // namespace itspace::baselines
