// SPDX-License-Identifier: Apache-2.0
//
// Is there a shift between two sample sets at all, of the means, of the covariances, and along which directions?
//
//     const ShiftTest found = shift_test<double>(source, target);
//     if (found.covariance.p_permutation < 0.05) ...
//
// Two sets of one distribution differ too. Each observed difference, ||dmu||^2 and W2^2 of the covariances, stands here
// beside what noise alone gives, by the theory of normal samples and by permutation. Believe the permutations: the
// theory does not know the tails of the distribution, and calls heavy ones a shift (docs/numerics.md has the figures).
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

namespace itspace {

struct ShiftTestOptions {
  // The covariances are compared inside that many leading directions of all samples together (fewer where there are
  // fewer): in all of them where d, or the number of samples, is no more.
  Index rank = 64;
  Index permutations = 199;  // 0: theory alone
  double level = 0.05;       // of the list of directions as a whole
  std::uint64_t seed = 0;
  std::function<void()> between = {};  // called between permutations; what it throws ends the test
};

struct ShiftOutcome {
  double observed = 0;         // ||dmu||^2, or W2^2
  double noise = 0;            // its mean where there is no shift, for normal samples
  double noise_deviation = 0;  // and its standard deviation
  double z = 0;                // (observed - noise)/noise_deviation
  double p_normal = 1;         // by a gamma distribution of that mean and deviation
  double p_permutation = 1;    // (1 + how many permutations gave no less)/(1 + permutations); NaN where there were none
};

// A direction along which mean or deviation changed beyond the level.
struct MovedDirection {
  Index number = 0;                                   // among the leading directions, 0 the one of most variance
  Vector direction = {};                              // d, of length 1
  double mean_shift = 0, mean_z = 0, mean_p = 1;      // target - source
  double deviation_source = 0, deviation_target = 0;  // standard deviations along it
  double deviation_z = 0, deviation_p = 1;            // of the difference of the variances, target - source
};

struct ShiftTest {
  Index samples_source = 0, samples_target = 0, dim = 0;
  Index rank = 0;        // of the comparison of covariances
  double explained = 0;  // share of the variance that lies in these directions
  Index permutations = 0;
  ShiftOutcome mean = {};        // in all directions
  ShiftOutcome covariance = {};  // in the leading ones
  // Where one of the two p is at most half the level; sorted by it, then by |z|. Each p is that of the largest |z| of
  // all directions under permutation, so that where nothing moved the list is empty but with about the probability of
  // the level (4 to 6 % were measured for 5). Without permutations, Bonferroni's bound from normal theory.
  std::vector<MovedDirection> directions = {};
};

// Rows are samples, one distribution each, without weights. What is permuted: for the means the samples as they are, an
// exact test of one common distribution; for the covariances the samples about the mean of their own set, scaled by
// (n/(n-1))^(1/2), so that a shift of the means is not seen there. Costs a truncation
// of all samples to the rank q, and O(n q^2 + q^3 + n d) for each permutation. @pre finite, at least 3 rows on each
// side, equal dimensions.
template <Storage Scalar>
ITSPACE_API ShiftTest shift_test(const ConstBlockView<Scalar>& source, const ConstBlockView<Scalar>& target,
                                 const ShiftTestOptions& options = {});

}  // namespace itspace
