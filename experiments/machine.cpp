// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>

extern "C" {
// OpenBLAS's own; not in every cblas.h.
char* openblas_get_config(void);
int openblas_get_num_threads(void);
}

namespace itspace::experiments {
namespace {

// The value after the first `name` and `separator` of a file of such lines; empty where there is none.
std::string value_in(const char* file, const std::string& name, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    std::string value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    value.erase(value.find_last_not_of(" \t\"") + 1);
    return value;
  }
  return "";
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = value_in("/proc/cpuinfo", "model name", ':');
  machine.system = value_in("/etc/os-release", "PRETTY_NAME", '=');
  machine.compiler = fmt::format("g++ {}", __VERSION__);
  machine.blas = openblas_get_config();
  machine.cores = sysconf(_SC_NPROCESSORS_ONLN);
  machine.blas_threads = openblas_get_num_threads();
  struct sysinfo info = {};
  if (sysinfo(&info) == 0)
    machine.memory_in_gib =
        static_cast<double>(info.totalram) * static_cast<double>(info.mem_unit) / (1024.0 * 1024 * 1024);
  return machine;
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace itspace::experiments
