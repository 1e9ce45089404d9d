// SPDX-License-Identifier: Apache-2.0
#include <itspace/trace.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace itspace {
namespace {

constexpr std::array statuses{
    std::pair{Status::step_limit, std::string_view("step_limit")},
    std::pair{Status::converged, std::string_view("converged")},
    std::pair{Status::stopped, std::string_view("stopped")},
    std::pair{Status::certificate_failed, std::string_view("certificate_failed")},
    std::pair{Status::not_finite, std::string_view("not_finite")},
    std::pair{Status::not_a_covariance, std::string_view("not_a_covariance")},
};
constexpr std::array routes{
    std::pair{Route::automatic, std::string_view("auto")}, std::pair{Route::qr, std::string_view("qr")},
    std::pair{Route::gram, std::string_view("gram")},      std::pair{Route::factor, std::string_view("factor")},
    std::pair{Route::root, std::string_view("root")},
};

constexpr std::array solvers{
    std::pair{Solver::paper, std::string_view("paper")},
    std::pair{Solver::ritz, std::string_view("ritz")},
};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [entry, text] : table)
    if (entry == value) return text;
  return "unknown";
}

template <class Value, class Table>
std::optional<Value> value_in(const Table& table, std::string_view name) {
  for (const auto& [entry, text] : table)
    if (text == name) return entry;
  return std::nullopt;
}

}  // namespace

std::string_view name(Status status) {
  return name_in(statuses, status);
}
std::string_view name(Route route) {
  return name_in(routes, route);
}
std::string_view name(Solver solver) {
  return name_in(solvers, solver);
}
std::optional<Route> route_named(std::string_view text) {
  return value_in<Route>(routes, text);
}
std::optional<Status> status_named(std::string_view text) {
  return value_in<Status>(statuses, text);
}
std::optional<Solver> solver_named(std::string_view text) {
  return value_in<Solver>(solvers, text);
}

bool failed(Status status) {
  return status == Status::certificate_failed || status == Status::not_finite || status == Status::not_a_covariance;
}

bool Trace::certified() const {
  return !failed(status) &&
         std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.certified.value_or(true); });
}

bool unresolved(const Step& step) {
  return step.resolution > 0.01 * step.objective;
}

}  // namespace itspace
