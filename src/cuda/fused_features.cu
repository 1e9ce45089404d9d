// SPDX-License-Identifier: Apache-2.0
//
// The fused run (fused.hpp) of features, in float.
#include "cuda/fused_plan.cuh"

#include <type_traits>

namespace itspace::cuda::kernels {
namespace {

constexpr int R = features_rank;

template <int Boxes>
FeaturesPlan<Boxes> features_plan(int dim, Index samples, int steps) {
  using Of = ProductOfFeatures<Boxes>;
  // W and Y of a block's rows lie before the stages. The last iterate is evaluated, too.
  return plan_on_device<float, R, Of>(
      [&](const Limits& limits) {
        return FeaturesPlan<Boxes>(dim, samples, steps + 1, limits, sizeof(Shared<float, R, Of>),
                                   2 * R * sizeof(float));
      },
      [&](const FeaturesPlan<Boxes>& plan) {
        return plan.layout.dim == dim && plan.layout.samples == samples && plan.layout.sweeps == steps + 1;
      });
}
template <int Boxes>
Memory places_for(const FeaturesPlan<Boxes>& plan, int dim) {
  const std::size_t rows = std::max(padded_rows(dim), static_cast<std::size_t>(plan.columns()));
  return Memory::of<float, R>(plan.blocks, rows * R, plan.partial_bytes() + plan.delta_bytes());
}

template <int Boxes>
FusedPlan plan_with(int dim, Index samples, int steps) {
  const FeaturesPlan<Boxes> plan = features_plan<Boxes>(dim, samples, steps);
  if (!plan.fits) return {};
  return {true, places_for(plan, dim).total, log_values(steps)};
}

template <int Boxes>
bool launch_with(cudaStream_t stream, const FusedJob<float>& job, const FeaturesTerms<float>& terms,
                 unsigned char* memory, double* log) {
  const FeaturesPlan<Boxes> plan = features_plan<Boxes>(job.dim, terms.samples, job.steps);
  const Memory places = places_for(plan, job.dim);
  Arguments<float, R, ProductOfFeatures<Boxes>> arguments{};
  if (terms.scale == nullptr) return false;
  if (!describe_rows(job.sigma, job.stride, static_cast<std::size_t>(terms.samples), job.dim, plan.box,
                     &arguments.sigma))
    return false;
  arguments.layout = plan.layout_for(terms, memory + places.parts);
  launch_steps(stream, job, plan, places, std::size_t(R), arguments, memory, log);
  return true;
}

}  // namespace

template <class T>
FusedPlan plan_fused_features(int dim, Index samples, int rank, int steps) {
  if constexpr (std::is_same_v<T, float>) {
    if (rank <= R)
      return with_boxes(features_shape(dim).boxes,
                        [&](auto boxes) { return plan_with<boxes.value>(dim, samples, steps); });
  }
  return {};
}
template <class T>
bool launch_fused_features(cudaStream_t stream, const FusedJob<T>& job, const FeaturesTerms<T>& terms,
                           unsigned char* memory, double* log) {
  if constexpr (std::is_same_v<T, float>)
    return with_boxes(features_shape(job.dim).boxes,
                      [&](auto boxes) { return launch_with<boxes.value>(stream, job, terms, memory, log); });
  return false;
}

template FusedPlan plan_fused_features<float>(int, Index, int, int);
template FusedPlan plan_fused_features<double>(int, Index, int, int);
template bool launch_fused_features(cudaStream_t, const FusedJob<float>&, const FeaturesTerms<float>&, unsigned char*,
                                    double*);
template bool launch_fused_features(cudaStream_t, const FusedJob<double>&, const FeaturesTerms<double>&, unsigned char*,
                                    double*);

}  // namespace itspace::cuda::kernels
