// SPDX-License-Identifier: Apache-2.0
//
// The pool does each part once whoever calls, in a forked child too; the number of threads is what the machine, the
// container and the settings say.
#include "kernels/pool.hpp"

#include <itspace/threads.hpp>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

extern "C" {
int openblas_get_num_threads(void) __attribute__((weak));
void openblas_set_num_threads(int) __attribute__((weak));
}

namespace itspace::kernels {
namespace {

// Whether each of `parts` parts is done once.
bool does_each_once(Index parts) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(parts));
  run_parts(parts, [&](Index part) { ++done[static_cast<std::size_t>(part)]; });
  for (const auto& times : done)
    if (times != 1) return false;
  return true;
}

TEST(Pool, DoesEachPartOnce) {
  for (const Index threads : {1, 2, 5, 16}) {
    const ThreadScope scope(threads);
    for (const Index parts : {0, 1, 2, 3, 16, 100}) EXPECT_TRUE(does_each_once(parts)) << threads << ", " << parts;
  }
}

TEST(Pool, ServesManyCallersAtOnce) {
  std::atomic<bool> right = true;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([&] {
      const ThreadScope scope(3);
      for (int call = 0; call < 500; ++call) right = right && does_each_once(7);
    });
  for (auto& caller : callers) caller.join();
  EXPECT_TRUE(right);
}

TEST(Pool, APartUsesOneThread) {
  const ThreadScope scope(4);
  std::atomic<bool> alone = true;
  run_parts(4, [&](Index) { alone = alone && threads() == 1 && does_each_once(3); });
  EXPECT_TRUE(alone);
  EXPECT_EQ(threads(), 4);
}

// Whatever the pool does: a caller that does a lone part by itself would use all its threads in it.
TEST(Pool, AScopeMakesAPartOfAnyWork) {
  const ThreadScope threads_of_caller(4);
  run_parts(1, [](Index) { EXPECT_EQ(threads(), 4); });
  {
    const PartScope part;
    EXPECT_EQ(threads(), 1);
    { const PartScope nested; }
    EXPECT_TRUE(inside_part());
  }
  EXPECT_EQ(threads(), 4);
}

// GNU's OpenMP hangs here: fork copies the pool's memory and none of its threads.
TEST(Pool, WorksInAForkedChild) {
  const ThreadScope scope(4);
  ASSERT_TRUE(does_each_once(8));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(30);  // a child that hangs is ended, and found out below
    _exit(does_each_once(8) && does_each_once(8) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(does_each_once(8)) << "and the parent goes on";
}

// Signals are for the threads of the program: SIGTERM never interrupts a worker, and a fault of its own reaches it.
TEST(Pool, LeavesSignalsToOthers) {
  const ThreadScope scope(4);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> seen = false, right = true;
  for (int round = 0; round < 2000 && !seen; ++round)
    run_parts(64, 4, [&](Index) {
      if (std::this_thread::get_id() == caller) return;
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      right = right && sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGBUS) == 0;
      seen = true;
    });
  EXPECT_TRUE(right);
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the caller's own are as they were";
  if (!seen) GTEST_SKIP() << "no worker came to a part";
}

TEST(Threads, ScopesNestAndEnd) {
  const Index before = threads();
  {
    const ThreadScope outer(5);
    EXPECT_EQ(threads(), 5);
    {
      const ThreadScope inner(2);
      EXPECT_EQ(threads(), 2);
      std::thread([&] { EXPECT_EQ(threads(), before) << "another thread is not in the scope"; }).join();
    }
    EXPECT_EQ(threads(), 5);
    const ThreadScope none(0);
    EXPECT_EQ(threads(), 5);
  }
  EXPECT_EQ(threads(), before);
}

TEST(Threads, BlasHasOneInAScopeAndItsOwnAfterIt) {
  if (openblas_get_num_threads == nullptr) GTEST_SKIP() << "this BLAS does not tell";
  const int before = openblas_get_num_threads();
  {
    const ThreadScope outer(3);
    {
      const OneBlasThread one;
      EXPECT_EQ(openblas_get_num_threads(), 1);
      EXPECT_EQ(threads(), 3) << "ours are another number";
      { const OneBlasThread inner; }
      EXPECT_EQ(openblas_get_num_threads(), 1) << "as a decomposition leaves it that one of its parts has made";
    }
    EXPECT_EQ(openblas_get_num_threads(), 3);
  }
  {
    const OneBlasThread one;
    EXPECT_EQ(openblas_get_num_threads(), 1);
  }
  EXPECT_EQ(openblas_get_num_threads(), before);
}

// Decompositions begin and end scopes on whatever threads they are called from.
TEST(Threads, ScopesOnManyThreadsLeaveBlasItsNumber) {
  if (openblas_get_num_threads == nullptr || openblas_set_num_threads == nullptr)
    GTEST_SKIP() << "this BLAS does not tell";
  const int before = openblas_get_num_threads();
  openblas_set_num_threads(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller)
    callers.emplace_back([] {
      for (int k = 0; k < 20000; ++k) const OneBlasThread one;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(openblas_get_num_threads(), 3);
  openblas_set_num_threads(before);
}

TEST(Threads, TheProcessHasANumber) {
  const Index before = threads();
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  std::thread([] { EXPECT_EQ(threads(), 3); }).join();
  set_threads(0);
  EXPECT_EQ(threads(), before);
  EXPECT_THROW(set_threads(-1), std::invalid_argument);
  EXPECT_THROW(set_threads(5000), std::invalid_argument);
  EXPECT_THROW(ThreadScope(-2), std::invalid_argument);
  EXPECT_EQ(threads(), before);
}

// A folder that looks like /sys/fs/cgroup.
class Groups {
 public:
  Groups() : root_(std::filesystem::path(testing::TempDir()) / ("groups" + std::to_string(getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~Groups() { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  double quota() const { return cpu_quota(root_ / "membership", root_); }

 private:
  std::filesystem::path root_;
};

TEST(Threads, TheQuotaOfVersion2) {
  const Groups groups;
  groups.write("membership", "0::/user/job\n");
  EXPECT_EQ(groups.quota(), 0);
  groups.write("user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(groups.quota(), 0);
  groups.write("user/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(groups.quota(), 1.5);
  groups.write("user/cpu.max", "50000 100000\n");
  EXPECT_EQ(groups.quota(), 0.5) << "the group above limits too";
}

// Inside a container the files of its own group are at the root, whatever the path says.
TEST(Threads, TheQuotaOfAContainer) {
  const Groups groups;
  groups.write("membership", "0::/../docker/abc\n");
  groups.write("cpu.max", "200000 100000\n");
  EXPECT_EQ(groups.quota(), 2);
}

TEST(Threads, TheQuotaOfVersion1) {
  const Groups groups;
  groups.write("membership", "5:memory:/box\n4:cpu,cpuacct:/box\n");
  groups.write("cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups.quota(), 0);
  groups.write("cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(groups.quota(), 3);
}

}  // namespace
}  // namespace itspace::kernels
