// SPDX-License-Identifier: Apache-2.0
#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/start.hpp>

#include "core/align_impl.hpp"
#include "core/require.hpp"
#include "core/root_target.hpp"
#include "core/side_by_side.hpp"

#include <cmath>

namespace itspace {

StepSize StepSize::alpha(double alpha) {
  require(alpha > 0 && alpha < 2, "alpha is ", alpha,
          "; it must lie strictly between 0 and 2, where every step is certified to descend. 1 goes all the way to B");
  StepSize size;
  size.kind_ = Kind::fixed;
  size.alpha_ = alpha;
  return size;
}

StepSize StepSize::lambda(double lambda) {
  require(lambda > 0 && std::isfinite(lambda), "lambda is ", lambda,
          "; the proximal weight must be positive and finite (alpha = 2 lambda/(1 + 2 lambda))");
  StepSize size;
  size.kind_ = Kind::fixed;
  constexpr double all_the_way = 1e17;  // where alpha rounds to 1; 2 lambda overflows later
  size.alpha_ = lambda < all_the_way ? 2 * lambda / (1 + 2 * lambda) : 1;
  return size;
}

StepSize StepSize::line_search() {
  StepSize size;
  size.kind_ = Kind::line_search;
  return size;
}

double StepSize::resolve(Index steps) const {
  if (kind_ == Kind::fixed) return alpha_;
  if (kind_ == Kind::line_search || steps <= 1) return 1;
  return steps < 5 ? 1.1 : 1.3;
}

namespace {

// What belongs to the other solver is refused rather than ignored.
void check_ritz(const AlignOptions& options) {
  require(options.step_size.kind() == StepSize::Kind::by_steps,
          "solver ritz takes the best point of its subspace and has no alpha, lambda or line search; "
          "leave the step size out, or use solver paper");
  require(options.route == Route::automatic || options.route == Route::qr, "solver ritz runs on route qr, not ",
          name(options.route), "; leave the route out, or use solver paper");
  require(!options.probe, "solver ritz carries random guard columns and needs no probe; set guard instead");
  require(!options.guard || *options.guard >= 0, "guard is ", options.guard.value_or(0),
          "; the number of extra columns must be 0 or more");
}

}  // namespace

void check_options(Index d, bool has_factor, const AlignOptions& options) {
  require(d >= 1, "the target has dimension ", d, "; it must have at least one coordinate");
  require(options.steps >= 0, "steps is ", options.steps, "; it must be 0 (evaluate the start only) or more");
  require(options.tolerance >= 0 && std::isfinite(options.tolerance), "tolerance is ", options.tolerance,
          "; the relative decrease to stop at must be 0 (never) or more");
  require(options.gram_regularization >= 0 && std::isfinite(options.gram_regularization), "gram_regularization is ",
          options.gram_regularization, "; it must be 0 (none) or more");
  require(options.gram_regularization == 0 || options.route == Route::gram, "gram_regularization is ",
          options.gram_regularization, " on route ", name(options.route), "; only route gram is regularised");
  require(options.route != Route::factor || has_factor,
          "route factor needs a target that knows a factor T with Sigma = T T' (features, or a factor); "
          "use route qr, which needs only products with Sigma");
  const bool by_factor = options.route == Route::factor || options.route == Route::root;
  require(!(options.probe && by_factor), "the probe rides along in products with Sigma, which route ",
          name(options.route), " does not make; use route auto, qr or gram");
  require(!(options.probe && options.step_size.kind() == StepSize::Kind::line_search),
          "the probe rides along in products with Sigma Y, and a line search multiplies B instead; "
          "use one of the two");
  if (options.solver == Solver::ritz) check_ritz(options);
}

void check_start(Index rows, Index cols, Index d) {
  require(rows == d, "the start has ", rows, " rows and the target has dimension ", d,
          "; a start is a d x r factor of the target's dimension");
  check_start_cols(cols, d);
}

void check_start_cols(Index cols, Index d) {
  require(cols >= 1 && cols <= d, "the start has ", cols, " columns; a factor has from 1 to d = ", d,
          ". A covariance of dimension d needs no more: shorten the start with truncate_factor");
}

namespace {

template <Storage Scalar>
using Host = HostSpace<Scalar>;

// By all threads, whose caches then hold it.
template <Storage Scalar>
Block<Scalar> copied(Host<Scalar>& space, const ConstBlockView<Scalar>& from) {
  Block<Scalar> copy(from.rows(), from.cols());
  space.copy(from, copy);
  return copy;
}

// Route root works on the square root of the target's entries, which only the host forms: it is made first, and stands
// in for the target from then on.
template <Storage Scalar, class Run>
auto with_root(RunContext<Host<Scalar>>& context, Route route, Run run) {
  if (route != Route::root) return run();
  const RootTarget<Scalar> root(context.target);
  context.target.replace_by(root);
  return run();
}

}  // namespace

template <Storage Scalar>
Result<Scalar> run_on_host(RunContext<Host<Scalar>>& context, Block<Scalar> start, const AlignOptions& options,
                           const OnStep<Scalar>& on_step) {
  const Index rank = start.cols();
  if (!suits_side_by_side(options, rank))
    return with_root<Scalar>(context, options.route,
                             [&] { return run_from(context, std::move(start), rank, options, on_step); });
  SmallRun<Scalar> run{&context, std::move(start)};
  run_side_by_side<Scalar>({&run, 1}, rank, options, on_step);
  return std::move(run.result);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& given, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                     const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const TargetRef<Scalar> target = given;
  check_run(target, start.rows(), start.cols(), options);
  Host<Scalar> space;
  RunContext<Host<Scalar>> context(space, target);
  return run_on_host<Scalar>(context, copied<Scalar>(space, start), options, on_step);
}

template <Storage Scalar>
Result<Scalar> align(const TargetArgument<Scalar>& given, Index rank, const AlignOptions& options,
                     const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const TargetRef<Scalar> target = given;
  check_run(target, rank, options);
  Host<Scalar> space;
  RunContext<Host<Scalar>> context(space, target);
  return run_on_host<Scalar>(context, make_random_start(context, rank, options.seed), options, on_step);
}

template <Storage Scalar>
Block<Scalar> random_start(const TargetArgument<Scalar>& given, Index rank, std::uint64_t seed) {
  const TargetRef<Scalar> target = given;
  check_rank(rank, target.dim());
  Host<Scalar> space;
  RunContext<Host<Scalar>> context(space, target);
  // A run would end with its status; a start by itself has none to tell with.
  RandomProduct<Host<Scalar>> product = make_random_product(context, rank, seed);
  require(product.overwritten,
          "apply() of the target must overwrite its output block, and left what was in it; assign to it");
  check_finite<Scalar>(product.image, "the target applied to a random block");
  const double trace = context.target.trace();
  require(std::isfinite(trace), "trace() of the target is ", trace,
          "; a start is scaled to it, and it must be finite. Scale the target down where its trace overflows");
  scale_start<Host<Scalar>>(context, product.image);
  return std::move(product.image);
}

template <Storage Scalar>
Evaluation<Scalar> evaluate(const TargetArgument<Scalar>& given,
                            const std::type_identity_t<ConstBlockView<Scalar>>& factor, Route route) {
  const TargetRef<Scalar> target = given;
  check_evaluation(target, factor.rows(), factor.cols(), route);
  Host<Scalar> space;
  RunContext<Host<Scalar>> context(space, target);
  return with_root<Scalar>(context, route,
                           [&] { return evaluate_at(context, Block<Scalar>(factor), factor.cols(), route); });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                               \
  template Result<Scalar> run_on_host<Scalar>(RunContext<Host<Scalar>>&, Block<Scalar>, const AlignOptions&,      \
                                              const OnStep<Scalar>&);                                             \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&,                                            \
                                        const std::type_identity_t<ConstBlockView<Scalar>>&, const AlignOptions&, \
                                        const std::type_identity_t<OnStep<Scalar>>&);                             \
  template Result<Scalar> align<Scalar>(const TargetArgument<Scalar>&, Index, const AlignOptions&,                \
                                        const std::type_identity_t<OnStep<Scalar>>&);                             \
  template Block<Scalar> random_start<Scalar>(const TargetArgument<Scalar>&, Index, std::uint64_t);               \
  template Evaluation<Scalar> evaluate<Scalar>(const TargetArgument<Scalar>&,                                     \
                                               const std::type_identity_t<ConstBlockView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
