// SPDX-License-Identifier: Apache-2.0
//
// A line that says what a long run is doing. Only on a terminal, only once a run has lasted, and gone without a trace
// when the next line of the result is printed.
#pragma once

#include <chrono>
#include <string_view>

namespace itspace::cli {

inline constexpr long long_work = 2000;  // an eigenproblem beyond this dimension takes seconds

class Progress {
 public:
  explicit Progress(bool wanted);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shown at once: for one piece of work that is known to take long.
  void show(std::string_view text);
  // "step 3 of 20, about 40 s to go", once the run has lasted two seconds.
  void show_step(long done, long total, std::string_view what = "step");
  void clear();

 private:
  bool enabled_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace itspace::cli
