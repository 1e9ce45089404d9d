// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include "text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace itspace::cli {

namespace {

bool has_news = false;

int number_in_environment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return otherwise;
  const std::string_view text(value);
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? number : otherwise;
}

}  // namespace

const Job& job() {
  static const Job found{number_in_environment("OMPI_COMM_WORLD_RANK", 0),
                         number_in_environment("OMPI_COMM_WORLD_SIZE", 1)};
  return found;
}

bool speaks() {
  return job().rank == 0 || has_news;
}

void speak_up() {
  has_news = true;
}

int job_exit_code(int code) {
  return job().rank == 0 ? code : 0;
}

void check_command_of_job(const std::string& command) {
  if (job().size == 1 || command == "align") return;
  misuse(fmt::format("mpirun started {} copies of `itspace {}`, which runs in one process: they would do the same work "
                     "and overwrite one another's results",
                     job().size, command),
         "leave out mpirun; of the commands `itspace align` runs on many ranks");
}

CLI::Option* add_rank_timeout(CLI::App& app, double& value) {
  return add_real(app, "--rank-timeout", value,
                  "under mpirun: end the job when a rank has not answered for so many seconds; 0: never")
      ->default_str(fmt::format("{}", value));
}

}  // namespace itspace::cli
