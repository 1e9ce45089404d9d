// SPDX-License-Identifier: Apache-2.0
//
// Predicted classes from files: whole numbers, one for each sample, or a row of class probabilities for each.
#pragma once

#include <itspace/online_target.hpp>

#include <filesystem>

namespace itspace::cli {

// Of a file, a row for each sample; one column where they are labels.
Block<double> read_answers(const std::filesystem::path& path);

// The classes of a source and their shares, of its labels. @throws std::invalid_argument unless they are whole numbers.
ClassBalance balance_of_labels(const std::filesystem::path& labels);

// The predictions for the rows of one file.
class PredictedFile {
 public:
  // @throws std::invalid_argument naming the file: another number of samples, a class that the source does not have.
  PredictedFile(const std::filesystem::path& path, Index samples, const ClassBalance& balance);
  // Those of rows [first, first + count).
  Predicted rows(Index first, Index count) const;

 private:
  std::vector<Index> labels_;
  Block<double> probabilities_;
};

}  // namespace itspace::cli
