// SPDX-License-Identifier: Apache-2.0
#include "core/map_agreement.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace {
namespace {

struct Spectrum {
  SmallVector values;
  Small vectors;
};

// Of a model's covariance LL' inside the basis, which is at least `remainder`. Sizes are largest entries: squares of
// the entries themselves might overflow.
Spectrum spectrum_of(const Small& covariance, double remainder, const char* which) {
  const double rounding = 1e3 * std::numeric_limits<double>::epsilon() * covariance.cwiseAbs().maxCoeff();
  Spectrum found;
  require(symmetric_eigen(covariance, found.values, found.vectors), "the map's ", which,
          " has a value that is not finite, or too large to be squared");
  const double least = found.values.minCoeff();
  require(least >= remainder - rounding, "the map's ", which, " gives a covariance with an eigenvalue of ", least,
          ", below its remainder ", remainder);
  return found;
}

// Of the covariance over its largest eigenvalue.
Small scaled_root(const Spectrum& spectrum) {
  const SmallVector roots = (spectrum.values / spectrum.values.maxCoeff()).cwiseMax(0.0).cwiseSqrt();
  return spectrum.vectors * roots.asDiagonal() * spectrum.vectors.transpose();
}

}  // namespace

// In the frame of the scales, where there are any. Any map A of X to S has AXA' = S; the monge map is the symmetric
// positive definite one, the whitening map the one with A X^(1/2) = S^(1/2). These are asked of the core itself, so
// that it does not matter by which formula it was made. An error E of the core, ||E|| <= c eps kappa ||A||, shows as c
// eps kappa ||A||^2 ||X||: kappa(X) from the inverse root of X, and (kappa(X) kappa(S))^(1/2) from the root or the
// polar factor in between. All is scaled by the largest eigenvalues of X and S.
void check_agreement(const TransportMap::Parts& parts) {
  constexpr double eps = std::numeric_limits<double>::epsilon(), slack = 100;
  const double ratio = std::sqrt(parts.to_remainder) / std::sqrt(parts.from_remainder);
  const bool fills_the_space = parts.basis.rows() == parts.basis.cols();  // any scalar serves there
  require(fills_the_space || std::abs(parts.scalar - ratio) <= slack * eps * ratio, "the map's scalar is ",
          parts.scalar, ", but its remainders ", parts.from_remainder, " and ", parts.to_remainder, " give ", ratio);
  if (parts.core.size() == 0) return;
  const Small from_covariance = parts.from_root * parts.from_root.transpose();
  const Small to_covariance = parts.to_root * parts.to_root.transpose();
  const Spectrum from = spectrum_of(from_covariance, parts.from_remainder, "from_root");
  const Spectrum to = spectrum_of(to_covariance, parts.to_remainder, "to_root");
  const double from_size = from.values.maxCoeff(), to_size = to.values.maxCoeff();
  const double kappa_from = from_size / std::max(from.values.minCoeff(), parts.from_remainder);
  const double kappa_to = to_size / std::max(to.values.minCoeff(), parts.to_remainder);
  const double m = static_cast<double>(parts.core.rows());
  const double limit = std::min(1e-2, slack * m * eps * kappa_from * std::sqrt(kappa_from) * std::sqrt(kappa_to));
  const Small a = parts.core * (std::sqrt(from_size) / std::sqrt(to_size));
  const auto contradiction = [&](const Small& found, const Small& wanted, double scale, const char* what) {
    const double error = (found - wanted).norm() / (scale + wanted.norm());
    require(error <= limit, "the map's core contradicts its models: ", what, " (relative error ", error, ", limit ",
            limit, ")");
  };
  const double size = a.norm();
  if (parts.kind != MapKind::whiten) {
    contradiction(a, a.transpose(), size, "it is not symmetric");
    contradiction(a * (from_covariance / from_size) * a.transpose(), to_covariance / to_size, size * size,
                  "it does not carry the one to the other");
    Spectrum own;
    require(
        symmetric_eigen(0.5 * (a + a.transpose()), own.values, own.vectors) && own.values.minCoeff() >= -limit * size,
        "the map's core contradicts its models: it is not positive definite");
  } else {
    contradiction(a * scaled_root(from), scaled_root(to), size,
                  "it does not carry the root of the one to that of the other");
  }
}

}  // namespace itspace
