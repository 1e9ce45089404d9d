// SPDX-License-Identifier: Apache-2.0
//
// The subcommands. Each adds itself to the program and is run, after all arguments were read, by the function it leaves
// behind, which returns the exit code.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>

namespace itspace::cli {

namespace exit_code {
inline constexpr int success = 0;
inline constexpr int outcome = 1;      // the numbers: a certificate failed, a product was not finite, a claim is false
inline constexpr int misuse = 2;       // the arguments or the values in a file
inline constexpr int environment = 3;  // a file, the memory
}  // namespace exit_code

struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command add_align(CLI::App& program);
Command add_align_batch(CLI::App& program);
Command add_barycenter(CLI::App& program);
Command add_covariance(CLI::App& program);
Command add_gate(CLI::App& program);
Command add_map(CLI::App& program);
Command add_transform(CLI::App& program);
Command add_distance(CLI::App& program);
Command add_shift(CLI::App& program);
Command add_follow(CLI::App& program);
Command add_verify(CLI::App& program);
Command add_info(CLI::App& program);
// `command_line` is kept in the results.
Command add_experiment(CLI::App& program, const std::string& command_line);

}  // namespace itspace::cli
