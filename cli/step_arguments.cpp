// SPDX-License-Identifier: Apache-2.0
//
// --alpha and --lambda.
#include "step_arguments.hpp"

#include "arguments.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace itspace::cli {

StepSize StepArguments::size() const {
  const bool has_lambda = !std::isnan(lambda);
  if (!alpha.empty() && has_lambda)
    misuse(fmt::format("--alpha {} and --lambda {} both set the step size", alpha, lambda),
           "give one of them: alpha = 2 lambda/(1 + 2 lambda)");
  if (has_lambda) {
    if (!(lambda > 0)) misuse(fmt::format("--lambda is {}, not above the limit 0", lambda), "give lambda > 0");
    return StepSize::lambda(lambda);
  }
  if (alpha.empty()) return {};
  if (alpha == "line-search") return StepSize::line_search();
  const double value = parse_real("--alpha", alpha);
  if (!(value > 0 && value < 2))
    misuse(fmt::format("--alpha is {}, outside (0, 2), where descent is certain", alpha),
           "give 0 < alpha < 2, or line-search, or leave it out for the default");
  return StepSize::alpha(value);
}

void add_step_size(CLI::App& app, StepArguments& given, const std::string& group) {
  app.add_option("--alpha", given.alpha,
                 "step size in (0, 2), or line-search.\nDefault: 1 for one step, 1.1 for 2 to 4, 1.3 from 5 on")
      ->type_name("A")
      ->group(group);
  add_real(app, "--lambda", given.lambda, "the paper's proximal weight instead: alpha = 2X/(1 + 2X)")->group(group);
}

}  // namespace itspace::cli
