// SPDX-License-Identifier: Apache-2.0
#include "cuda/fused_run.hpp"

#include "core/polar.hpp"
#include "cuda/device_state.hpp"
#include "cuda/fused.hpp"
#include "cuda/fused_record.hpp"
#include "cuda/views.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace itspace::cuda {
namespace {

template <Storage Scalar>
bool is_aligned(const ConstView<Scalar>& rows) {
  constexpr std::size_t unit = 16;
  return reinterpret_cast<std::uintptr_t>(rows.data) % unit == 0 &&
         static_cast<std::size_t>(rows.stride) * sizeof(Scalar) % unit == 0;
}

const kernels::PolynomialLists& polynomial_lists() {
  static const kernels::PolynomialLists all = [] {
    kernels::PolynomialLists made;
    // Each polynomial brings the least eigenvalue up four-fold, and a little more.
    constexpr double growth = 4.25;
    for (int list = 0; list < made.lists; ++list) {
      const double lowest = 0.5 / most_polar_condition * std::pow(growth, static_cast<double>(list) / made.lists);
      int& count = made.count[list];
      for (const OddPolynomial& p : polar_polynomials_from(lowest, 1)) {
        made.of[list][count++] = {p.a, p.b, p.c, p.lowest};
        if (count == made.most || 1 - p.lowest <= made.left) break;
      }
    }
    return made;
  }();
  return all;
}

}  // namespace

template <Storage Scalar>
std::optional<Result<Scalar>> run_fused(RunContext<Space<Scalar>>& context, const TargetArgument<Scalar>& target,
                                        const ConstView<Scalar>& start, const AlignOptions& options) {
  const auto& features = target.centred_rows();
  if (!target.entries() && !features) return {};
  const ConstView<Scalar>& data = features ? features->rows : *target.entries();
  const double trace = target.ref().trace();
  const Index dim = start.rows, rank = start.cols();
  constexpr Index most_dim = 1 << 20;
  if (!is_for_fused(options, rank) || dim > most_dim || !is_aligned(data) || context.target.version() != 0) return {};
  Space<Scalar>& space = context.space;
  DeviceState& state = space.device().state();
  const UseDevice use(state.ordinal());
  const int steps = static_cast<int>(options.steps);
  const kernels::FusedPlan plan =
      features ? kernels::plan_fused_features<Scalar>(static_cast<int>(dim), data.rows, static_cast<int>(rank), steps)
               : kernels::plan_fused<Scalar>(static_cast<int>(dim), static_cast<int>(rank), steps);
  if (!plan.possible) return {};

  // Sums are in fixed point and roots in plain double: sizes far from one are the general solver's. (The launch looks
  // at the start itself.)
  constexpr double largest = 1e30, smallest = 1e-30;
  if (!(trace > smallest && trace < largest)) return {};

  std::vector<kernels::FusedPolynomial> polynomials;
  for (const OddPolynomial& p : polar_polynomials()) polynomials.push_back({p.a, p.b, p.c, p.lowest});
  Block<Scalar> y = space.make_block(dim, rank);
  const double alpha = options.step_size.resolve(options.steps);
  const kernels::FusedJob<Scalar> job{data.data,
                                      static_cast<std::size_t>(data.stride),
                                      static_cast<int>(dim),
                                      static_cast<int>(rank),
                                      steps,
                                      start.data,
                                      static_cast<std::size_t>(start.stride),
                                      y.data(),
                                      static_cast<std::size_t>(rank),
                                      alpha,
                                      trace,
                                      polynomials.data(),
                                      static_cast<int>(polynomials.size()),
                                      &polynomial_lists()};
  auto* memory = state.scratch<unsigned char>(Scratch::fused, static_cast<std::ptrdiff_t>(plan.memory_bytes));
  double* log = state.results(static_cast<std::ptrdiff_t>(plan.log_values));
  const bool launched = features
                            ? kernels::launch_fused_features<Scalar>(state.stream(), job, terms(*features), memory, log)
                            : kernels::launch_fused<Scalar>(state.stream(), job, memory, log);
  if (!launched) return {};
  state.synchronize();
  const std::vector<kernels::FusedRow> rows = kernels::read_fused(log, steps);
  if (static_cast<Index>(rows.size()) != options.steps + 1 || !rows.back().certifiable) return {};

  Recorder recorder(dim, rank, precision_name<Scalar>(), alpha, options.tolerance, Solver::paper, context.begin);
  recorder.expect_at_once(static_cast<Index>(rows.size()));
  const Trace* const written = record_fused<Scalar>(rows, recorder, dim, rank, alpha, trace, context.target.passes());
  if (!written) return {};
  Result<Scalar> result;
  result.factor = std::move(y);
  result.trace = *written;
  return result;
}

template std::optional<Result<float>> run_fused(RunContext<Space<float>>&, const TargetArgument<float>&,
                                                const ConstView<float>&, const AlignOptions&);
template std::optional<Result<double>> run_fused(RunContext<Space<double>>&, const TargetArgument<double>&,
                                                 const ConstView<double>&, const AlignOptions&);

}  // namespace itspace::cuda
