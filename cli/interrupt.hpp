// SPDX-License-Identifier: Apache-2.0
//
// Signals. One that ends the program first takes its temporary files along. Where a run can be left early, the first
// one only asks it to (watch_for_interrupt), and the second one ends the program.
#pragma once

namespace itspace::cli {

// Once, first thing in main. SIGINT, SIGTERM, SIGHUP and their like end the program as they would, without leaving
// temporary files; a signal that the caller ignores (nohup) stays ignored. SIGPIPE and SIGXFSZ become errors of the
// write at hand. SIGBUS, an input that was cut short while it is read, ends with a message and exit code 3.
void install_signal_handlers();

// From here on the first of SIGINT, SIGTERM, SIGHUP and SIGXCPU asks the run to end where it can be left.
void watch_for_interrupt();
bool interrupt_asked();
// 128 + the signal that asked (130 for Ctrl-C, 143 for SIGTERM); `otherwise` where none did.
int interrupt_exit_code(int otherwise);

// While one of these lives, a signal that would end the program waits: for the few renames that belong together.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

}  // namespace itspace::cli
