// SPDX-License-Identifier: Apache-2.0
//
// The progress line.
#include "progress.hpp"

#include "text.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace itspace::cli {

Progress::Progress(bool wanted) : enabled_(wanted && isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::string_view text) {
  if (!enabled_) return;
  print_progress(fmt::format("\r\033[K{} ...", text));
  visible_ = true;
}

void Progress::show_step(long done, long total, std::string_view what) {
  constexpr double patience_in_seconds = 2;
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (!enabled_ || done >= total || elapsed < patience_in_seconds) return;
  const double left = done > 0 ? elapsed / static_cast<double>(done) * static_cast<double>(total - done) : 0;
  show(done > 0 ? fmt::format("{} {} of {}, about {:.0f} s to go", what, done + 1, total, left)
                : fmt::format("{} {} of {}", what, done + 1, total));
}

void Progress::clear() {
  if (!visible_) return;
  print_progress("\r\033[K");
  visible_ = false;
}

}  // namespace itspace::cli
