// SPDX-License-Identifier: Apache-2.0
//
// --checkpoint, --checkpoint-every and --resume: runs that a kill costs a few steps.
#pragma once

#include "arguments.hpp"

#include <itspace/checkpoint.hpp>
#include <itspace/checkpoint_file.hpp>

#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace itspace::cli {

struct CheckpointArguments {
  std::filesystem::path file;
  Index every = Checkpoints<double>().every;
  bool every_given = false, resume = false;

  void check() const;  // @throws std::invalid_argument where they contradict each other
};
void add_checkpoints(CLI::App& app, CheckpointArguments& given, const std::string& group);

// The run that is asked for, as lines "name=value": what must be the same for a checkpoint to serve. In how many
// processes it runs is not part of it. `description`: what the target was found to be.
std::string run_text(const AlignOptions& options, Index rank, const TargetArguments& target,
                     const CheckpointArguments& given, const std::string& description);

// Who has the file of a run's checkpoints: this process; or one rank of a job, which tells the others.
class CheckpointPlace {
 public:
  virtual ~CheckpointPlace() = default;
  // Done where the file is. What it throws, all throw.
  virtual void at_file(const std::function<void()>& work) const { work(); }
  // What the one that has the file has.
  virtual std::string told(std::string text) const { return text; }
  virtual void tell(Block<float>&) const {}
  virtual void tell(Block<double>&) const {}

  static const CheckpointPlace& here();
};

// A run with checkpoints or without.
class CheckpointedRun {
 public:
  // Opens the checkpoint where --resume asks for it and there is one; says on stderr which, unless `quiet`.
  // @throws std::invalid_argument where it is one of another run, naming what differs.
  CheckpointedRun(const CheckpointArguments& given, std::string run, bool quiet,
                  const CheckpointPlace& place = CheckpointPlace::here());

  // A run on float32 data that had turned to double is not begun in float32 again.
  Precision precision(Precision asked) const;

  template <Storage Scalar>
  Result<Scalar> align(TargetRef<Scalar> target, const std::optional<Block<Scalar>>& start, Index rank,
                       const AlignOptions& options, const OnStep<Scalar>& on_step) const;

 private:
  std::string precision_in_file(bool quiet) const;  // empty where there is no file
  template <Storage Scalar>
  Checkpoint<Scalar> load() const;

  CheckpointArguments given_;
  std::string run_;
  const CheckpointPlace& place_;
  std::optional<std::string> found_;  // the precision of the checkpoint that is there
};

}  // namespace itspace::cli
