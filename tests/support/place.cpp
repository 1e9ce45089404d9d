// SPDX-License-Identifier: Apache-2.0
#include "place.hpp"

#include "core/align_impl.hpp"
#include "core/barycenter_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/ritz_solver_impl.hpp"
#include "fetching_place.hpp"
#include "split_space.hpp"

#include <cstdlib>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

namespace itspace::test {
namespace {

template <Storage ScalarType>
class InParts {
 public:
  using Scalar = ScalarType;
  using Space = SplitSpace<Scalar>;

  explicit InParts(Index parts) : space_(std::make_shared<Space>(parts)) {}

  Space& space() const { return *space_; }
  Block<Scalar> fetch(const typename Space::ConstView& from) const { return space_->gather(from); }
  void put(const Block<Scalar>& all, const typename Space::View& to) const { space_->scatter(all, to); }
  typename Space::Block scattered(const ConstBlockView<Scalar>& all) const {
    auto block = space_->make_block(all.rows(), all.cols());
    put(all, block);
    return block;
  }
  Result<Scalar> gathered(BasicResult<Space> split) const {
    Result<Scalar> result;
    result.factor = fetch(split.factor);
    result.trace = std::move(split.trace);
    for (const auto& iterate : split.iterates) result.iterates.push_back(fetch(iterate));
    return result;
  }

  template <class T>
  Result<Scalar> align(const T& target, const ConstBlockView<Scalar>& start, const AlignOptions& options,
                       const BasicOnStep<Space>& on_step) const {
    const BasicTargetRef<Space> ref(target);
    check_run(ref, start.rows(), start.cols(), options);
    RunContext<Space> context(*space_, ref);
    return gathered(run_from(context, scattered(start), start.cols(), options, on_step));
  }
  template <class T>
  Result<Scalar> align(const T& target, Index rank, const AlignOptions& options,
                       const BasicOnStep<Space>& on_step) const {
    const BasicTargetRef<Space> ref(target);
    check_run(ref, rank, options);
    RunContext<Space> context(*space_, ref);
    return gathered(run_from(context, make_random_start(context, rank, options.seed), rank, options, on_step));
  }
  template <class T>
  BasicEvaluation<Space> evaluate(const T& target, const ConstBlockView<Scalar>& factor, Route route) const {
    const BasicTargetRef<Space> ref(target);
    check_evaluation(ref, factor.rows(), factor.cols(), route);
    RunContext<Space> context(*space_, ref);
    return evaluate_at(context, scattered(factor), factor.cols(), route);
  }

 private:
  std::shared_ptr<Space> space_;
};

std::string place_asked_for() {
  const char* place = std::getenv("ITSPACE_TEST_PLACE");
  return place != nullptr ? place : "host";
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
  return FetchingPlace(InParts<Scalar>(parts)).align(target, start, options, on_step);
}

namespace {

// Where runs by that route are made; null: on the host, which alone forms the root of a target.
template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> place_for(Route route) {
  const std::string asked = place_asked_for();
  const Index parts = parts_of_this_place();
  if (route == Route::root) return nullptr;
  if (asked == "cuda") return make_cuda_place<Scalar>();
  if (asked == "mpi") return make_mpi_place<Scalar>();
  if (parts == 0) return nullptr;
  return std::make_unique<FetchingPlace<InParts<Scalar>>>(InParts<Scalar>(parts));
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                          const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const auto place = place_for<Scalar>(options.route);
  return place ? place->align(target, start, options, on_step) : align<Scalar>(target, start, options, on_step);
}

template <Storage Scalar>
Result<Scalar> align_here(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                          const std::type_identity_t<OnStep<Scalar>>& on_step) {
  const auto place = place_for<Scalar>(options.route);
  return place ? place->align(target, rank, options, on_step) : align<Scalar>(target, rank, options, on_step);
}

template <Storage Scalar>
Evaluation<Scalar> evaluate_here(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                 Route route) {
  const auto place = place_for<Scalar>(route);
  return place ? place->evaluate(target, factor, route) : evaluate<Scalar>(target, factor, route);
}

template <Storage Scalar>
Barycenter<Scalar> barycenter_here(const std::vector<TargetRef<Scalar>>& targets, const Eigen::VectorXd& weights,
                                   const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                   const BarycenterOptions& options) {
  using Place = InParts<Scalar>;
  const Index parts = parts_of_this_place();
  if (parts == 0) return barycenter<Scalar>(targets, weights, start, options);
  const Place place(parts);
  std::deque<FetchedTarget<Place>> plain;  // their places in memory stay
  std::deque<FetchedFactoredTarget<Place>> factored;
  std::vector<BasicTargetRef<SplitSpace<Scalar>>> split;
  for (const TargetRef<Scalar>& target : targets)
    split.push_back(target.has_factor() ? BasicTargetRef<SplitSpace<Scalar>>(factored.emplace_back(place, target))
                                        : BasicTargetRef<SplitSpace<Scalar>>(plain.emplace_back(place, target)));
  auto found = run_barycenter<SplitSpace<Scalar>>(place.space(), split,
                                                  make_barycenter_weights(weights, static_cast<Index>(targets.size())),
                                                  place.scattered(start), start.cols(), options, {});
  Barycenter<Scalar> result;
  result.weights = found.weights;
  result.objectives = found.objectives;
  result.start_objectives = found.start_objectives;
  result.best_start = found.best_start;
  static_cast<Result<Scalar>&>(result) = place.gathered(std::move(found));
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
