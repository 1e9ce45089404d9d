// SPDX-License-Identifier: Apache-2.0
#include "cuda/fused.hpp"

#include "cuda/fused_plan.cuh"
#include "cuda/resident.hpp"

namespace itspace::cuda::kernels {
namespace {

template <class T, int R, Reads reads>
using PlanType = typename ProductOf<T, R, reads>::Plan;

template <class T, int R, Reads reads>
PlanType<T, R, reads> dense_plan(int dim) {
  using Of = ProductOf<T, R, reads>;
  // W and Y of a block's rows lie before the stages.
  return plan_on_device<T, R, Of>(
      [&](const Limits& limits) {
        return PlanType<T, R, reads>{dim, limits, sizeof(Shared<T, R, Of>), 2 * R * sizeof(T), true};
      },
      [&](const PlanType<T, R, reads>& plan) { return plan.layout.dim == dim; });
}
template <class T, int R, class Plan>
Memory places_for(const Plan& plan, int dim) {
  return Memory::of<T, R>(plan.blocks, padded_rows(dim) * R * Plan::y_values, plan.part_values * sizeof(T));
}

// Where half of Sigma is read.
template <class T>
bool reads_half(int dim) {
  return dim >= least_half_dim<T> && dense_plan<T, half_rank, Reads::half>(dim).fits;
}

template <class T, int R, Reads reads>
FusedPlan plan_with(int dim, int steps) {
  const auto plan = dense_plan<T, R, reads>(dim);
  if (!plan.fits) return {};
  return {true, places_for<T, R>(plan, dim).total, log_values(steps)};
}

template <class T, int R, Reads reads>
bool launch_with(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log) {
  const auto plan = dense_plan<T, R, reads>(job.dim);
  const Memory places = places_for<T, R>(plan, job.dim);
  Arguments<T, R, ProductOf<T, R, reads>> arguments{};
  if (!describe_sigma(job.sigma, job.stride, job.dim, plan.box, &arguments.sigma)) return false;
  arguments.layout = plan.layout;
  if constexpr (reads == Reads::half) {
    arguments.layout.parts = memory + places.parts;
    arguments.layout.products = job.steps + 1;
  }
  launch_steps(stream, job, plan, places, R * plan.y_values, arguments, memory, log);
  return true;
}

}  // namespace

template <class T>
FusedPlan plan_fused(int dim, int rank, int steps) {
  if constexpr (std::is_same_v<T, float>)
    if (resident_is_possible(dim, rank)) return {true, resident_memory_bytes(), log_values(steps)};
  if (rank > 16) return plan_with<T, 32, Reads::all>(dim, steps);
  return reads_half<T>(dim) ? plan_with<T, 16, Reads::half>(dim, steps) : plan_with<T, 16, Reads::all>(dim, steps);
}
template <class T>
bool launch_fused(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log) {
  if constexpr (std::is_same_v<T, float>)
    if (resident_is_possible(job.dim, job.rank)) return launch_resident(stream, job, memory, log);
  if (job.rank > 16) return launch_with<T, 32, Reads::all>(stream, job, memory, log);
  return reads_half<T>(job.dim) ? launch_with<T, 16, Reads::half>(stream, job, memory, log)
                                : launch_with<T, 16, Reads::all>(stream, job, memory, log);
}
std::vector<FusedRow> read_fused(const double* log, int steps) {
  std::vector<FusedRow> rows;
  for (int k = 0; k <= steps; ++k) {
    const double* at = log + static_cast<std::size_t>(k) * log_scalars;
    if (at[12] == static_cast<double>(Ended::no)) break;
    FusedRow row;
    row.y_squared = at[0];
    row.b_squared = at[1];
    row.difference_squared = at[2];
    row.nuclear_norm = at[3];
    row.orthogonality = at[4];
    row.asymmetry = at[5];
    row.root_norm_squared = at[6];
    row.root_trace = at[7];
    row.g_norm = at[8];
    row.target_norm = at[9];
    row.longest_squared = at[10];
    row.products = static_cast<int>(at[11]);
    row.certifiable = at[12] == static_cast<double>(Ended::stepped);
    row.objective = at[13];
    row.doubtful_image = at[14];
    rows.push_back(row);
  }
  return rows;
}

template FusedPlan plan_fused<float>(int, int, int);
template FusedPlan plan_fused<double>(int, int, int);
template bool launch_fused(cudaStream_t, const FusedJob<float>&, unsigned char*, double*);
template bool launch_fused(cudaStream_t, const FusedJob<double>&, unsigned char*, double*);

}  // namespace itspace::cuda::kernels
