// SPDX-License-Identifier: Apache-2.0
//
// The default precision of runs on float32 files: float32, and once more in mixed precision (data float32, arithmetic
// double) as soon as a row shows that float32 does not resolve its objective, or where its squares overflow.
#pragma once

#include "input.hpp"

#include <itspace/trace.hpp>

#include <optional>
#include <string>

namespace itspace::cli {

// Looks at the rows of a run as they come.
class ResolutionWatch {
 public:
  // `gives_up`: a run whose objective is not resolved is worth nothing, because there is a better one to be had.
  explicit ResolutionWatch(bool gives_up) : gives_up_(gives_up) {}

  void see(const Step& step);
  void see_end(Status status) { overflowed_ = status == Status::not_finite; }
  bool given_up() const { return gives_up_ && (unresolved_ || overflowed_); }
  const std::optional<Step>& unresolved() const { return unresolved_; }  // the first such row

 private:
  bool gives_up_;
  bool overflowed_ = false;
  std::optional<Step> unresolved_;
};

// "float32 resolves W2^2 only to 3.1e+02 here, 1.9 times its value; ..." on stderr, or that numbers overflow.
void note_rerun(const std::optional<Step>& unresolved);
void note_unresolved(const Step& unresolved);

// Calls run.operator()<Scalar>(watch), Scalar being the type of blocks and arithmetic; what it returns counts unless
// the watch has given up. Says on stderr, unless `quiet`, that float32 did not do.
template <Storage Data, class Run>
auto in_enough_precision(Precision asked, bool quiet, Run run) {
  if constexpr (std::same_as<Data, float>) {
    if (asked != Precision::mixed) {
      ResolutionWatch watch(asked == Precision::automatic);
      auto outcome = run.template operator()<float>(watch);
      if (watch.given_up() && !quiet) note_rerun(watch.unresolved());
      if (!watch.given_up()) {
        if (watch.unresolved() && !quiet) note_unresolved(*watch.unresolved());
        return outcome;
      }
    }
  }
  ResolutionWatch none(false);
  return run.template operator()<double>(none);
}

// What a trace calls the precision of a run.
template <Storage Scalar, Storage Data>
void name_precision(Trace& trace) {
  if (!std::same_as<Scalar, Data>) trace.precision = "mixed";
}

}  // namespace itspace::cli
