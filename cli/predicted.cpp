// SPDX-License-Identifier: Apache-2.0
#include "predicted.hpp"

#include "text.hpp"

#include <itspace/io.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace itspace::cli {
namespace {

Index whole(const std::filesystem::path& path, const Block<double>& labels, Index i) {
  constexpr double largest = 9007199254740992.0;  // 2^53
  const double label = labels(i, 0);
  if (!(std::abs(label) <= largest && label == std::floor(label)))
    misuse(fmt::format("{}: label {} is {}, not a whole number", quoted(path), i, label),
           "give classes as whole numbers");
  return static_cast<Index>(label);
}

}  // namespace

Block<double> read_answers(const std::filesystem::path& path) {
  const io::Array array = io::open_array(path);
  const bool labels = array.info().shape.size() == 1;
  const auto held = array.as<double>();
  Block<double> values = held.view();
  if (labels) values = Block<double>(Eigen::Map<const Eigen::VectorXd>(values.data(), values.size()));
  return values;
}

ClassBalance balance_of_labels(const std::filesystem::path& path) {
  const Block<double> labels = read_answers(path);
  if (labels.cols() != 1 || labels.rows() == 0)
    misuse(fmt::format("{} is {} x {}, not the labels of a source", quoted(path), labels.rows(), labels.cols()),
           "give an array of one dimension, a class for each sample of the source");
  std::map<Index, double> counts;
  for (Index i = 0; i < labels.rows(); ++i) counts[whole(path, labels, i)] += 1;
  ClassBalance balance{.shares = Vector(static_cast<Index>(counts.size())), .classes = {}};
  Index next = 0;
  for (const auto& [label, count] : counts) {
    balance.shares(next++) = count / static_cast<double>(labels.rows());
    balance.classes.push_back(std::to_string(label));
  }
  return balance;
}

PredictedFile::PredictedFile(const std::filesystem::path& path, Index samples, const ClassBalance& balance) {
  const Block<double> values = read_answers(path);
  if (values.rows() != samples)
    misuse(
        fmt::format("{} has predictions for {} samples, and its batches have {}", quoted(path), values.rows(), samples),
        "give one for each row of the file it belongs to");
  if (values.cols() != 1) {
    probabilities_ = values;
    return;
  }
  for (Index i = 0; i < samples; ++i) {
    const std::string name = std::to_string(whole(path, values, i));
    const auto found = std::find(balance.classes.begin(), balance.classes.end(), name);
    if (found == balance.classes.end())
      misuse(fmt::format("{}: sample {} is of class {}, which the source does not have: its classes are {}",
                         quoted(path), i, name, fmt::join(balance.classes, ", ")),
             "leave such samples out");
    labels_.push_back(found - balance.classes.begin());
  }
}

Predicted PredictedFile::rows(Index first, Index count) const {
  Predicted predicted;
  if (labels_.empty())
    predicted.probabilities = probabilities_.middleRows(first, count);
  else
    predicted.labels.assign(labels_.begin() + first, labels_.begin() + first + count);
  return predicted;
}

}  // namespace itspace::cli
