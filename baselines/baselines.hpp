// SPDX-License-Identifier: Apache-2.0
//
// The methods one would reach for instead, each on the same Target, each counting its passes.
//
// Every function returns the Result of align: iterates[i] is the factor after trace.steps[i].passes sweeps over the
// target. What a method can state of its own iterate is in the row (the objective of a Rayleigh-Ritz iterate is
// tr Sigma - sum theta_i); nothing is certified. The returned factor is the last iterate.
#pragma once

#include <itspace/align.hpp>

#include <cstdint>

namespace itspace::baselines {

struct Options {
  Index passes = 6;
  Index extra = 8;  // columns beyond the rank
  std::uint64_t seed = 0;
  Index report_from = 1;  // rows of fewer passes are not made: a clock then sees the work of one answer
  bool nystrom = false;   // report the truncated Nystrom factor instead of the Ritz factor
};

// `start` is a factor to begin from (d x r), or nullptr for a random one. Either is filled up with random columns.

// Randomized SVD by subspace iteration (Halko, Martinsson, Tropp 2011): Q = orth(Sigma Q), reported from the second
// pass on.
Result<double> randomized_svd(TargetRef<double> target, Index rank, const Block<double>* start, const Options& options);

// LOBPCG (Knyazev 2001) without a preconditioner: Rayleigh-Ritz on [X, residual, previous direction], reported after
// every pass, the first one over X included.
Result<double> lobpcg(TargetRef<double> target, Index rank, const Block<double>* start, const Options& options);

// Block Krylov (Musco, Musco 2015): Rayleigh-Ritz, or Nystrom, on [X, Sigma X, Sigma^2 X, ...], fully orthogonalised.
Result<double> block_krylov(TargetRef<double> target, Index rank, const Block<double>* start, const Options& options);

#ifdef ITSPACE_HAS_SPECTRA
// Thick-restart Lanczos (Spectra): one pass per vector. One iterate, when `tolerance` or the limit of restarts is
// reached.
Result<double> lanczos(TargetRef<double> target, Index rank, const Block<double>* start, double tolerance,
                       Index most_restarts, const Options& options);
#endif

}  // namespace itspace::baselines
