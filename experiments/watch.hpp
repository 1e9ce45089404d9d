// SPDX-License-Identifier: Apache-2.0
//
// How a long experiment speaks to whoever started it: what it is doing, how far it is, and whether to stop.
#pragma once

#include <exception>
#include <functional>
#include <string>

namespace itspace::experiments {

// Thrown by checkpoint() once the user has asked to stop; finished instances are on disk by then.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

struct Watch {
  std::function<void(const std::string& doing, double share_done)> progress;  // share of the current instance
  std::function<bool()> stop_asked;

  void checkpoint(const std::string& doing, double share_done) const {
    if (stop_asked && stop_asked()) throw Interrupted{};
    if (progress) progress(doing, share_done);
  }
};

}  // namespace itspace::experiments
