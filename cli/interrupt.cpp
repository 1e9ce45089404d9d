// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include "commands.hpp"

#include <itspace/signals.hpp>

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <string_view>

namespace itspace::cli {
namespace {

// A handler may run in a thread of BLAS.
std::atomic<bool> watching = false;
std::atomic<bool> holding = false;  // inside Uninterrupted
std::atomic<int> asked = 0;         // the signal that asked
std::atomic<int> held_back = 0;     // the signal that came meanwhile
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void end_by(int signal) {
  io::remove_temporaries();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void on_signal(int signal) {
  const bool can_ask = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGXCPU;
  if (holding) {
    held_back = signal;
  } else if (watching && can_ask && asked == 0) {
    asked = signal;
  } else {
    end_by(signal);  // takes effect when this handler returns
  }
}

void say(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody left to tell
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const char* const path = io::mapped_file_at(info->si_addr);
  if (path == nullptr) {
    end_by(signal);
    return;
  }
  io::remove_temporaries();
  say("itspace: error: '");
  say({path, std::strlen(path)});
  say("' was cut short while it was read, or its disk failed; the result was not written\n"
      "  let no other program write to an input while it is used, and run again\n");
  ::_exit(exit_code::environment);
}

void handle(int signal) {
  struct sigaction action = {};
  if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2})
    handle(signal);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

void watch_for_interrupt() {
  watching = true;
}

bool interrupt_asked() {
  return asked != 0;
}

int interrupt_exit_code(int otherwise) {
  constexpr int by_signal = 128;  // what a shell says of a program that a signal ended
  return asked != 0 ? by_signal + asked : otherwise;
}

Uninterrupted::Uninterrupted() {
  holding = true;
}

Uninterrupted::~Uninterrupted() {
  holding = false;
  if (const int signal = held_back.exchange(0)) on_signal(signal);
}

}  // namespace itspace::cli
