// SPDX-License-Identifier: Apache-2.0
//
// What an experiment leaves behind: every number it measured, as values. The runners fill these, results_json.cpp
// writes and reads them (results.json), and the report draws its tables and figures from nothing else.
#pragma once

#include <itspace/block.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace itspace::experiments {

struct Machine {
  std::string processor, system, compiler, blas;
  Index cores = 0, blas_threads = 0;
  double memory_in_gib = 0;
};

struct MethodInfo {
  std::string id;         // "paper-0.9", "ritz", "bw-gd", ...: what --methods takes
  std::string title;      // "ITSPACE, alpha = 0.9"
  std::string family;     // "ours", "full matrix", "eigensolver", "sample OT"
  std::string objective;  // what it targets
  std::string cost;       // per step
  std::string settings;   // step rule, regularisation, what was chosen from which grid
};

// One iterate of one run.
struct Row {
  Index step = 0;
  Index passes = 0;      // sweeps over a d x d matrix needed to produce it
  double objective = 0;  // W2^2 by the exact evaluator
  double gap = 0;        // gap_r
  double update_seconds = 0, projection_seconds = 0, evaluation_seconds = 0;  // cumulative

  double algorithm_seconds() const { return update_seconds + projection_seconds; }
};

struct Run {
  std::string method;
  std::uint64_t seed = 0;
  double preprocessing_seconds = 0;
  Index checks = 0;      // objectives evaluated inside the method
  std::string settings;  // what was chosen for this run, such as epsilon
  std::vector<Row> rows;
};

enum class Outcome { done, failed, skipped };  // failed: asked for and not to be had; skipped: not supplied

struct InstanceInfo {
  std::string name;         // also a file name
  std::string title;        // "Office-Caltech GoogLeNet, amazon to webcam"
  std::string description;  // where the data come from
  Outcome outcome = Outcome::done;
  std::string reason;  // of failure or skipping: what was wanted, where, what to do
  Index dim = 0, source_samples = 0, target_samples = 0;
  double seconds = 0;  // the whole instance
};

struct AlignmentInstance {
  InstanceInfo info;
  double covariance_seconds = 0;  // forming both covariances, median over seeds
  std::vector<Run> runs;
};

// What a frozen head makes of the test half, in percent.
struct DriftRow {
  std::string method;  // "none", "mean", a method's id, "endpoint"
  std::string map;     // "whiten", "monge"; empty for none and mean
  Index budget = 0;    // K; 0 where it does not apply
  double value = 0;
  double adaptation_seconds = 0;  // of the method up to this budget, shared preprocessing excluded
};

struct DriftCell {
  std::string drift;  // "none", "scale", "mix"
  double severity = 1;
  std::uint64_t seed = 0;
  double clean = 0;  // the same head on the test half without drift
  std::vector<DriftRow> rows;
};

struct DriftInstance {
  InstanceInfo info;
  std::string metric;  // "accuracy" or "AUROC", in percent
  Index classes = 0;
  bool closed_set = false;
  double chance = 0;  // share of the most frequent class in the test half, percent (50 for AUROC)
  std::vector<DriftCell> cells;
};

struct Results {
  std::string experiment;                 // "alignment" or "covdrift"
  std::string version, command, started;  // started: UTC, ISO 8601
  double seconds = 0;
  Machine machine;
  Index rank = 16, steps = 20;
  std::vector<std::uint64_t> seeds;
  std::vector<double> thresholds;  // of the gap
  std::vector<Index> budgets;      // K of covdrift
  std::vector<std::string> notes;  // settings in words
  std::vector<MethodInfo> methods;
  std::vector<AlignmentInstance> alignment;
  std::vector<DriftInstance> covdrift;
};

std::string to_json(const Results& results);
Results results_from_json(const std::string& text);

// One finished instance on its own, for --resume; `key` is the settings it was made with.
std::string to_json(const AlignmentInstance& instance, const std::string& key);
std::string to_json(const DriftInstance& instance, const std::string& key);
// False where the text was made with other settings.
bool from_json(const std::string& text, const std::string& key, AlignmentInstance& instance);
bool from_json(const std::string& text, const std::string& key, DriftInstance& instance);

}  // namespace itspace::experiments
