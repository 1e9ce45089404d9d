// SPDX-License-Identifier: Apache-2.0
//
// What moved between a source and a stream that is followed, as far as their models know: a stream keeps no samples.
// Noise is that of normal samples of the effective counts.
//
//     const FollowedShift shift = followed_shift(source, aligner.model());
//     aligner.map(source, MapKind::scale, shift.kept(MapKind::scale)).apply<float>(samples);   // shrunk by noise
#pragma once

#include <itspace/class_shares.hpp>
#include <itspace/export.hpp>
#include <itspace/gate.hpp>
#include <itspace/transport_map.hpp>

namespace itspace {

struct ITSPACE_API FollowedShift {
  MomentEvidence moments = {};  // the covariance's two shares are one: there are no standardised models of a stream
  // Of each feature's change of scale, in logarithms, what is beyond noise; empty where deviations are not known.
  Vector deviations_kept = {};

  // What a map of that kind keeps; whiten keeps all.
  Kept kept(MapKind kind) const;
};

// `clusters` are those of the source, for what other class shares cannot explain; nullptr: not known.
// @pre models of one dimension, with factors, not standardised; counts of 0 (not known) are taken for infinite.
ITSPACE_API FollowedShift followed_shift(const LowRankGaussian& source, const LowRankGaussian& stream,
                                         const ClusterMeans* clusters = nullptr);

}  // namespace itspace
