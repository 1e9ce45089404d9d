// SPDX-License-Identifier: Apache-2.0
//
// What the program says and where: results on stdout, everything else on stderr. Numbers are formatted by fmt, which
// never looks at the locale.
#pragma once

#include <itspace/block.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace itspace::cli {

// Keys stay in the order they were put in.
using Json = nlohmann::ordered_json;

// Misuse (exit code 2): a line that names the value and the limit, and one that says what to do about it.
[[noreturn]] void misuse(const std::string& problem, const std::string& remedy);

// `itspace: error: problem`, then the remedy, if the text has a second line, indented below.
void print_error(std::string_view text);

// A remark on stderr: what was taken for what, where a file went.
void print_note(std::string_view text);

// A line of the result on stdout, visible at once.
void print_line(std::string_view text);

// One JSON object on stdout. Non-finite numbers are null.
void print_json(const Json& json);

// Text on stderr as it is.
void print_progress(std::string_view text);

// Throws std::runtime_error unless everything printed so far reached stdout. A reader that has gone (`| head -1`) had
// what it wanted, and is no failure.
void flush_output();

// `work`, of which all inputs are finite: where the library finds a value that is not, a number overflowed on the way.
// @throws Overflow with what it said.
struct Overflow : std::runtime_error {
  explicit Overflow(const std::string& found);
};
template <class Work>
auto guard_overflow(Work work) {
  try {
    return work();
  } catch (const std::invalid_argument& error) {
    throw Overflow(error.what());
  }
}

// True where all of these are finite; otherwise an error that names the first that is not.
bool check_finite_result(const std::vector<std::pair<std::string, double>>& values);

std::string number(double value);                // 10 significant digits, "-" for NaN
std::string precise(double value);               // the shortest text that reads back as the same double
std::string small_number(double value);          // 3 significant digits
std::string percent(double share);               // 0.123 -> "12.3 %"
std::string shape_text(Index rows, Index cols);  // "3 x 4"
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");
std::string quoted(const std::filesystem::path& path);  // the path as typed, in single quotes where it has blanks

}  // namespace itspace::cli
