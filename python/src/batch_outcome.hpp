// SPDX-License-Identifier: Apache-2.0
//
// What batches give back, wherever they were solved.
#pragma once

#include <itspace/batch.hpp>

#include "arrays.hpp"
#include "trace.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace itspace::python {

// (factors, objectives, status, reasons, best, certified, how many are unresolved, traces)
inline nb::object batch_outcome(const nb::object& factors, BatchOutcomes&& outcomes) {
  nb::list status, traces;
  nb::dict reasons;
  for (size_t i = 0; i < outcomes.status.size(); ++i) {
    status.append(outcomes.status[i] ? text_of(name(*outcomes.status[i])) : text_of("not_run"));
    if (!outcomes.reasons[i].empty()) reasons[nb::int_(i)] = text_of(outcomes.reasons[i]);
  }
  for (Trace& trace : outcomes.traces) traces.append(nb::cast(std::move(trace)));
  const auto unresolved = std::count(outcomes.unresolved.begin(), outcomes.unresolved.end(), std::uint8_t(1));
  return nb::make_tuple(factors, to_numpy<double>(std::move(outcomes.objectives)), status, reasons,
                        to_numpy(std::vector<std::int64_t>(outcomes.best.begin(), outcomes.best.end())),
                        to_numpy(std::move(outcomes.certified)), unresolved, traces);
}

}  // namespace itspace::python
