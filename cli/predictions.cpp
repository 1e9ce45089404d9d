// SPDX-License-Identifier: Apache-2.0
#include "predictions.hpp"

#include <itspace/io.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace itspace::cli {
namespace {

struct Answers {
  std::string role;
  Block<double> values;  // one column: labels
  bool are_labels() const { return values.cols() == 1; }
};

Answers read(const PredictionFile& file) {
  const io::Array array = io::open_array(file.path);
  const auto held = array.as<double>();
  Answers answers{file.role, held.view()};
  if (answers.values.rows() == 1) answers.values = answers.values.transpose().eval();
  return answers;
}

Index classes_of(Index classes, const std::vector<Answers>& all) {
  std::set<double> seen;
  for (const Answers& answers : all) seen.insert(answers.values.data(), answers.values.data() + answers.values.size());
  const auto found = static_cast<Index>(seen.size());
  if (classes > 0 && found > classes)
    misuse(fmt::format("--classes is {}, and {} different labels occur", classes, found),
           fmt::format("give {} or more, or leave it out", found));
  return std::max(classes, found);
}

Predictions numbers_of(const Answers& answers, Index classes, const std::string& help) {
  try {
    return answers.are_labels() ? predictions_of_labels(answers.values.col(0), classes)
                                : predictions_of(answers.values);
  } catch (const std::invalid_argument& error) {
    misuse(fmt::format("{}: {}", answers.role, error.what()), help);
  }
}

Eigen::VectorXd labels_of(const Answers& answers) {
  return answers.are_labels() ? Eigen::VectorXd(answers.values.col(0)) : itspace::labels_of(answers.values);
}

}  // namespace

std::vector<std::filesystem::path> paths_between_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return {parts.begin(), parts.end()};
}

PredictionNumbers read_predictions(const std::vector<PredictionFile>& files, Index classes, const std::string& help,
                                   const std::vector<PredictionFile>& second) {
  std::vector<Answers> all;
  for (const PredictionFile& file : files) all.push_back(read(file));
  const Answers& first = all.front();
  for (const Answers& answers : all)
    if (answers.values.rows() != first.values.rows() || answers.values.cols() != first.values.cols())
      misuse(fmt::format("{} is {} x {} and {} is {} x {}; they must be of the same samples and classes", first.role,
                         first.values.rows(), first.values.cols(), answers.role, answers.values.rows(),
                         answers.values.cols()),
             "give the predictions for the same samples, in the same order");
  PredictionNumbers out;
  out.are_labels = first.are_labels();
  out.samples = first.values.rows();
  const Index known = out.are_labels ? classes_of(classes, all) : 0;
  for (const Answers& answers : all) out.each.push_back(numbers_of(answers, known, help));
  for (std::size_t i = 0; i < second.size(); ++i) {
    const Answers other = read(second[i]);
    if (other.values.rows() != out.samples)
      misuse(fmt::format("{} has {} predictions and {} has {}; they must be of the same samples", other.role,
                         other.values.rows(), all[i].role, out.samples),
             "give the predictions for the same samples, in the same order");
    out.each[i] = beside(out.each[i], labels_of(all[i]), labels_of(other),
                         out.are_labels ? known : static_cast<Index>(first.values.cols()));
  }
  return out;
}

Json json_of(const Predictions& predictions) {
  Json json{{"spread", predictions.spread}, {"information", nullptr}};
  if (predictions.information) json["information"] = *predictions.information;
  if (predictions.agreement) json["agreement"] = *predictions.agreement;
  if (predictions.shared) json["shared"] = *predictions.shared;
  return json;
}

}  // namespace itspace::cli
