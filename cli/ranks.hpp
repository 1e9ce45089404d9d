// SPDX-License-Identifier: Apache-2.0
//
// The program as several processes: what mpirun starts. They are the ranks of one job; rank 0 alone prints and writes.
#pragma once

#include "arguments.hpp"
#include "checkpoints.hpp"

#include <itspace/align.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace itspace::cli {

// As the launcher says in the environment (Open MPI's names).
struct Job {
  int rank = 0, size = 1;
};
const Job& job();

// Whether this process prints: rank 0, and one that has to tell what no other knows.
bool speaks();
void speak_up();

// What becomes of an exit code: that of rank 0 is the job's.
int job_exit_code(int code);

// Refuses to run a command in many copies, each of which would write the same output. @throws std::invalid_argument.
void check_command_of_job(const std::string& command);

// `itspace align` on the ranks of a job.
struct SpreadAlign {
  const TargetArguments& target;
  std::optional<std::uint64_t> memory;  // of each rank
  const Request& start;
  Index rank;
  const AlignOptions& options;
  std::filesystem::path out, trace;
  const CheckpointArguments& checkpoint;
  bool json, quiet;
  double rank_timeout;                        // seconds
  std::vector<std::string> of_one_process{};  // options that were given and need all of the target in one place
};
inline constexpr double default_rank_timeout = 3600;
CLI::Option* add_rank_timeout(CLI::App& app, double& value);

// In ranks_mpi.cpp or, in a build without itspace::mpi, in ranks_missing.cpp.
int align_on_ranks(const SpreadAlign& given);

}  // namespace itspace::cli
