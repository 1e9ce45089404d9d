// SPDX-License-Identifier: Apache-2.0
//
// A classifier's predictions in files: class probabilities (n x K) or labels (n), all of the same samples.
#pragma once

#include "text.hpp"

#include <itspace/gate.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace itspace::cli {

struct PredictionFile {
  std::string role;  // how messages call it
  std::filesystem::path path;
};

struct PredictionNumbers {
  std::vector<Predictions> each;  // in the order of the files
  bool are_labels = false;
  Index samples = 0;
};

// `classes` is K for labels, 0 for those that occur in any of the files. Misuse names the file's role, and `help` is
// the remedy where a file holds no predictions. `second`, one for each file or none, are those of a second classifier.
PredictionNumbers read_predictions(const std::vector<PredictionFile>& files, Index classes, const std::string& help,
                                   const std::vector<PredictionFile>& second = {});

// "a,b,c" as paths; an empty one (an unset shell variable) stays empty.
std::vector<std::filesystem::path> paths_between_commas(const std::string& text);

Json json_of(const Predictions& predictions);

}  // namespace itspace::cli
