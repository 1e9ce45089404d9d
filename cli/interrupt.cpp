// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>

namespace itspace::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

void watch_for_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupt_asked() {
  return interrupted != 0;
}

}  // namespace itspace::cli
