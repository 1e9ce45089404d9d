// SPDX-License-Identifier: Apache-2.0
#include "resolution.hpp"

#include "text.hpp"

#include <fmt/format.h>

namespace itspace::cli {

namespace {

std::string finding(const Step& step) {
  const double share = step.resolution / step.objective;
  const std::string part = !(step.objective > 0) ? "more than its value"
                           : share >= 1          ? fmt::format("{:.2g} times its value", share)
                                                 : percent(share) + " of its value";
  return fmt::format("float32 resolves W2^2 only to {:.1e} here, {}", step.resolution, part);
}

constexpr auto mixed_precision = "mixed precision (data float32, arithmetic double)";

}  // namespace

void ResolutionWatch::see(const Step& step) {
  if (!unresolved_ && itspace::unresolved(step)) unresolved_ = step;
}

void note_rerun(const std::optional<Step>& unresolved) {
  print_note(fmt::format("{}; running in {}", unresolved ? finding(*unresolved) : "numbers overflow in float32 here",
                         mixed_precision));
}

void note_unresolved(const Step& unresolved) {
  print_note(fmt::format("warning: {}, so the objectives are not known to 1 %; --precision mixed runs in {}",
                         finding(unresolved), mixed_precision));
}

}  // namespace itspace::cli
