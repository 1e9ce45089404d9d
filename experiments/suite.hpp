// SPDX-License-Identifier: Apache-2.0
//
// One experiment over many instances: loads each, runs it, keeps what is finished on disk, and writes the report. One
// bad instance never stops the others.
#pragma once

#include "alignment.hpp"
#include "covdrift.hpp"
#include "instances.hpp"
#include "results.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace itspace::experiments {

struct SuiteOptions {
  std::filesystem::path out;
  DataFolders folders;
  std::vector<std::string> instances;  // empty: the default ones
  bool resume = false;                 // take instances that an earlier run with the same settings finished
  std::string command;                 // as typed, for the record
};

struct SuiteEvents {
  // instance `index` (from 0) of `count`: what it is doing, and which share of it is done
  std::function<void(Index index, Index count, const std::string& doing, double share)> progress;
  std::function<void(const InstanceInfo& info, bool kept)> instance_ended;  // kept: from an earlier run
  std::function<bool()> stop_asked;
};

struct SuiteOutcome {
  Results results;
  bool bad_values = false;           // an instance failed for what is in its files
  bool bad_environment = false;      // an instance failed for files that are missing or cannot be read, or for memory
  bool interrupted = false;          // finished instances are on disk and in the report
  std::vector<std::string> missing;  // figures that could not be drawn, and why
};

SuiteOutcome run_alignment_suite(const AlignmentOptions& options, const SuiteOptions& suite, const SuiteEvents& events);
SuiteOutcome run_covdrift_suite(const CovDriftOptions& options, const SuiteOptions& suite, const SuiteEvents& events);

}  // namespace itspace::experiments
