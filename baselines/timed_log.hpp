// SPDX-License-Identifier: Apache-2.0
//
// The clocks of a run and its rows, so that no method keeps time by itself.
#pragma once

#include "baselines/timed_result.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace itspace::baselines {

class TimedLog {
 public:
  TimedLog(Index dim, Index rank, std::string solver, OnStep<double> on_step);

  // Run `work` on one of the clocks and hand back what it returns.
  template <class Work>
  auto preprocessing(Work&& work) {
    return timed(timed_.timing.preprocessing_seconds, std::forward<Work>(work));
  }
  template <class Work>
  auto update(Work&& work) {
    return timed(update_, std::forward<Work>(work));
  }
  template <class Work>
  auto projection(Work&& work) {
    return timed(projection_, std::forward<Work>(work));
  }

  void add_preprocessing(double seconds) { timed_.timing.preprocessing_seconds += seconds; }
  void count_check() { ++timed_.timing.checks; }
  Index& passes() { return passes_; }

  // Writes the row of the iterate just made; false where on_step asked to stop. The start is not on any clock:
  // report it before anything is timed.
  bool report(Block<double> factor, double step_size = not_a_number);

  TimedResult finish(double target_trace);

 private:
  // Adds the time until it goes out of scope, whether the work returned or threw.
  class Stopwatch {
   public:
    explicit Stopwatch(double& total) : total_(total) {}
    ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

   private:
    double& total_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  template <class Work>
  auto timed(double& total, Work&& work) {
    const Stopwatch watch(total);
    return std::forward<Work>(work)();
  }

  TimedResult timed_;
  OnStep<double> on_step_;
  double update_ = 0, projection_ = 0;
  Index passes_ = 0;
};

}  // namespace itspace::baselines
