// SPDX-License-Identifier: Apache-2.0
//
// "No block is allocated inside the solver loop": malloc itself is watched between the first and the last on_step.
#include <itspace/itspace.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<bool> watching{false};
std::atomic<std::size_t> block_bytes{0};
std::atomic<int> block_allocations{0};
std::atomic<bool> next_allocation_fails{false};

// A block of ours: large, and not asked for by BLAS, which allocates the queue of its threads anew in each product.
void count(std::size_t size, void* caller) {
  if (!watching || size < block_bytes) return;
  Dl_info from{};
  const bool known = dladdr(caller, &from) != 0 && from.dli_fname != nullptr;
  if (known && std::strstr(from.dli_fname, "blas") != nullptr) return;
  ++block_allocations;
}

}  // namespace

extern "C" {
void* malloc(std::size_t size) {
  if (next_allocation_fails.exchange(false)) return nullptr;
  count(size, __builtin_return_address(0));
  return __libc_malloc(size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  if (next_allocation_fails.exchange(false)) return nullptr;
  count(size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  count(size, __builtin_return_address(0));
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}

namespace itspace {
namespace {

constexpr Index dim = 16384, samples = 20, rank = 8, steps = 6;

template <Storage Scalar, Storage Data = Scalar>
int allocations_of(const AlignOptions& options, bool rank_deficient_start) {
  Block<Data> features(samples, dim);
  Random(1).fill_normal<Data>(features);
  const FeaturesTarget<Scalar, Data> target(features);
  Block<Scalar> start(dim, rank);
  Random(2).fill_normal<Scalar>(start);
  if (rank_deficient_start) start.rightCols(2).setZero();
  block_bytes = static_cast<std::size_t>(dim) * sizeof(Scalar);  // even one column counts
  block_allocations = 0;
  // Scratch that belongs to the thread is allocated by the first pass, before the first on_step.
  align<Scalar>(target, start, options, [&](const Step& step, const ConstBlockView<Scalar>&) {
    watching = step.index < options.steps;
    return StepAction::proceed;
  });
  watching = false;
  return block_allocations;
}

TEST(Allocations, TheWatchSeesABlock) {
  block_bytes = 1000;
  block_allocations = 0;
  watching = true;
  Block<double> block(1000, 2);
  block.setZero();
  watching = false;
  EXPECT_GT(block_allocations, 0) << block.sum();
}

TEST(Allocations, NoBlockInTheLoop) {
  for (const Route route : {Route::automatic, Route::qr, Route::gram, Route::factor}) {
    EXPECT_EQ(allocations_of<float>({.steps = steps, .route = route}, false), 0) << name(route);
    EXPECT_EQ(allocations_of<double>({.steps = steps, .route = route}, false), 0) << name(route);
    const int mixed = allocations_of<double, float>({.steps = steps, .route = route}, false);
    EXPECT_EQ(mixed, 0) << name(route);
  }
}

TEST(Allocations, NoBlockInTheLoopWithLineSearchProbeAndCompletion) {
  EXPECT_EQ(allocations_of<float>({.steps = steps, .step_size = StepSize::line_search()}, false), 0);
  EXPECT_EQ(allocations_of<float>({.steps = steps, .probe = true}, false), 0);
  EXPECT_EQ(allocations_of<float>({.steps = steps}, true), 0);
}

// A batch asks whether to stop once, before each problem, and at each of its three iterates.
TEST(Allocations, AProblemThatFindsNoMemoryIsNoOthersBusiness) {
  constexpr Index count = 5, small = 6;
  Block<double> sigma(count * small, small), start(count * small, 2);
  for (Index i = 0; i < count; ++i) sigma.middleRows(i * small, small).setIdentity();
  Random(3).fill_normal<double>(start);
  int asked = 0;
  BatchOptions options;
  options.should_stop = [&] {
    if (asked++ == 1 + 2 * 4) next_allocation_fails = true;
    return false;
  };
  const ThreadScope one(1);
  const auto batch =
      align_batch<double>({sigma.data(), count, small, small}, {start.data(), count, small, 2}, {.steps = 2}, options);
  for (Index i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(batch.status[at].has_value(), i != 2) << i;
    EXPECT_EQ(batch.certified[at] != 0, i != 2) << i;
    EXPECT_EQ(batch.reasons[at], i != 2 ? "" : "memory ran out") << i;
  }
  EXPECT_EQ(batch.factor(2), start.middleRows(2 * small, small));
}

}  // namespace
}  // namespace itspace
