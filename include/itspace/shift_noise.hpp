// SPDX-License-Identifier: Apache-2.0
//
// How much of a shift between two domains is more than noise.
//
// Two sample sets of one distribution differ: their means by E||dmu||^2 = tr Sigma (1/n1 + 1/n2), their covariances by
// a W2^2 that is of the order 1/n too. A map between them would move samples after noise alone. What is kept of an
// observed shift is t = max(0, 1 - noise/observed), the positive part of James and Stein's estimator, for the mean, the
// low-rank part and the scale of every feature apart:
//
//     const SeenShift seen = seen_shift<float>(target, from, source, to, MapKind::monge);   // models with sample
//     counts TransportMap map(from, to, MapKind::monge, seen.kept());                              // shrunk by them
#pragma once

#include <itspace/align.hpp>
#include <itspace/export.hpp>
#include <itspace/target.hpp>
#include <itspace/transport_map.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <string_view>

namespace itspace {

// Of W2^2 between two sample covariances of normal samples of one covariance with these eigenvalues, to leading order
// in c = 1/n1 + 1/n2:
//     mean      (c/2) [sum_ij l_i l_j/(l_i + l_j) + (1/2) sum_i l_i]
//     variance  2 c^2 [sum_(i<j) (l_i l_j/(l_i + l_j))^2 + (1/4) sum_i l_i^2]
// @pre eigenvalues >= 0, c > 0.
struct NoiseMoments {
  double mean = 0, variance = 0;
};
ITSPACE_API NoiseMoments covariance_noise(const Eigen::VectorXd& eigenvalues, double c);

struct ITSPACE_API Seen {
  double observed = 0;  // squared size of the shift
  double noise = 0;     // what noise alone gives on average

  double kept() const;  // max(0, 1 - noise/observed); 0 where nothing is observed
};

struct ITSPACE_API SeenShift {
  Seen mean = {};                   // ||dmu||^2
  Seen covariance = {};             // W2^2, of the standardised features for scale+monge; {} for mean and scale
  Vector deviations_observed = {};  // (s_from - s_to)^2 of every feature, for scale and scale+monge
  Vector deviations_noise = {};

  // Of the deviations each by itself times all together, in units of their noise: of many that did not move some seem
  // to have.
  Kept kept() const;
};

enum class Shrink {
  none,
  noise,   // by the formulas above, which are those of normal samples
  halves,  // the covariance by splitting each domain at random, the deviations by fourth moments: without normality
};
ITSPACE_API std::string_view name(Shrink shrink);
ITSPACE_API std::optional<Shrink> shrink_named(std::string_view text);

// `noise`. The covariances are compared inside the leading directions of the two pooled, as many as the two factors
// have columns, found from a random start that favours neither side: inside directions that were fitted to one of them
// the other would always look different. Costs 5 sweeps over each target with that many columns (and 16 more); none for
// mean and scale. The targets are those of the models: of the standardised features for scale+monge.
// @pre both models know their sample counts.
template <Storage Scalar>
ITSPACE_API SeenShift seen_shift(const TargetArgument<Scalar>& from_target, const LowRankGaussian& from,
                                 const TargetArgument<Scalar>& to_target, const LowRankGaussian& to, MapKind kind,
                                 std::uint64_t seed = 0);

// The same for kinds without a low-rank part, which need no targets. @pre kind is mean or scale.
ITSPACE_API SeenShift seen_shift(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind);

// `halves`. Each feature set is split at random, the factor of one half (cut to the rank of the model) is aligned to
// the other as the options say, and the displacement between the two models, D, is what noise does: (D_from + D_to)/4,
// against the displacement of the whole. Costs a truncation and steps + 2 sweeps over half of each set. The features
// are those of the models, standardised for scale+monge; they have no weights. @pre at least 4 rows each.
template <Storage Scalar>
ITSPACE_API SeenShift seen_shift_by_halves(const ConstBlockView<Scalar>& from_features, const LowRankGaussian& from,
                                           const ConstBlockView<Scalar>& to_features, const LowRankGaussian& to,
                                           MapKind kind, const AlignOptions& options = {},
                                           double floor = default_remainder_floor);

}  // namespace itspace
