// SPDX-License-Identifier: Apache-2.0
#include "cuda/resident.hpp"

#include "cuda/fused_launch.cuh"
#include "cuda/resident_steps.cuh"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace itspace::cuda::kernels {
namespace {

struct ResidentPlan {
  int dim, blocks, boxes_per_block;
  std::size_t shared_bytes;
  bool possible = false;

  explicit ResidentPlan(int of_dim) : dim(of_dim) {
    const auto up = [](int count, int size) { return (count + size - 1) / size; };
    blocks = cluster_blocks * up(dim, resident_pass_rows);
    boxes_per_block = up(up(dim, box_columns), cluster_blocks);
    shared_bytes = static_cast<std::size_t>(boxes_per_block) * resident_pass_rows * box_columns * sizeof(float) +
                   sizeof(ResidentShared);
  }
};

ResidentPlan make_plan(int dim) {
  ResidentPlan plan(dim);
  const Limits limits = limits_of_device();
  if (limits.major != 9 || plan.blocks > std::min(limits.processors, resident_most_blocks) ||
      plan.boxes_per_block > resident_boxes_of_warp * cluster_warps ||
      plan.shared_bytes > static_cast<std::size_t>(limits.shared_bytes))
    return plan;
  // As much as there is: other threads may have other plans.
  ask_for_shared_memory(resident_steps, static_cast<std::size_t>(limits.shared_bytes));
  // Clusters need free multiprocessors side by side, and a device may have fewer of these than its number of
  // multiprocessors suggests.
  const FusedLaunch launch(plan.blocks, cluster_blocks, plan.shared_bytes, nullptr);
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, resident_steps, &launch.config), "asking for clusters");
  plan.possible = clusters * cluster_blocks >= plan.blocks;
  return plan;
}

// Asking takes longer than a step: the last plan of a device is kept.
ResidentPlan plan_on_device(int dim) {
  static std::mutex guard;
  static std::map<int, ResidentPlan> plans;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  const std::lock_guard<std::mutex> lock(guard);
  const auto known = plans.find(device);
  if (known != plans.end() && known->second.dim == dim) return known->second;
  const ResidentPlan plan = make_plan(dim);
  plans.insert_or_assign(device, plan);
  return plan;
}

}  // namespace

bool resident_is_possible(int dim, int rank) {
  return rank <= resident_rank && plan_on_device(dim).possible;
}

std::size_t resident_memory_bytes() {
  return sizeof(Spoken);
}

bool launch_resident(cudaStream_t stream, const FusedJob<float>& job, unsigned char* memory, double* log) {
  const ResidentPlan plan = plan_on_device(job.dim);
  ResidentArguments arguments{};
  if (!describe_sigma(job.sigma, job.stride, job.dim, {box_columns, resident_pass_rows, true}, &arguments.sigma))
    return false;
  arguments.dim = job.dim;
  arguments.boxes_per_block = plan.boxes_per_block;
  arguments.rank = job.rank;
  arguments.steps = job.steps;
  arguments.start = job.start;
  arguments.start_stride = job.start_stride;
  arguments.best = job.best;
  arguments.best_stride = job.best_stride;
  arguments.spoken = reinterpret_cast<Spoken*>(memory);
  arguments.log = log;
  const double growth = job.alpha <= 1 ? 1 : job.alpha / (2 - job.alpha);
  arguments.growth = growth * growth;
  arguments.alpha = job.alpha;
  arguments.trace = job.trace;
  arguments.least_norm = job.trace / std::sqrt(static_cast<double>(job.dim));
  arguments.polynomials = *job.lists;
  for (int k = 0; k <= job.steps; ++k) log[static_cast<std::size_t>(k) * log_scalars + 12] = 0;
  const FusedLaunch launch(plan.blocks, cluster_blocks, plan.shared_bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, resident_steps, arguments), "launching the fused steps");
  return true;
}

}  // namespace itspace::cuda::kernels
