// SPDX-License-Identifier: Apache-2.0
//
// A Checkpoint in a file: an .npz that numpy.load opens, with the key `format` = "itspace.checkpoint/1", `precision`
// ("float32" or "float64"), `run` (what was asked for, a line "name=value" for each option), `trace` (the bytes of its
// JSON), `current` and `best`. It replaces the one before whole or not at all.
#pragma once

#include <itspace/checkpoint.hpp>
#include <itspace/export.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace itspace::io {

inline constexpr std::string_view checkpoint_format = "itspace.checkpoint/1";

template <Storage Scalar>
ITSPACE_API void save_checkpoint(const std::filesystem::path& path, const Checkpoint<Scalar>& checkpoint,
                                 std::string_view run);

// What must be the same for a checkpoint to serve. In how many processes the run was, and of which program, does not
// matter: the program and Python go on with each other's.
struct CheckpointRun {
  std::string target;  // what it is: "features, 100 samples of dimension 5"
  double ridge = 0;
  bool weighted = false;
  Index rank = 0;
  AlignOptions options = {};
  std::string precision = "auto";  // as it was asked for: auto, float32, mixed, float64
  Index every = Checkpoints<double>().every;
};
// The `run` of save_checkpoint.
ITSPACE_API std::string run_text(const CheckpointRun& run);
// "there steps=20, here steps=21": the first line that two of them do not share; empty where they are the same.
ITSPACE_API std::string difference_of_runs(std::string_view there, std::string_view here);

struct CheckpointHead {
  std::string precision;  // which load_checkpoint to call
  std::string run;        // as it was saved
};
// @throws std::runtime_error where the file is no checkpoint.
ITSPACE_API CheckpointHead load_checkpoint_head(const std::filesystem::path& path);

// @throws std::runtime_error that names the file, what was found and what is expected.
template <Storage Scalar>
ITSPACE_API Checkpoint<Scalar> load_checkpoint(const std::filesystem::path& path);

}  // namespace itspace::io
