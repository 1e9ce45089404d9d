// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>

#include "core/barycenter_impl.hpp"
#include "core/require.hpp"
#include "core/truncation.hpp"

#include <cmath>

namespace itspace {

BarycenterWeights make_barycenter_weights(const Eigen::VectorXd& given, Index targets) {
  BarycenterWeights weights;
  if (given.size() == 0) {
    weights.shares = Eigen::VectorXd::Constant(targets, 1 / static_cast<double>(targets));
    return weights;
  }
  require(given.size() == targets, "there are ", given.size(), " weights and ", targets,
          " targets; give one weight for each target, in their order, or none for equal ones");
  for (Index i = 0; i < given.size(); ++i)
    require(std::isfinite(given(i)) && given(i) >= 0, "weight ", i, " (the first is 0) is ", given(i),
            "; weights must be finite and 0 or more");
  const double largest = given.maxCoeff();
  require(largest > 0, "all ", targets, " weights are 0; at least one target must count");
  // Scaled first: a sum of large weights may overflow.
  const Eigen::VectorXd scaled = given / largest;
  const double sum = scaled.sum();
  weights.shares = scaled / sum;
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  weights.normalised = !(std::abs(largest * sum - 1) <= rounding * static_cast<double>(targets));
  return weights;
}

void check_barycenter_options(const BarycenterOptions& options) {
  require(options.steps >= 0, "steps is ", options.steps, "; it must be 0 (evaluate the start only) or more");
  require(options.tolerance >= 0 && std::isfinite(options.tolerance), "tolerance is ", options.tolerance,
          "; the relative decrease to stop at must be 0 (never) or more");
  require(options.step_size.kind() != StepSize::Kind::line_search,
          "a line search takes a second pass over every target in each step, which a second step uses better; give an "
          "alpha between 0 and 2, or leave it out");
  require(options.subset >= 0, "subset is ", options.subset,
          "; the number of targets that move the factor together must be 0 (all) or more");
  require(options.starts >= 1, "starts is ", options.starts, "; at least one run must be made");
}

StepDoubt step_doubt(const SmallVector& images, const Basis& basis, const Certificate& certificate) {
  StepDoubt doubt;
  if (images.size() == 0) return doubt;
  const SmallVector lengths = direction_lengths(basis, certificate);
  for (Index i = 0; i < certificate.rank; ++i) {
    const double image = 2 * certificate.doubt(i) * images(i);
    if (!std::isfinite(image)) continue;
    doubt.at_y += image * lengths(i);
    doubt.per_length += image;
  }
  return doubt;
}

namespace {

template <Storage Scalar>
Barycenter<Scalar> run_on_host(std::span<const TargetRef<Scalar>> targets, const Eigen::VectorXd& weights,
                               const ConstBlockView<Scalar>* start, Index rank, const BarycenterOptions& options,
                               const OnStep<Scalar>& on_step) {
  require(!targets.empty(), "there is no target; a barycenter is that of one or more");
  const Index d = targets.front().dim();
  require(d >= 1, "the targets have dimension ", d, "; they must have at least one coordinate");
  for (std::size_t i = 1; i < targets.size(); ++i)
    require(targets[i].dim() == d, "target ", i, " (the first is 0) has dimension ", targets[i].dim(),
            " and the first has ", d, "; a barycenter is that of targets of one dimension");
  check_barycenter_options(options);
  if (start != nullptr) {
    require(start->rows() == d, "the start has ", start->rows(), " rows and the targets have dimension ", d,
            "; a start is a d x r factor of the targets' dimension");
    check_start_cols(rank, d);
  } else {
    check_rank(rank, d);
  }
  const BarycenterWeights shares = make_barycenter_weights(weights, static_cast<Index>(targets.size()));
  HostSpace<Scalar> space;
  return run_barycenter<HostSpace<Scalar>>(space, {targets.begin(), targets.end()}, shares,
                                           start != nullptr ? std::optional(Block<Scalar>(*start)) : std::nullopt, rank,
                                           options, on_step);
}

}  // namespace

template <Storage Scalar>
Barycenter<Scalar> barycenter(std::type_identity_t<std::span<const TargetRef<Scalar>>> targets,
                              const Eigen::VectorXd& weights, Index rank, const BarycenterOptions& options,
                              const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return run_on_host<Scalar>(targets, weights, nullptr, rank, options, on_step);
}

template <Storage Scalar>
Barycenter<Scalar> barycenter(std::type_identity_t<std::span<const TargetRef<Scalar>>> targets,
                              const Eigen::VectorXd& weights, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                              const BarycenterOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return run_on_host<Scalar>(targets, weights, &start, start.cols(), options, on_step);
}

template class BarycenterSolver<HostSpace<float>>;
template class BarycenterSolver<HostSpace<double>>;

#define ITSPACE_INSTANTIATE(Scalar)                                                                        \
  template Barycenter<Scalar> barycenter<Scalar>(std::type_identity_t<std::span<const TargetRef<Scalar>>>, \
                                                 const Eigen::VectorXd&, Index, const BarycenterOptions&,  \
                                                 const std::type_identity_t<OnStep<Scalar>>&);             \
  template Barycenter<Scalar> barycenter<Scalar>(                                                          \
      std::type_identity_t<std::span<const TargetRef<Scalar>>>, const Eigen::VectorXd&,                    \
      const std::type_identity_t<ConstBlockView<Scalar>>&, const BarycenterOptions&,                       \
      const std::type_identity_t<OnStep<Scalar>>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
