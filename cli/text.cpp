// SPDX-License-Identifier: Apache-2.0
//
// Texts and numbers for people, JSON for machines.
#include "text.hpp"

#include "ranks.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace itspace::cli {

namespace {

int output_error = 0;  // the first failure of standard output

void print_to(std::FILE* stream, const std::string& text) {
  if (!speaks()) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  const bool failed = std::fflush(stream) != 0 || !written;
  if (failed && stream == stdout && output_error == 0) output_error = errno;
}

}  // namespace

void misuse(const std::string& problem, const std::string& remedy) {
  throw std::invalid_argument(problem + "\n" + remedy);
}

void print_error(std::string_view text) {
  const auto line_end = text.find('\n');
  std::string out = fmt::format("itspace: error: {}\n", text.substr(0, line_end));
  if (line_end != std::string_view::npos) out += fmt::format("  {}\n", text.substr(line_end + 1));
  print_to(stderr, out);
}

void print_note(std::string_view text) {
  print_to(stderr, fmt::format("itspace: {}\n", text));
}

void print_line(std::string_view text) {
  print_to(stdout, fmt::format("{}\n", text));
}

void print_json(const Json& json) {
  print_to(stdout, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_progress(std::string_view text) {
  print_to(stderr, std::string(text));
}

void flush_output() {
  if (std::fflush(stdout) != 0 && output_error == 0) output_error = errno;
  if (output_error != 0 && output_error != EPIPE)
    throw std::runtime_error("standard output could not be written (closed, or its disk is full)");
}

namespace {

constexpr auto scale_remedy = "scale the data, for instance to a trace of 1";

}  // namespace

Overflow::Overflow(const std::string& found)
    : std::runtime_error(fmt::format("a number is beyond the largest one, {:.4g}: {}\n{}",
                                     std::numeric_limits<double>::max(), found, scale_remedy)) {}

bool check_finite_result(const std::vector<std::pair<std::string, double>>& values) {
  for (const auto& [name, value] : values)
    if (!std::isfinite(value)) {
      print_error(fmt::format("{} is {}: it is beyond the largest number, {:.4g}\n{}", name, value,
                              std::numeric_limits<double>::max(), scale_remedy));
      return false;
    }
  return true;
}

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.10g}", value);
}

std::string precise(double value) {
  return fmt::format("{}", value);
}

std::string small_number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.2e}", value);
}

std::string percent(double share) {
  if (std::isnan(share)) return "-";
  std::string text;
  for (int digits = 4; digits <= 8; ++digits) {
    text = fmt::format("{:.{}g}", 100 * share, digits);
    if (share >= 1 || text != "100") break;  // 99.9998 is not 100
  }
  return text + " %";
}

std::string shape_text(Index rows, Index cols) {
  return fmt::format("{} x {}", rows, cols);
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string quoted(const std::filesystem::path& path) {
  const std::string text = path.string();
  return text.empty() || text.find_first_of(" \t\n") != std::string::npos ? "'" + text + "'" : text;
}

}  // namespace itspace::cli
