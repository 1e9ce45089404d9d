// SPDX-License-Identifier: Apache-2.0
//
// itspace gate: whether a map helps, by a classifier's predictions before and after it.
#include "arguments.hpp"
#include "commands.hpp"
#include "text.hpp"

#include <itspace/gate.hpp>
#include <itspace/io.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace itspace::cli {
namespace {

constexpr auto examples = R"(
Examples:
  itspace gate --before p.npy --after p_scale.npy
      class probabilities (n x K) of the target's samples as they are and after a map
  itspace gate --before y.npy --after y_scale.npy --classes 10 --json
      predicted labels (n) of 10 classes, and the decision as JSON
  itspace gate --before p.npy --after p_scale.npy --further p_scale_monge.npy
      and after the map that goes further, which must earn that

Exit code 0 whatever is decided: read `choice`. No labels of the target are used, so that a change of class
shares cannot be excluded. docs/should-i-adapt.md says what the rule is worth.)";

struct Arguments {
  std::filesystem::path before, after, further;
  std::int64_t classes = 0;
  double left_over = -1;
  bool json = false;
};

struct Answers {
  std::string flag;
  Block<double> values;  // one column: labels
  bool are_labels() const { return values.cols() == 1; }
};

Answers read(const std::string& flag, const std::filesystem::path& path) {
  const io::Array array = io::open_array(path);
  const auto held = array.as<double>();
  Answers answers{flag, held.view()};
  if (answers.values.rows() == 1) answers.values = answers.values.transpose().eval();
  return answers;
}

Index classes_of(const Arguments& given, const std::vector<Answers>& all) {
  std::set<double> seen;
  for (const Answers& answers : all) seen.insert(answers.values.data(), answers.values.data() + answers.values.size());
  return std::max<Index>(given.classes, static_cast<Index>(seen.size()));
}

Predictions numbers_of(const Answers& answers, Index classes) {
  try {
    return answers.are_labels() ? predictions_of_labels(answers.values.col(0), classes)
                                : predictions_of(answers.values);
  } catch (const std::invalid_argument& error) {
    misuse(fmt::format("{}: {}", answers.flag, error.what()), "see `itspace gate --help`");
  }
}

Json json_of(const Predictions& predictions) {
  Json json{{"spread", predictions.spread}, {"information", nullptr}};
  if (predictions.information) json["information"] = *predictions.information;
  return json;
}

int run(const Arguments& given) {
  std::vector<Answers> all{read("--before", given.before), read("--after", given.after)};
  if (!given.further.empty()) all.push_back(read("--further", given.further));
  for (const Answers& answers : all)
    if (answers.values.rows() != all[0].values.rows() || answers.values.cols() != all[0].values.cols())
      misuse(fmt::format("--before is {} x {} and {} is {} x {}; they must be of the same samples and classes",
                         all[0].values.rows(), all[0].values.cols(), answers.flag, answers.values.rows(),
                         answers.values.cols()),
             "give the predictions for the same samples, in the same order");
  const Index classes = all[0].are_labels() ? classes_of(given, all) : 0;
  GateEvidence evidence{numbers_of(all[0], classes), numbers_of(all[1], classes)};
  if (all.size() > 2) evidence.scale_monge = numbers_of(all[2], classes);
  if (given.left_over >= 0) evidence.unexplained = given.left_over;
  const GateDecision decision = decide(evidence);
  const std::string choice = decision.choice == "none" ? "none" : decision.choice == "scale" ? "after" : "further";
  if (!given.json) {
    print_line(fmt::format("choice  {}", choice));
    print_line(fmt::format("why     {}", decision.sentence));
    return exit_code::success;
  }
  Json candidates{{"none", json_of(evidence.none)}, {"after", json_of(evidence.scale)}};
  if (evidence.scale_monge) candidates["further"] = json_of(*evidence.scale_monge);
  print_json({{"schema", "itspace.gate/1"},
              {"choice", choice},
              {"sentence", decision.sentence},
              {"evidence", all[0].are_labels() ? "labels" : "probabilities"},
              {"candidates", candidates}});
  return exit_code::success;
}

}  // namespace

Command add_gate(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("gate", "whether a map helps, by a classifier's predictions before and after it");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "--before", given->before, "predictions for the target's samples as they are")->required();
  add_path(*app, "--after", given->after, "predictions for the mapped samples")->required();
  add_path(*app, "--further", given->further, "predictions after a map that does more, such as scale+monge");
  app->add_option("--classes", given->classes, "number of classes, for labels; by default those that occur")
      ->check(CLI::Range(1, 1 << 30));
  add_real(*app, "--left-over", given->left_over,
           "share of the mean's move that other class shares cannot explain, where it is known")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--json", given->json, "print one JSON object");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
