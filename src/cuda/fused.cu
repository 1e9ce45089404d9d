// SPDX-License-Identifier: Apache-2.0
#include "cuda/fused.hpp"

#include "cuda/error.hpp"
#include "cuda/fused_launch.cuh"
#include "cuda/fused_steps.cuh"
#include "cuda/resident.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace itspace::cuda::kernels {
namespace {

// W and Y of a block's rows lie before the stages.
template <class T, int R, Reads reads>
PlanType<T, R, reads> product_plan(int dim, const Limits& limits) {
  return {dim, limits, sizeof(Shared<T, R, reads>), 2 * R * sizeof(T), true};
}

struct Memory {
  std::size_t y, sums, barrier, norms, parts, total;  // where each begins

  template <class T, int R, class Plan>
  static Memory of(const Plan& plan, int dim) {
    const auto round_up = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    Memory m{};
    m.sums = 2 * padded_rows(dim) * R * Plan::y_values * sizeof(T);
    m.barrier = m.sums + round_up(3 * sizeof(Sums<R>));
    m.norms = m.barrier + 256;
    m.parts = m.norms + round_up(2 * static_cast<std::size_t>(plan.blocks) * norm_count * sizeof(double));
    m.total = m.parts + plan.part_values * sizeof(T);
    return m;
  }
};

// Clusters need free multiprocessors side by side, and a device may have fewer of these than
// its number of multiprocessors suggests: it is asked, and the product planned again for what it has.
template <class T, int R, Reads reads>
PlanType<T, R, reads> make_plan(int dim, Limits limits) {
  auto plan = product_plan<T, R, reads>(dim, limits);
  plan.fits = plan.fits && limits.major == 9;
  if (plan.cluster == 1 || !plan.fits) return plan;
  const FusedLaunch launch(plan.blocks, plan.cluster, plan.shared_bytes, nullptr);
  ask_for_shared_memory(fused_steps<T, R, reads>, plan.shared_bytes);
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, fused_steps<T, R, reads>, &launch.config), "asking for clusters");
  if (clusters * plan.cluster >= plan.blocks) return plan;
  limits.processors = clusters * plan.cluster;
  return product_plan<T, R, reads>(dim, limits);
}

// Asking takes longer than a step: the last plan of a device is kept.
template <class T, int R, Reads reads>
PlanType<T, R, reads> plan_on_device(int dim) {
  static std::mutex guard;
  static std::map<int, PlanType<T, R, reads>> plans;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  const std::lock_guard<std::mutex> lock(guard);
  const auto known = plans.find(device);
  if (known != plans.end() && known->second.layout.dim == dim) return known->second;
  const auto plan = make_plan<T, R, reads>(dim, limits_of_device());
  plans.insert_or_assign(device, plan);
  return plan;
}

// Where half of Sigma is read.
template <class T>
bool reads_half(int dim) {
  return dim >= least_half_dim<T> && plan_on_device<T, half_rank, Reads::half>(dim).fits;
}

template <class T, int R, Reads reads>
FusedPlan plan_with(int dim, int steps) {
  const auto plan = plan_on_device<T, R, reads>(dim);
  if (!plan.fits) return {};
  return {true, Memory::of<T, R>(plan, dim).total, static_cast<std::size_t>(steps + 1) * log_scalars};
}

template <class T, int R, Reads reads>
bool launch_with(cudaStream_t stream, const FusedJob<T>& job, unsigned char* memory, double* log) {
  const auto plan = plan_on_device<T, R, reads>(job.dim);
  const Memory places = Memory::of<T, R>(plan, job.dim);
  Arguments<T, R, reads> arguments{};
  if (!describe_sigma(job.sigma, job.stride, job.dim, plan.box, &arguments.sigma)) return false;
  arguments.layout = plan.layout;
  if constexpr (reads == Reads::half) {
    arguments.layout.parts = memory + places.parts;
    arguments.layout.products = job.steps + 1;
  }
  arguments.rank = job.rank;
  arguments.steps = job.steps;
  arguments.most_rows = plan.most_rows;
  arguments.start = job.start;
  arguments.start_stride = job.start_stride;
  arguments.best = job.best;
  arguments.best_stride = job.best_stride;
  arguments.y[0] = reinterpret_cast<T*>(memory);
  arguments.y[1] = reinterpret_cast<T*>(memory + places.sums / 2);
  arguments.sums = reinterpret_cast<Sums<R>*>(memory + places.sums);
  arguments.barrier = reinterpret_cast<unsigned*>(memory + places.barrier);
  arguments.partial_norms = reinterpret_cast<double*>(memory + places.norms);
  arguments.log = log;
  const double growth = job.alpha <= 1 ? 1 : job.alpha / (2 - job.alpha);
  arguments.growth = growth * growth;
  arguments.alpha = job.alpha;
  arguments.trace = job.trace;
  arguments.least_norm = job.trace / std::sqrt(static_cast<double>(job.dim));
  arguments.polynomials.count = std::min(job.polynomial_count, most_fused_polynomials);
  std::copy_n(job.polynomials, arguments.polynomials.count, arguments.polynomials.of);
  for (int k = 0; k <= job.steps; ++k) log[static_cast<std::size_t>(k) * log_scalars + 12] = 0;

  check(cudaMemsetAsync(memory + places.sums, 0, places.norms - places.sums, stream), "clearing sums");
  // Rows of Y beyond the last are zeros.
  const std::size_t used = static_cast<std::size_t>(job.dim) / y_unit * y_unit * R * plan.y_values * sizeof(T);
  if (used < places.sums / 2)
    for (T* y : arguments.y)
      check(cudaMemsetAsync(reinterpret_cast<unsigned char*>(y) + used, 0, places.sums / 2 - used, stream),
            "clearing rows");
  ask_for_shared_memory(fused_steps<T, R, reads>, plan.shared_bytes);
  const FusedLaunch launch(plan.blocks, plan.cluster, plan.shared_bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, fused_steps<T, R, reads>, arguments), "launching the fused steps");
  return true;
}

}  // namespace

template <class T>
FusedPlan plan_fused(int dim, int rank, int steps) {
  if constexpr (std::is_same_v<T, float>)
    if (resident_is_possible(dim, rank))
      return {true, resident_memory_bytes(), static_cast<std::size_t>(steps + 1) * log_scalars};
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
