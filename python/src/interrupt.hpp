// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C in a run that holds no lock: now and then the run asks Python whether a signal has come.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace itspace::python {

class SignalCheck {
 public:
  // Call it often, without the lock: it takes the lock only when some time has passed, since other threads may hold it
  // for long. Throws what the signal's handler raised (KeyboardInterrupt).
  void poll() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(20)) return;
    last_ = now;
    const nanobind::gil_scoped_acquire lock;
    raise();
  }

  // With the lock held.
  static void raise() {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace itspace::python
