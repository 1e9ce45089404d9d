// SPDX-License-Identifier: Apache-2.0
//
// What a row of a trace holds, by the names of the schema itspace.trace/1 and in its order: one list for all that write
// or read a trace, so that files, JSON and Python cannot differ.
#pragma once

#include <itspace/trace.hpp>

#include <optional>
#include <string_view>
#include <variant>

namespace itspace {

inline constexpr std::string_view trace_schema = "itspace.trace/1";
inline constexpr std::string_view line_search_alpha = "line-search";  // in the place of the run's alpha

struct RowField {
  std::string_view name;
  std::variant<double Step::*, Index Step::*, std::optional<bool> Step::*, std::optional<Route> Step::*> value;
  bool required = true;  // of a trace in a file; the others came later, or other writers leave them out
};
inline constexpr RowField row_fields[] = {
    {"index", &Step::index, false},
    {"objective", &Step::objective},
    {"resolution", &Step::resolution, false},
    {"certificate_gap", &Step::certificate_gap},
    {"feasibility", &Step::feasibility},
    {"orthogonality", &Step::orthogonality},
    {"gram_rank", &Step::gram_rank},
    {"route", &Step::route, false},
    {"alpha", &Step::alpha, false},
    {"step_squared", &Step::step_squared},
    {"promised_descent", &Step::promised_descent},
    {"actual_descent", &Step::actual_descent},
    {"objective_bound", &Step::objective_bound, false},
    {"allowance", &Step::allowance, false},
    {"certified", &Step::certified},
    {"target_version", &Step::target_version, false},
    {"passes", &Step::passes},
    {"seconds", &Step::seconds},
};

}  // namespace itspace
