// SPDX-License-Identifier: Apache-2.0
//
// The trace of a run whose steps were made without the host (fused.hpp, batch.hpp), from what the device logged of
// them.
#pragma once

#include <itspace/align.hpp>

#include "core/certificate_by_products.hpp"
#include "core/recorder.hpp"
#include "cuda/fused.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

namespace itspace::cuda {

// Whether runs with these options can be made so: nobody looks in between, and every step is of one length.
inline bool is_for_fused(const AlignOptions& options, Index rank) {
  const bool fixed_alpha = options.step_size.kind() != StepSize::Kind::line_search;
  const bool route = options.route == Route::automatic || options.route == Route::gram;
  if (options.solver != Solver::paper || !fixed_alpha || !route || options.probe || options.keep_iterates) return false;
  if (options.tolerance > 0 || !options.evaluate_last || options.gram_regularization > 0) return false;
  const double alpha = options.step_size.resolve(options.steps);
  constexpr Index most_steps = 100000;
  return alpha > 0 && alpha < 2 && rank <= kernels::most_fused_rank && options.steps >= 1 &&
         options.steps <= most_steps;
}

// What make_certificate (core/certificate.cpp) finds by products, from what the device logged.
template <Storage Scalar>
Certificate logged_certificate(const kernels::FusedRow& row, Index rank) {
  constexpr double eps = std::numeric_limits<Scalar>::epsilon();
  const double noise = 2 * eps * row.target_norm * row.longest_squared;
  Certificate certificate = certificate_of({.nuclear_norm = row.nuclear_norm,
                                            .largest = std::sqrt(row.g_norm),
                                            .asymmetry = row.asymmetry,
                                            .orthogonality = row.orthogonality,
                                            .rounding = noise * row.root_trace},
                                           rank);
  // M was divided by this.
  certificate.gap = row.nuclear_norm * (certificate.feasibility - 1) / certificate.feasibility;
  certificate.condition = row.g_norm * row.root_norm_squared;
  return certificate;
}

// promise_doubt of the core without singular directions: a rounding D of theta makes M'DM of M'theta M, and the promise
// of a step to Y+ moves by tr(D M B'Y+ M), at most ||D|| times ||BM||^2 for Y+ = B and tr M for Y+ = Y. Twice, as
// there.
template <Storage Scalar>
double promise_doubt_of(const kernels::FusedRow& row) {
  constexpr double eps = std::numeric_limits<Scalar>::epsilon();
  return 4 * eps * row.target_norm * row.longest_squared * std::max(row.doubtful_image, row.root_trace);
}

// The trace of the rows, in the recorder; nothing where a step was not worth taking, did not keep its promise, or
// showed that Sigma is no covariance: the general solver knows what to do then, and finds the words.
template <Storage Scalar>
const Trace* record_fused(std::span<const kernels::FusedRow> rows, Recorder& recorder, Index dim, Index rank,
                          double alpha, double trace, Index first_pass) {
  recorder.set_target_trace(trace);
  // BB' <= Sigma. The rounding is that of objection_to (core/objection.cpp).
  const double most = trace * (1 + static_cast<double>(dim + 16) * std::numeric_limits<float>::epsilon());
  std::optional<StepMade> step;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const kernels::FusedRow& row = rows[k];
    if (!(row.b_squared <= most)) return nullptr;
    const Certificate certificate = logged_certificate<Scalar>(row, rank);
    const double resolution = resolution_of(certificate, row.y_squared, trace, storage_rounding<Scalar>(dim));
    recorder.iterate_made(step, first_pass + static_cast<Index>(k));
    if (recorder.evaluated(certificate, {std::max(0.0, row.objective), resolution, Route::gram, 0})) return nullptr;
    step = step_along(alpha, row.difference_squared, certificate.gap, std::max(0.0, trace - row.b_squared),
                      promise_doubt_of<Scalar>(row));
    if (k + 1 < rows.size() && step->promised_descent - step->doubt < -resolution) return nullptr;
  }
  return &recorder.complete(Status::step_limit, first_pass + static_cast<Index>(rows.size()));
}

}  // namespace itspace::cuda
