// SPDX-License-Identifier: Apache-2.0
//
// Runs a campaign: itspace_campaign [COUNT [FIRST_SEED]], or itspace_campaign --only SEED for one case in words.
// Exit code 1 where anything was found.
#include "campaign.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace itspace::test;

struct Tally {
  std::array<long, fault_kinds> faults{};
  long cases = 0, steps = 0, certified = 0, early = 0, thrown = 0;
  std::uint64_t worst_rise_seed = 0, worst_objective_seed = 0;
  long rises_beyond_sums = 0;
  double worst_rise = 0, worst_objective = 0;
  std::vector<double> resolutions;
};

int one(std::uint64_t seed) {
  const Verdict verdict = run_case(seed, true);
  std::printf("%s\n", verdict.description.c_str());
  for (const Complaint& complaint : verdict.complaints)
    std::printf("  %s: %s\n", name(complaint.fault), complaint.what.c_str());
  return verdict.complaints.empty() ? 0 : 1;
}

int many(std::uint64_t first, long count) {
  constexpr long most_shown = 40;
  Tally tally;
  std::mutex mutex;
  std::atomic<long> next{0};
  long shown = 0;
  const auto work = [&] {
    for (long i = next++; i < count; i = next++) {
      const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
      Verdict verdict;
      std::string thrown;
      try {
        verdict = run_case(seed);
      } catch (const std::exception& error) {
        thrown = error.what();
      }
      const std::lock_guard lock(mutex);
      ++tally.cases;
      if (!thrown.empty()) {
        ++tally.thrown;
        std::printf("seed %llu threw: %s\n", static_cast<unsigned long long>(seed), thrown.c_str());
        continue;
      }
      tally.steps += verdict.steps;
      tally.certified += verdict.certified;
      tally.early += verdict.ended_early;
      if (verdict.worst_rise > tally.worst_rise) tally.worst_rise_seed = seed;
      tally.worst_rise = std::max(tally.worst_rise, verdict.worst_rise);
      tally.rises_beyond_sums += verdict.worst_rise > 10;
      if (verdict.worst_objective > tally.worst_objective) tally.worst_objective_seed = seed;
      tally.worst_objective = std::max(tally.worst_objective, verdict.worst_objective);
      if (verdict.median_resolution > 0) tally.resolutions.push_back(verdict.median_resolution);
      for (const Complaint& complaint : verdict.complaints) ++tally.faults[static_cast<std::size_t>(complaint.fault)];
      if (!verdict.complaints.empty() && shown++ < most_shown) {
        std::printf("%s\n", verdict.description.c_str());
        for (const Complaint& complaint : verdict.complaints)
          std::printf("  %s: %s\n", name(complaint.fault), complaint.what.c_str());
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();

  long wrong = tally.thrown;
  std::printf("\n%ld alignments (seeds %llu to %llu), %ld steps, %ld of them certified, %ld runs converged early\n",
              tally.cases, static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(first) + static_cast<unsigned long long>(count) - 1, tally.steps,
              tally.certified, tally.early);
  for (int i = 0; i < fault_kinds; ++i) {
    std::printf("  %-22s %ld\n", name(static_cast<Fault>(i)), tally.faults[static_cast<std::size_t>(i)]);
    wrong += tally.faults[static_cast<std::size_t>(i)];
  }
  std::printf("  %-22s %ld\n", "exception", tally.thrown);
  std::printf(
      "largest rise of a certified step: %.3g eps (tr Sigma + ||Y||^2 at both ends), seed %llu; above 10: %ld\n",
      tally.worst_rise, static_cast<unsigned long long>(tally.worst_rise_seed), tally.rises_beyond_sums);
  std::printf("largest error of an objective: %.3g of its resolution, seed %llu\n", tally.worst_objective,
              static_cast<unsigned long long>(tally.worst_objective_seed));
  if (!tally.resolutions.empty()) {
    std::sort(tally.resolutions.begin(), tally.resolutions.end());
    const auto at = [&](double share) {
      return tally.resolutions[static_cast<std::size_t>(share * static_cast<double>(tally.resolutions.size() - 1))];
    };
    std::printf("resolution in eps (tr Sigma + ||Y||^2): median %.3g, 90 %% %.3g, 99 %% %.3g\n", at(0.5), at(0.9),
                at(0.99));
  }
  std::printf("%s\n", wrong == 0 ? "nothing found" : "FOUND SOMETHING");
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--only") == 0) return one(std::strtoull(argv[2], nullptr, 10));
  const long count = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 20000;
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (count <= 0 || argc > 3) {
    std::fprintf(stderr, "usage: itspace_campaign [COUNT [FIRST_SEED]] | --only SEED\n");
    return 2;
  }
  return many(first, count);
}
