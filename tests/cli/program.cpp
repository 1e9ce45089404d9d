// SPDX-License-Identifier: Apache-2.0
//
// Running the program, and the arrays that tests feed it.
#include "program.hpp"

#include <itspace/random.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Eigen/QR>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace itspace::cli_test {

namespace {

constexpr auto stdout_file = ".stdout", stderr_file = ".stderr";

std::string read_all(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Everything but the C library's locale is as in the test's own process.
std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LC_ALL=")) variables.emplace_back(*variable);
  variables.emplace_back("LC_ALL=de_DE.UTF-8");
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

pid_t start(const fs::path& folder, std::vector<std::string> arguments, const std::string& input = "/dev/null",
            bool reader_gone = false) {
  arguments.insert(arguments.begin(), ITSPACE_PROGRAM);
  auto variables = environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDWR, 0);  // a pipe opens at once this way
  int ends[2] = {-1, -1};
  if (reader_gone && pipe2(ends, O_CLOEXEC) == 0) {
    close(ends[0]);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, stdout_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, stderr_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, ITSPACE_PROGRAM, &actions, nullptr, pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (ends[1] >= 0) close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start " ITSPACE_PROGRAM);
  return child;
}

Outcome finish(const fs::path& folder, pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = read_all(folder / stdout_file);
  outcome.err = read_all(folder / stderr_file);
  fs::remove(folder / stdout_file);
  fs::remove(folder / stderr_file);
  return outcome;
}

}  // namespace

ProgramTest::ProgramTest() {
  std::string pattern = (fs::temp_directory_path() / "itspace-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot create a temporary folder");
  folder_ = pattern;
}

ProgramTest::~ProgramTest() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Outcome ProgramTest::run(const std::vector<std::string>& arguments) const {
  return finish(folder_, start(folder_, arguments));
}

std::string ProgramTest::program() {
  return ITSPACE_PROGRAM;
}

int ProgramTest::shell(const std::string& line) const {
  const std::string whole = "cd '" + folder_.string() + "' && itspace() { '" ITSPACE_PROGRAM "' \"$@\"; } && " + line;
  const int status = std::system(whole.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t ProgramTest::begin(const std::vector<std::string>& arguments, const std::string& input, bool reader_gone) const {
  return start(folder_, arguments, input, reader_gone);
}

Outcome ProgramTest::end(pid_t child) const {
  return finish(folder_, child);
}

void ProgramTest::make_pipe(const std::string& name) const {
  if (mkfifo(path(name).c_str(), 0600) != 0) throw std::runtime_error("cannot create a pipe");
}

std::string ProgramTest::drain(const std::string& name, const std::function<void()>& before) const {
  std::ifstream stream(path(name), std::ios::binary);  // opens when the program does
  before();
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

Outcome ProgramTest::run_and_interrupt(const std::vector<std::string>& arguments, const std::string& file) const {
  const pid_t child = start(folder_, arguments);
  for (int i = 0; i < 3000 && !exists(file); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGINT);
  return finish(folder_, child);
}

std::string ProgramTest::text_of(const std::string& name) const {
  return read_all(path(name));
}

Matrix ProgramTest::array_of(const std::string& name) const {
  const io::Array array = io::open_array(path(name));
  return array.as<double>().view();
}

void ProgramTest::write_float(const std::string& name, const Matrix& values) const {
  io::save_npy<float>(path(name), Block<float>(values.cast<float>()));
}

void ProgramTest::write_statistics(const std::string& name, const Matrix& mu, const Matrix& sigma) const {
  const std::vector<io::NamedBlock> arrays{{"mu", mu, true}, {"sigma", sigma, false}};
  io::save_npz(path(name), arrays);
}

void ProgramTest::write_bytes(const std::string& name, std::string_view bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
}

std::vector<std::string> ProgramTest::files() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

::testing::AssertionResult mentions(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
  return ::testing::AssertionSuccess();
}

Matrix gaussian(Index rows, Index cols, std::uint64_t seed) {
  Matrix values(rows, cols);
  Random(seed).fill_normal<double>(values);
  return values;
}

Matrix power_law(Index dim, std::uint64_t seed) {
  const Eigen::MatrixXd q = Eigen::HouseholderQR<Eigen::MatrixXd>(gaussian(dim, dim, seed)).householderQ();
  Eigen::VectorXd eigenvalues(dim);
  for (Index i = 0; i < dim; ++i) eigenvalues[i] = 1.0 / static_cast<double>((i + 1) * (i + 1));
  const Eigen::MatrixXd sigma = q * eigenvalues.asDiagonal() * q.transpose();
  return 0.5 * (sigma + sigma.transpose());
}

Matrix diagonal(const std::vector<double>& entries) {
  const auto size = static_cast<Index>(entries.size());
  return Matrix(Eigen::Map<const Eigen::VectorXd>(entries.data(), size).asDiagonal());
}

}  // namespace itspace::cli_test
