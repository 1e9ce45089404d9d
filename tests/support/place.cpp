// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include "core/align_impl.hpp"
#include "core/barycenter_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/ritz_solver_impl.hpp"
#include "cuda_place.hpp"
#include "mpi_place.hpp"
#include "split_space.hpp"

#include <cstdlib>
#include <deque>
#include <stdexcept>
#include <string>

namespace itspace {

template class PaperSolver<test::SplitSpace<float>>;
template class PaperSolver<test::SplitSpace<double>>;
template class RitzSolver<test::SplitSpace<float>>;
template class RitzSolver<test::SplitSpace<double>>;
template class BarycenterSolver<test::SplitSpace<float>>;
template class BarycenterSolver<test::SplitSpace<double>>;

}  // namespace itspace

namespace itspace::test {
namespace {

// A host's target for split blocks: it sees all rows, as a target that talks to its peers would.
template <Storage Scalar>
class SplitTarget {
 public:
  using Place = SplitSpace<Scalar>;

  SplitTarget(Place& space, TargetRef<Scalar> target) : space_(space), target_(target) {}

  Index dim() const { return target_.dim(); }
  double trace() const { return target_.trace(); }
  std::uint64_t version() const { return target_.version(); }
  void apply(const typename Place::ConstView& y, const typename Place::View& out) const {
    through(y, out, [&](const auto& in, BlockView<Scalar> to) { target_.apply(in, to); });
  }

 protected:
  // What is in the output goes along: a target that adds to it is to be found out here too.
  template <class Product>
  void through(const typename Place::ConstView& in, const typename Place::View& out, Product product) const {
    Block<Scalar> whole = space_.gather(out);
    product(space_.gather(in), whole);
    space_.scatter(whole, out);
  }
  Place& space_;
  TargetRef<Scalar> target_;
};

template <Storage Scalar>
class SplitFactoredTarget : public SplitTarget<Scalar> {
 public:
  using Place = SplitSpace<Scalar>;
  using SplitTarget<Scalar>::SplitTarget;

  Index factor_cols() const { return this->target_.factor_cols(); }
  void apply_factor_transposed(const typename Place::ConstView& in, const typename Place::View& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor_transposed(x, to); });
  }
  void apply_factor(const typename Place::ConstView& in, const typename Place::View& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor(x, to); });
  }
};

template <Storage Scalar>
Result<Scalar> gathered(const SplitSpace<Scalar>& space, BasicResult<SplitSpace<Scalar>> split) {
  Result<Scalar> result;
  result.factor = space.gather(split.factor);
  result.trace = std::move(split.trace);
  for (const auto& iterate : split.iterates) result.iterates.push_back(space.gather(iterate));
  return result;
}

// Calls run(space, context) for the target in so many parts.
template <Storage Scalar, class Run>
auto in_parts(Index parts, TargetRef<Scalar> target, Run run) {
  SplitSpace<Scalar> space(parts);
  if (target.has_factor()) {
    const SplitFactoredTarget<Scalar> split(space, target);
    RunContext<SplitSpace<Scalar>> context(space, split);
    return run(space, context);
  }
  const SplitTarget<Scalar> split(space, target);
  RunContext<SplitSpace<Scalar>> context(space, split);
  return run(space, context);
}

template <Storage Scalar>
BasicOnStep<SplitSpace<Scalar>> with_whole_rows(const SplitSpace<Scalar>& space, const OnStep<Scalar>& on_step) {
  if (!on_step) return {};
  return [&space, on_step](const Step& step, const typename SplitSpace<Scalar>::ConstView& y) {
    return on_step(step, space.gather(y));
  };
}

template <Storage Scalar>
typename SplitSpace<Scalar>::Block scattered(SplitSpace<Scalar>& space, const ConstBlockView<Scalar>& whole) {
  auto block = space.make_block(whole.rows(), whole.cols());
  space.scatter(whole, block);
  return block;
}

std::string place_asked_for() {
  const char* place = std::getenv("ITSPACE_TEST_PLACE");
  return place != nullptr ? place : "host";
}

bool is_cuda() {
  static const bool cuda = place_asked_for() == "cuda";
  return cuda;
}

bool is_mpi() {
  static const bool mpi = place_asked_for() == "mpi";
  return mpi;
}

}  // namespace

Index parts_of_this_place() {
  static const Index parts = [] {
    const std::string text = place_asked_for();
    if (text == "host" || text == "cuda" || text == "mpi") return Index(0);
    if (text.rfind("split:", 0) == 0) return Index(std::stol(text.substr(6)));
    throw std::invalid_argument("ITSPACE_TEST_PLACE is '" + text + "'; it is host, cuda, mpi, or split:P");
  }();
  return parts;
}

