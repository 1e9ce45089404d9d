// SPDX-License-Identifier: Apache-2.0
//
// The gate of `itspace follow`: a classifier's predictions beside the batches, what they decide, and the maps that go
// with it.
#pragma once

#include "files.hpp"
#include "text.hpp"

#include <itspace/class_shares.hpp>
#include <itspace/follow_gate.hpp>
#include <itspace/followed_shift.hpp>
#include <itspace/online.hpp>

#include <CLI/App.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace itspace::cli {

struct GateArguments {
  std::vector<std::string> predictions;  // "BEFORE,AFTER" for each file of batches
  std::filesystem::path source, map_out, candidate_out;
  std::optional<MapKind> kind;
  std::optional<Index> samples, patience;

  bool asked_for() const { return !predictions.empty() || !source.empty(); }
  void add_files(NamedFiles& inputs, NamedFiles& outputs) const;
};
void add_gate_options(CLI::App& app, GateArguments& given);
// @throws std::invalid_argument where options contradict each other, or the files of batches.
void check_gate(const GateArguments& given, const std::vector<std::string>& files);

// The gate of a stream: the one that its state has, which what is given must not contradict, or a new one. Nothing
// where it was never asked for. The source's labels, where there are any, are the classes that it knows.
std::optional<FollowGate> gate_of(const GateArguments& given, std::optional<FollowGate> found,
                                  const std::filesystem::path& source_labels, const std::filesystem::path& state);

// The predictions for the rows of one file of batches.
class AnswersFile {
 public:
  // @throws std::invalid_argument naming the file: another number of samples or classes.
  AnswersFile(const std::string& pair, Index samples);
  GateAnswers rows(Index first, Index count) const;

 private:
  Block<double> before_, after_;
};

// The gate beside the source that the stream is mapped to, where that is known.
template <Storage Scalar>
class GatedStream {
 public:
  // Of a source of another dimension than `dim` nothing can be made: refused by name.
  GatedStream(const GateArguments& given, FollowGate gate, Index rank, Index dim);

  const FollowGate& gate() const { return gate_; }
  // What the answers for a batch do, once the aligner has seen it; none: it stays as it was. The entry of its line.
  Json observe(const OnlineAligner<Scalar>& aligner, const std::optional<GateAnswers>& answers);
  // The maps that were asked for, of the stream as it is now.
  void save_maps(const OnlineAligner<Scalar>& aligner) const;

 private:
  std::optional<FollowedShift> shift_of(const OnlineAligner<Scalar>& aligner) const;

  const GateArguments& given_;
  FollowGate gate_;
  std::optional<LowRankGaussian> source_;
  ClusterMeans clusters_;
};

}  // namespace itspace::cli
