// SPDX-License-Identifier: Apache-2.0
//
// The program: reads the arguments, runs one command, and turns every failure into a line on stderr and an exit code.
#include "commands.hpp"
#include "text.hpp"

#include <itspace/version.hpp>

#include <fmt/format.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <array>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

namespace {

namespace cli = itspace::cli;

constexpr auto about =
    R"(itspace moves a covariance of rank r toward a target covariance in the exact
Bures-Wasserstein (Gaussian optimal transport) distance, a few steps at a time.
Every step comes with a certificate: the result is positive semidefinite, of
rank <= r, and no farther from the target than the one before.)";

constexpr auto examples = R"(
Examples:
  itspace info features.npy                                what is in a file
  itspace align --target features.npy --rank 16 --out Y.npy
  itspace align --target target.npy --start source.npy --rank 16 --steps 5 \
          --floor --out Y.npy --trace run.json             with a record of every step
  itspace verify Y.npy --target target.npy --trace run.json  check what a record claims
  itspace map --source src.npy --target tgt.npy --rank 16 --out map.npz
  itspace transform --map map.npz --in tgt.npy --out mapped.npy  target samples in the source's frame
  itspace distance a.npz b.npz --means --squared           the Frechet distance (FID)
  itspace experiment alignment --out results               the paper's first experiment, as a page

Exit codes: 0 done; 1 a certificate failed, a product was not finite, or a claim
is false (the best iterate is still written); 2 bad arguments or values; 3 files
or memory. `itspace COMMAND --help` explains each command.)";

std::string command_line(int argc, char** argv) {
  std::string text = "itspace";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

int run(int argc, char** argv) {
  CLI::App program{about, "itspace"};
  program.footer(examples);
  program.set_version_flag("--version", fmt::format("itspace {}", itspace::version()), "print the version");
  program.require_subcommand(1);
  program.get_formatter()->column_width(32);
  const std::array<cli::Command, 7> commands{cli::add_align(program),
                                             cli::add_map(program),
                                             cli::add_transform(program),
                                             cli::add_distance(program),
                                             cli::add_verify(program),
                                             cli::add_info(program),
                                             cli::add_experiment(program, command_line(argc, argv))};
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    program.exit(asked);
    return cli::exit_code::success;
  } catch (const CLI::ParseError& error) {
    std::string command = "itspace";
    for (const CLI::App* app = &program; app && !app->get_subcommands().empty();) {
      app = app->get_subcommands().front();
      command += " " + app->get_name();
    }
    cli::misuse(error.what(), fmt::format("see `{} --help`", command));
  }
  for (const auto& command : commands)
    if (command.app->parsed()) return command.run();
  return cli::exit_code::misuse;  // not reached: one subcommand is required
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    cli::flush_output();
    return code;
  } catch (const std::invalid_argument& error) {
    cli::print_error(error.what());
    return cli::exit_code::misuse;
  } catch (const std::bad_alloc&) {
    cli::print_error("out of memory\nuse a smaller input, --precision float32, or a machine with more memory");
  } catch (const std::exception& error) {
    cli::print_error(error.what());
  } catch (...) {
    cli::print_error("unknown failure");
  }
  return cli::exit_code::environment;
}
