// SPDX-License-Identifier: Apache-2.0
#include "cuda/fused_run.hpp"

#include "core/polar.hpp"
#include "core/recorder.hpp"
#include "cuda/device_state.hpp"
#include "cuda/fused.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace itspace::cuda {
namespace {

bool is_for_fused(const AlignOptions& options, Index rank) {
  const bool fixed_alpha = options.step_size.kind() != StepSize::Kind::line_search;
  const bool route = options.route == Route::automatic || options.route == Route::gram;
  if (options.solver != Solver::paper || !fixed_alpha || !route || options.probe || options.keep_iterates) return false;
  if (options.tolerance > 0 || !options.evaluate_last || options.gram_regularization > 0) return false;
  const double alpha = options.step_size.resolve(options.steps);
  constexpr Index most_steps = 100000;
  return alpha > 0 && alpha < 2 && rank <= kernels::most_fused_rank && options.steps >= 1 &&
         options.steps <= most_steps;
}

template <Storage Scalar>
bool is_aligned(const ConstView<Scalar>& sigma) {
  constexpr std::size_t unit = 16;
  return reinterpret_cast<std::uintptr_t>(sigma.data) % unit == 0 &&
         static_cast<std::size_t>(sigma.stride) * sizeof(Scalar) % unit == 0;
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

// The trace of the rows; nothing where a step was not worth taking, or did not keep its promise: the general solver
// knows what to do then.
template <Storage Scalar>
std::optional<Trace> record(const std::vector<kernels::FusedRow>& rows, Recorder& recorder, Index rank, double alpha,
                            double trace, Index first_pass) {
  recorder.set_target_trace(trace);
  std::optional<StepMade> step;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const kernels::FusedRow& row = rows[k];
    const Certificate certificate = logged_certificate<Scalar>(row, rank);
    const double resolution = resolution_of(certificate, row.y_squared, trace, std::numeric_limits<Scalar>::epsilon());
    recorder.iterate_made(step, first_pass + static_cast<Index>(k));
    if (recorder.evaluated(certificate, {std::max(0.0, row.objective), resolution, Route::gram, 0}))
      return std::nullopt;
    step = step_along(alpha, row.difference_squared, certificate.gap, std::max(0.0, trace - row.b_squared),
                      promise_doubt_of<Scalar>(row));
    if (k + 1 < rows.size() && step->promised_descent - step->doubt < -resolution) return std::nullopt;
  }
  return recorder.finish(Status::step_limit, first_pass + static_cast<Index>(rows.size()));
}

}  // namespace

template <Storage Scalar>
std::optional<Result<Scalar>> run_fused(RunContext<Space<Scalar>>& context, const ConstView<Scalar>& sigma,
                                        double trace, const Block<Scalar>& start, const AlignOptions& options) {
  const Index dim = start.rows(), rank = start.cols();
  constexpr Index most_dim = 1 << 20;
  if (!is_for_fused(options, rank) || dim > most_dim || !is_aligned(sigma) || context.target.version() != 0) return {};
  Space<Scalar>& space = context.space;
  DeviceState& state = space.device().state();
  const UseDevice use(state.ordinal());
  const int steps = static_cast<int>(options.steps);
  const kernels::FusedPlan plan = kernels::plan_fused<Scalar>(static_cast<int>(dim), static_cast<int>(rank), steps);
  if (!plan.possible) return {};

  // Sums are in fixed point and roots in plain double: sizes far from one are the general solver's. (The launch looks
  // at the start itself.)
  constexpr double largest = 1e30, smallest = 1e-30;
  if (!(trace > smallest && trace < largest)) return {};

  std::vector<kernels::FusedPolynomial> polynomials;
  for (const OddPolynomial& p : polar_polynomials()) polynomials.push_back({p.a, p.b, p.c, p.lowest});
  Block<Scalar> y = space.make_block(dim, rank);
  const double alpha = options.step_size.resolve(options.steps);
  const kernels::FusedJob<Scalar> job{sigma.data,
                                      static_cast<std::size_t>(sigma.stride),
                                      static_cast<int>(dim),
                                      static_cast<int>(rank),
                                      steps,
                                      start.data(),
                                      static_cast<std::size_t>(rank),
                                      y.data(),
                                      static_cast<std::size_t>(rank),
                                      alpha,
                                      trace,
                                      polynomials.data(),
                                      static_cast<int>(polynomials.size())};
  auto* memory = state.scratch<unsigned char>(Scratch::fused, static_cast<std::ptrdiff_t>(plan.memory_bytes));
  double* log = state.results(static_cast<std::ptrdiff_t>(plan.log_values));
  if (!kernels::launch_fused<Scalar>(state.stream(), job, memory, log)) return {};
  state.synchronize();
  const std::vector<kernels::FusedRow> rows = kernels::read_fused(log, steps);
  if (static_cast<Index>(rows.size()) != options.steps + 1 || !rows.back().certifiable) return {};

  Recorder recorder(dim, rank, precision_name<Scalar>(), alpha, options.tolerance, Solver::paper, context.begin);
  std::optional<Trace> written = record<Scalar>(rows, recorder, rank, alpha, trace, context.target.passes());
  if (!written) return {};
  Result<Scalar> result;
  result.factor = std::move(y);
  result.trace = std::move(*written);
  return result;
}

template std::optional<Result<float>> run_fused(RunContext<Space<float>>&, const ConstView<float>&, double,
                                                const Block<float>&, const AlignOptions&);
template std::optional<Result<double>> run_fused(RunContext<Space<double>>&, const ConstView<double>&, double,
                                                 const Block<double>&, const AlignOptions&);

}  // namespace itspace::cuda
