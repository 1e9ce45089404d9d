// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "core/require.hpp"

namespace itspace::python {
namespace {

StepSize step_size(std::optional<double> alpha, std::optional<double> lambda, bool line_search) {
  require(int(alpha.has_value()) + int(lambda.has_value()) + int(line_search) <= 1,
          "alpha and lam are both given; they are two ways to say the same step size: pass one of them");
  if (alpha) return StepSize::alpha(*alpha);
  if (lambda) return StepSize::lambda(*lambda);
  if (line_search) return StepSize::line_search();
  return {};
}

}  // namespace

AlignOptions align_options(Index steps, std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                           const std::string& solver, const std::string& route, std::optional<Index> guard,
                           std::uint64_t seed) {
  AlignOptions options;
  options.steps = steps;
  const auto method = solver_named(solver);
  require(method.has_value(), "solver is '", solver, "'; it must be 'paper' or 'ritz'");
  options.solver = *method;
  options.step_size = step_size(alpha, lambda, line_search);
  const auto named = route_named(route);
  require(named.has_value(), "route is '", route, "'; it must be 'auto', 'qr', 'gram', 'factor' or 'root'");
  options.route = *named;
  options.guard = guard;
  options.seed = seed;
  return options;
}

}  // namespace itspace::python
