// SPDX-License-Identifier: Apache-2.0
//
// itspace gate: whether a map helps, by a classifier's predictions before and after it.
#include "arguments.hpp"
#include "commands.hpp"
#include "predictions.hpp"
#include "text.hpp"

#include <itspace/gate.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <memory>
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
  itspace gate --before p.npy --after p_scale.npy --second q.npy,q_scale.npy
      beside what a second classifier says of the same samples

Exit code 0 whatever is decided: read `choice`. `itspace map --predictions` sees the samples, too, and from their
moments how much of the move class shares can explain (--left-over here): it may decide otherwise. No labels of
the target are used, so that a change of class shares cannot be excluded. docs/should-i-adapt.md says what the
rule is worth.)";

struct Arguments {
  std::filesystem::path before, after, further;
  std::string second;
  std::int64_t classes = 0;
  double left_over = -1;
  bool json = false;
};

int run(const Arguments& given) {
  std::vector<PredictionFile> files{{"--before", given.before}, {"--after", given.after}};
  if (!given.further.empty()) files.push_back({"--further", given.further});
  std::vector<PredictionFile> second;
  if (!given.second.empty()) {
    for (const auto& path : paths_between_commas(given.second)) second.push_back({"--second", path});
    if (second.size() != files.size())
      misuse(
          fmt::format("--second names {} files, and there are {} of the first classifier", second.size(), files.size()),
          "give one for --before, one for --after and, with --further, a third, with commas between");
  }
  const PredictionNumbers numbers = read_predictions(files, given.classes, "see `itspace gate --help`", second);
  GateEvidence evidence{numbers.each[0], numbers.each[1]};
  if (files.size() > 2) evidence.scale_monge = numbers.each[2];
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
              {"evidence", numbers.are_labels ? "labels" : "probabilities"},
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
  app->add_option("--second", given->second,
                  "what a second classifier, of another kind, says of the same samples: one file for each of\n"
                  "the first, with commas between. A rise with which the two agree less is none")
      ->type_name("FILE,FILE");
  app->add_option("--classes", given->classes, "number of classes, for labels; by default those that occur")
      ->check(CLI::Range(1, 1 << 30));
  add_real(*app, "--left-over", given->left_over,
           "share of the mean's move that other class shares cannot explain, where it is known")
      ->check(CLI::Range(0.0, 1.0));
  app->add_flag("--json", given->json, "print one JSON object");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