template <Storage Scalar>
Result<Scalar> align_split(Index parts, TargetRef<Scalar> target,
                           const std::type_identity_t<ConstBlockView<Scalar>>& start, const AlignOptions& options,
                           const std::type_identity_t<OnStep<Scalar>>& on_step) {
  check_options(target.dim(), target.has_factor(), options);
  check_start_cols(start.cols(), target.dim());
  return in_parts<Scalar>(parts, target, [&](SplitSpace<Scalar>& space, auto& context) {
    return gathered<Scalar>(space, run_from(context, scattered<Scalar>(space, start), start.cols(), options,
                                            with_whole_rows<Scalar>(space, on_step)));
  });
}

// The root of a target is formed on the host alone.
template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                          const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  if (is_cuda() && options.route != Route::root) return align_on_cuda<Scalar>(target, start, options, on_step);
  if (is_mpi() && options.route != Route::root) return align_on_mpi<Scalar>(target, start, options, on_step);
  const Index parts = parts_of_this_place();
  if (parts == 0 || options.route == Route::root) return align<Scalar>(target, start, options, on_step);
  return align_split<Scalar>(parts, target, start, options, on_step);
}

template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                          const std::type_identity_t<OnStep<Scalar>>& on_step) {
  if (is_cuda() && options.route != Route::root) return align_on_cuda<Scalar>(target, rank, options, on_step);
  if (is_mpi() && options.route != Route::root) return align_on_mpi<Scalar>(target, rank, options, on_step);
  const Index parts = parts_of_this_place();
  if (parts == 0 || options.route == Route::root) return align<Scalar>(target, rank, options, on_step);
  check_options(target.dim(), target.has_factor(), options);
  return in_parts<Scalar>(parts, target, [&](SplitSpace<Scalar>& space, auto& context) {
    return gathered<Scalar>(space, run_from(context, make_random_start(context, rank, options.seed), rank, options,
                                            with_whole_rows<Scalar>(space, on_step)));
  });
}

template <Storage Scalar>
Evaluation<Scalar> evaluate_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                 Route route) {
  if (is_cuda() && route != Route::root) return evaluate_on_cuda<Scalar>(target, factor, route);
  if (is_mpi() && route != Route::root) return evaluate_on_mpi<Scalar>(target, factor, route);
  const Index parts = parts_of_this_place();
  if (parts == 0 || route == Route::root) return evaluate<Scalar>(target, factor, route);
  check_options(target.dim(), target.has_factor(), evaluation_options(route));
  return in_parts<Scalar>(parts, target, [&](SplitSpace<Scalar>& space, auto& context) {
    auto at = evaluate_at(context, scattered<Scalar>(space, factor), factor.cols(), route);
    Evaluation<Scalar> out;
    out.certificate = at.certificate;
    out.target_trace = at.target_trace;
    out.status = at.status;
    out.reason = at.reason;
    if (!failed(at.status)) out.image = space.gather(at.image);
    return out;
  });
}

template <Storage Scalar>
Barycenter<Scalar> barycenter_here(const std::vector<TargetRef<Scalar>>& targets, const Eigen::VectorXd& weights,
                                   const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                   const BarycenterOptions& options) {
  using Place = SplitSpace<Scalar>;
  const Index parts = parts_of_this_place();
  if (is_cuda() || parts == 0) return barycenter<Scalar>(targets, weights, start, options);
  Place space(parts);
  std::deque<SplitTarget<Scalar>> plain;  // their places in memory stay
  std::deque<SplitFactoredTarget<Scalar>> factored;
  std::vector<BasicTargetRef<Place>> split;
  for (const TargetRef<Scalar>& target : targets)
    split.push_back(target.has_factor() ? BasicTargetRef<Place>(factored.emplace_back(space, target))
                                        : BasicTargetRef<Place>(plain.emplace_back(space, target)));
  auto found = run_barycenter<Place>(space, split, make_barycenter_weights(weights, static_cast<Index>(targets.size())),
                                     scattered<Scalar>(space, start), start.cols(), options, {});
  Barycenter<Scalar> result;
  result.weights = found.weights;
  result.objectives = found.objectives;
  result.start_objectives = found.start_objectives;
  result.best_start = found.best_start;
  static_cast<Result<Scalar>&>(result) = gathered<Scalar>(space, std::move(found));
  return result;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                  \
  template Result<Scalar> align_split<Scalar>(Index, TargetRef<Scalar>,                                              \
                                              const std::type_identity_t<ConstBlockView<Scalar>>&,                   \
                                              const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);     \
  template Result<Scalar> align_here<Scalar>(TargetRef<Scalar>, const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                             const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);      \
  template Result<Scalar> align_here<Scalar>(TargetRef<Scalar>, Index, const AlignOptions&,                          \
                                             const std::type_identity_t<OnStep<Scalar>>&);                           \
  template Evaluation<Scalar> evaluate_here<Scalar>(TargetRef<Scalar>,                                               \
                                                    const std::type_identity_t<ConstBlockView<Scalar>>&, Route);     \
  template Barycenter<Scalar> barycenter_here<Scalar>(const std::vector<TargetRef<Scalar>>&, const Eigen::VectorXd&, \
                                                      const std::type_identity_t<ConstBlockView<Scalar>>&,           \
                                                      const BarycenterOptions&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::test
