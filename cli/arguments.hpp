// SPDX-License-Identifier: Apache-2.0
//
// Arguments, read strictly: the whole text must be the number, whatever the locale, and what is not is refused by name.
#pragma once

#include "files.hpp"
#include "input.hpp"

#include <itspace/align.hpp>

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace itspace::cli {

// @throws std::invalid_argument naming the option, the text and what is expected.
std::int64_t parse_whole(std::string_view option, std::string_view text);
double parse_real(std::string_view option, std::string_view text);  // finite

// A file or folder; an empty name (an unset shell variable) is refused.
CLI::Option* add_path(CLI::App& app, const std::string& flag, std::filesystem::path& value, const std::string& help,
                      const std::string& type = "FILE");
CLI::Option* add_whole(CLI::App& app, const std::string& flag, Index& value, const std::string& help);
CLI::Option* add_whole(CLI::App& app, const std::string& flag, std::optional<Index>& value, const std::string& help);
CLI::Option* add_real(CLI::App& app, const std::string& flag, double& value, const std::string& help);
CLI::Option* add_seed(CLI::App& app, const std::string& flag, std::uint64_t& value, const std::string& help);
CLI::Option* add_kind(CLI::App& app, const std::string& flag, Kind& value, const std::string& help);
CLI::Option* add_route(CLI::App& app, const std::string& flag, Route& value, const std::string& help);
CLI::Option* add_solver(CLI::App& app, Solver& value);
CLI::Option* add_precision(CLI::App& app, Precision& value);
CLI::Option* add_trust(CLI::App& app, bool& value);
CLI::Option* add_threads(CLI::App& app);  // sets OpenBLAS's thread count as soon as it is read

// The target of a run, for the commands that have one.
struct TargetArguments {
  Request request{"target", "--target-as"};
  std::vector<std::string> names;  // where several are allowed; the first one is that of the request
  std::filesystem::path weights;
  double ridge = 0;
  bool trust = false;
  Precision precision = Precision::automatic;

  Checks checks(bool quiet) const { return {trust, ridge, true, quiet}; }
  NamedFiles files() const;
};
inline constexpr auto input_group = "Input";
// And --trust, --precision, --threads. `several`: --target takes any number of files.
void add_target(CLI::App& app, TargetArguments& given, bool several = false);

Kind kind_named(std::string_view option, std::string_view text);

// Refuses value < limit (or, for check_positive, value <= 0).
void check_at_least(std::string_view option, Index value, Index limit);
void check_not_negative(std::string_view option, double value);

// "a" -> {"a", "a"}, "a,b" -> {"a", "b"}: one value for both inputs, or one each.
std::pair<std::string, std::string> one_or_two(std::string_view option, const std::string& text);

}  // namespace itspace::cli
