// SPDX-License-Identifier: Apache-2.0
//
// How a fused run (fused.hpp) is planned and launched, for the files that do so: of a dense Sigma, and of features.
#pragma once

#include "cuda/error.hpp"
#include "cuda/fused_launch.cuh"
#include "cuda/fused_steps.cuh"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace itspace::cuda::kernels {
namespace {

struct Memory {
  std::size_t y, sums, barrier, norms, parts, total;  // where each begins

  // y_values: of Y, with the rows beyond the last; part_bytes: what the product leaves.
  template <class T, int R>
  static Memory of(int blocks, std::size_t y_values, std::size_t part_bytes) {
    const auto round_up = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    Memory m{};
    m.sums = 2 * y_values * sizeof(T);
    m.barrier = m.sums + round_up(3 * sizeof(Sums<R>));
    m.norms = m.barrier + 256;
    m.parts = m.norms + round_up(2 * static_cast<std::size_t>(blocks) * norm_count * sizeof(double));
    m.total = m.parts + part_bytes;
    return m;
  }
};

// Clusters need free multiprocessors side by side, and a device may have fewer of these than
// its number of multiprocessors suggests: it is asked, and the product planned again for what it has. plan_for(limits).
template <class T, int R, class Of, class PlanFor>
typename Of::Plan make_plan(Limits limits, const PlanFor& plan_for) {
  typename Of::Plan plan = plan_for(limits);
  plan.fits = plan.fits && limits.major == 9;
  if (plan.cluster == 1 || !plan.fits) return plan;
  const FusedLaunch launch(plan.blocks, plan.cluster, plan.shared_bytes, nullptr);
  ask_for_shared_memory(fused_steps<T, R, Of>, plan.shared_bytes);
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, fused_steps<T, R, Of>, &launch.config), "asking for clusters");
  if (clusters * plan.cluster >= plan.blocks) return plan;
  limits.processors = clusters * plan.cluster;
  return plan_for(limits);
}

// Asking takes longer than a step: the last plan of a device is kept. is_same(plan): it is what plan_for would make.
template <class T, int R, class Of, class PlanFor, class IsSame>
typename Of::Plan plan_on_device(const PlanFor& plan_for, const IsSame& is_same) {
  static std::mutex guard;
  static std::map<int, typename Of::Plan> plans;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  const std::lock_guard<std::mutex> lock(guard);
  const auto known = plans.find(device);
  if (known != plans.end() && is_same(known->second)) return known->second;
  const typename Of::Plan plan = make_plan<T, R, Of>(limits_of_device(), plan_for);
  plans.insert_or_assign(device, plan);
  return plan;
}

[[maybe_unused]] std::size_t log_values(int steps) {
  return static_cast<std::size_t>(steps + 1) * log_scalars;
}

// `arguments`: what to multiply with, and how; the rest is filled in here. y_row_values: of a row of Y in memory.
template <class T, int R, class Of>
void launch_steps(cudaStream_t stream, const FusedJob<T>& job, const typename Of::Plan& plan, const Memory& places,
                  std::size_t y_row_values, Arguments<T, R, Of>& arguments, unsigned char* memory, double* log) {
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
  const std::size_t used = static_cast<std::size_t>(job.dim) / y_unit * y_unit * y_row_values * sizeof(T);
  if (used < places.sums / 2)
    for (T* y : arguments.y)
      check(cudaMemsetAsync(reinterpret_cast<unsigned char*>(y) + used, 0, places.sums / 2 - used, stream),
            "clearing rows");
  ask_for_shared_memory(fused_steps<T, R, Of>, plan.shared_bytes);
  const FusedLaunch launch(plan.blocks, plan.cluster, plan.shared_bytes, stream);
  check(cudaLaunchKernelEx(&launch.config, fused_steps<T, R, Of>, arguments), "launching the fused steps");
}

}  // namespace
}  // namespace itspace::cuda::kernels
