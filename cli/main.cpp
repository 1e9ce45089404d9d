// SPDX-License-Identifier: Apache-2.0
//
// The program: reads the arguments, runs one command, and turns every failure into a line on stderr and an exit code.
#include "blas_memory.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "ranks.hpp"
#include "spelling.hpp"
#include "text.hpp"

#include <itspace/version.hpp>

#include <fmt/format.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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
  itspace gate --before p.npy --after p_mapped.npy         does the map help, by the classifier's answers?
  itspace barycenter a.npy b.npy c.npy --rank 16 --out Y.npy one covariance for several targets
  itspace distance a.npz b.npz --means --squared           the Frechet distance (FID)
  itspace shift src.npy tgt.npy                            do two feature sets differ by more than noise?
  itspace follow --rank 16 --half-life 20 day1.npy day2.npy  a stream of batches, a few steps for each
  itspace experiment alignment --out results               the paper's first experiment, as a page

Exit codes: 0 done; 1 a certificate failed, a number overflowed, or a claim is
false (the best iterate is still written); 2 bad arguments or values; 3 files or
memory; 130 interrupted by Ctrl-C, 143 by SIGTERM (128 + signal). `itspace COMMAND --help` explains each command.)";

std::string command_line(int argc, char** argv) {
  std::string text = "itspace";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

// The command that was asked for, down to the last subcommand.
const CLI::App* asked_command(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::string name_of(const CLI::App* command) {
  return command->get_parent() ? name_of(command->get_parent()) + " " + command->get_name() : "itspace";
}

// "unknown command 'algin'; did you mean 'align'?", where that is what is wrong with the arguments.
std::optional<std::string> misspelling(const CLI::App& program, const CLI::App* command) {
  std::vector<std::string> commands, options;
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(sub->get_name());
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  for (const std::string& extra : program.remaining(true)) {
    const bool is_option = extra.starts_with("-");
    if (!is_option && commands.empty()) continue;
    const std::string typed = is_option ? extra.substr(0, extra.find('=')) : extra;
    const auto meant = cli::nearest(typed, is_option ? options : commands);
    if (is_option && !meant) continue;  // the parser's own text names it
    return fmt::format("unknown {} '{}'{}", is_option ? "option" : "command", typed,
                       meant ? fmt::format("; did you mean '{}'?", *meant) : "");
  }
  return std::nullopt;
}

int run(int argc, char** argv) {
  CLI::App program{about, "itspace"};
  program.footer(examples);
  program.set_version_flag("--version", fmt::format("itspace {}", itspace::version()), "print the version");
  program.require_subcommand(1);
  program.get_formatter()->column_width(32);
  const std::array<cli::Command, 13> commands{cli::add_align(program),
                                              cli::add_align_batch(program),
                                              cli::add_barycenter(program),
                                              cli::add_covariance(program),
                                              cli::add_map(program),
                                              cli::add_transform(program),
                                              cli::add_gate(program),
                                              cli::add_distance(program),
                                              cli::add_shift(program),
                                              cli::add_follow(program),
                                              cli::add_verify(program),
                                              cli::add_info(program),
                                              cli::add_experiment(program, command_line(argc, argv))};
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    if (cli::speaks()) program.exit(asked);
    return cli::exit_code::success;
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = asked_command(program);
    cli::misuse(misspelling(program, command).value_or(error.what()), fmt::format("see `{} --help`", name_of(command)));
  }
  cli::check_command_of_job(asked_command(program)->get_name());
  cli::check_blas_memory();
  for (const auto& command : commands)
    if (command.app->parsed()) return command.run();
  return cli::exit_code::misuse;  // not reached: one subcommand is required
}

// A standard stream that came closed would be given to the first file that is opened, and get what is printed. What
// takes its place refuses to be used.
void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int run_and_report(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    cli::flush_output();
    return code;
  } catch (const std::invalid_argument& error) {
    cli::print_error(error.what());
    return cli::exit_code::misuse;
  } catch (const std::bad_alloc&) {
    cli::print_error("out of memory\nuse a smaller input, --precision float32, or a machine with more memory");
  } catch (const cli::Overflow& error) {
    cli::print_error(error.what());
    return cli::exit_code::outcome;
  } catch (const std::exception& error) {
    cli::print_error(error.what());
  } catch (...) {
    cli::print_error("unknown failure");
  }
  return cli::exit_code::environment;
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_streams();
  cli::install_signal_handlers();
  const int code = cli::job_exit_code(run_and_report(argc, argv));
  // At exit OpenBLAS waits for its threads, and under a limit some may still be asking for memory.
  if (cli::memory_is_limited()) std::_Exit(code);
  return code;
}
