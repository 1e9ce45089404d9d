// SPDX-License-Identifier: Apache-2.0
//
// A test that runs the real program in a folder of its own.
#pragma once

#include <itspace/block.hpp>
#include <itspace/io.hpp>

#include <gtest/gtest.h>

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace itspace::cli_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Matrix = Block<double>;

struct Outcome {
  int exit_code = -1;  // 128 + signal where one ended the program
  std::string out, err;

  Json json() const { return Json::parse(out); }
};

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  // Runs `itspace arguments...` in the folder, in a locale that writes decimal commas where the system has one.
  Outcome run(const std::vector<std::string>& arguments) const;
  // A line for the shell in the folder, where `itspace` is the program; its exit code.
  int shell(const std::string& line) const;
  static std::string program();  // its path

  // Starts it, to be met at a pipe and ended by end(). `input` (a pipe may be one) is its standard input; with
  // `reader_gone` nobody reads its standard output.
  pid_t begin(const std::vector<std::string>& arguments, const std::string& input = "/dev/null",
              bool reader_gone = false) const;
  Outcome end(pid_t child) const;
  // The same, and SIGINT as soon as `file` exists.
  Outcome run_and_interrupt(const std::vector<std::string>& arguments, const std::string& file) const;

  fs::path path(const std::string& name) const { return folder_ / name; }
  bool exists(const std::string& name) const { return fs::exists(path(name)); }
  std::string text_of(const std::string& name) const;
  Json json_of(const std::string& name) const { return Json::parse(text_of(name)); }
  Matrix array_of(const std::string& name) const;

  void write(const std::string& name, const Matrix& values) const { io::save_npy<double>(path(name), values); }
  void write_float(const std::string& name, const Matrix& values) const;
  void write_statistics(const std::string& name, const Matrix& mu, const Matrix& sigma) const;
  void write_bytes(const std::string& name, std::string_view bytes) const;

  void make_pipe(const std::string& name) const;
  // Reads the pipe to its end. The first byte is waited for; `before` runs when the program has opened it.
  std::string drain(
      const std::string& name, const std::function<void()>& before = [] {}) const;

  // Everything in the folder, to see that a failure leaves nothing behind.
  std::vector<std::string> files() const;

 private:
  fs::path folder_;
};

// Contains every one of the texts; otherwise says which is missing.
::testing::AssertionResult mentions(const std::string& text, const std::vector<std::string>& parts);

Matrix gaussian(Index rows, Index cols, std::uint64_t seed);
// A covariance with eigenvalues 1, 1/4, 1/9, ...
Matrix power_law(Index dim, std::uint64_t seed);
Matrix diagonal(const std::vector<double>& entries);

}  // namespace itspace::cli_test
