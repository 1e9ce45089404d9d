// SPDX-License-Identifier: Apache-2.0
//
// A run in any space: what align() asks of its arguments, and what it does then. A place that is not the host's memory
// includes this header and the two solvers' `_impl.hpp`.
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

#include "core/paper_solver.hpp"
#include "core/require.hpp"
#include "core/ritz_solver.hpp"
#include "core/stable_length.hpp"
#include "core/truncation.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

namespace itspace {

// Throw std::invalid_argument where the options contradict each other or the target, and where a start is none of it.
ITSPACE_API void check_options(Index dim, bool has_factor, const AlignOptions& options);
ITSPACE_API void check_start(Index rows, Index cols, Index dim);
ITSPACE_API void check_start_cols(Index cols, Index dim);

// All that a run is asked before it begins: from a start of that shape, or from a random one.
template <Space S>
void check_run(const BasicTargetRef<S>& target, Index start_rows, Index start_cols, const AlignOptions& options) {
  check_options(target.dim(), target.has_factor(), options);
  check_start(start_rows, start_cols, target.dim());
}
template <Space S>
void check_run(const BasicTargetRef<S>& target, Index rank, const AlignOptions& options) {
  check_options(target.dim(), target.has_factor(), options);
  check_rank(rank, target.dim());
}

// Route root needs the square root of the target's entries in the place of the target, and only the host makes one.
template <Space S>
void check_root(const RunContext<S>& context, Route route) {
  require(route != Route::root || context.target.is_replaced(),
          "route root forms the square root of the target's entries, which only the host does; use route qr");
}

template <Space S>
BasicResult<S> run_from(RunContext<S>& context, typename S::Block start, Index rank, const AlignOptions& options,
                        const BasicOnStep<S>& on_step) {
  check_root(context, options.route);
  if (options.solver == Solver::ritz) return RitzSolver<S>(context, std::move(start), rank, options).run(on_step);
  return PaperSolver<S>(context, std::move(start), rank, options).run(on_step);
}

// On the host, by the way that suits the options: few columns have one of their own (side_by_side.hpp).
template <Storage Scalar>
ITSPACE_API Result<Scalar> run_on_host(RunContext<HostSpace<Scalar>>& context, Block<Scalar> start,
                                       const AlignOptions& options, const OnStep<Scalar>& on_step);

// Sigma*Omega with seeded Gaussian Omega, as the target gives it. One pass.
template <Space S>
struct RandomProduct {
  typename S::Block omega, image;
  bool overwritten = true;  // the target wrote its product over what was in the block
};

template <Space S>
RandomProduct<S> make_random_product(RunContext<S>& context, Index rank, std::uint64_t seed) {
  S& space = context.space;
  const Index d = context.target.dim();
  RandomProduct<S> product{space.make_block(d, rank), context.target.make_image(d, rank)};
  space.fill_normal(Random(seed), product.omega);
  space.scale_columns(product.omega, SmallVector::Constant(rank, 1 / std::sqrt(static_cast<double>(d))));
  context.target.apply(product.omega, product.image);
  product.overwritten = !space.is_poisoned(product.image);
  return product;
}

// Scales y to ||y||^2 = trace. Without variance, or with a claim of less than none, there is no size to scale to.
template <Space S>
void scale_to_trace(S& space, typename S::View y, double trace) {
  const Index rank = y.cols();
  const double length = stable_length(space.column_norms(y));
  // In two steps: one factor could leave the range.
  if (length > 0 && std::isfinite(length) && trace > 0) {
    space.scale_columns(y, SmallVector::Constant(rank, 1 / length));
    space.scale_columns(y, SmallVector::Constant(rank, std::sqrt(trace)));
  }
}

// To ||y||^2 = tr Sigma.
template <Space S>
void scale_start(RunContext<S>& context, typename S::View y) {
  scale_to_trace(context.space, y, context.target.trace());
}

// The start of a run: Sigma*Omega, scaled. A target whose products are no numbers ends the run in its first pass, which
// says so; there, and where the target did not overwrite its block, it is Omega: what such a run returns are numbers.
template <Space S>
typename S::Block make_random_start(RunContext<S>& context, Index rank, std::uint64_t seed) {
  RandomProduct<S> product = make_random_product(context, rank, seed);
  if (!product.overwritten) return std::move(product.omega);
  const bool finite = std::isfinite(stable_length(context.space.column_norms(product.image)));
  typename S::Block& start = finite ? product.image : product.omega;
  scale_start<S>(context, start);
  return std::move(start);
}

// What an evaluation asks of the paper's solver.
inline AlignOptions evaluation_options(Route route) {
  AlignOptions options;
  options.steps = 0;
  options.completion = false;
  options.route = route;
  return options;
}

template <Space S>
void check_evaluation(const BasicTargetRef<S>& target, Index rows, Index cols, Route route) {
  require(rows == target.dim() && cols >= 1, "the factor is ", rows, " x ", cols, " and the target has dimension ",
          target.dim(), "; a factor is d x r with at least one column");
  check_options(target.dim(), target.has_factor(), evaluation_options(route));
}

template <Space S>
BasicEvaluation<S> evaluate_at(RunContext<S>& context, typename S::Block factor, Index rank, Route route) {
  check_root(context, route);
  return PaperSolver<S>(context, std::move(factor), rank, evaluation_options(route)).evaluate_start();
}

}  // namespace itspace
