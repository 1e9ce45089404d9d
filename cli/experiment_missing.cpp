// SPDX-License-Identifier: Apache-2.0
//
// Stands in for experiment_command.cpp in a build without the experiments.
#include "commands.hpp"
#include "text.hpp"

namespace itspace::cli {

Command add_experiment(CLI::App& program, const std::string&) {
  CLI::App* app = program.add_subcommand("experiment", "not in this build");
  app->allow_extras();
  return {app, []() -> int {
            misuse("this itspace was built without the experiments", "configure with -DITSPACE_BUILD_EXPERIMENTS=ON");
          }};
}

}  // namespace itspace::cli
