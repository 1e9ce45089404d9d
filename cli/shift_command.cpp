// SPDX-License-Identifier: Apache-2.0
//
// itspace shift: is there a shift between two feature sets at all, of what, and along which directions?
#include "arguments.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/shift_test.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace shift src.npy tgt.npy
      the means and the covariances of two feature sets, each beside what noise alone gives
  itspace shift src.npy tgt.npy --permutations 999 --rank 128 --json
      finer p, more directions, every number as JSON (the directions with their vectors)

Two sample sets of one distribution differ too. The squared distance of the means and W2^2 of the covariances are
held against their mean and spread where there is no shift: by the theory of normal samples, and by permutation. The
permutations decide: theory does not know the tails of the distribution, and calls heavy ones a shift. For the means
the samples themselves are permuted, for the covariances the samples about the mean of their own set. The covariances
are compared inside the leading directions of all samples together. Directions are listed where the mean or the
deviation along them moved beyond noise; where nothing moved the list is empty but with the probability --level.
A shift is no reason to adapt by itself, and no shift is a reason to leave samples alone.)";

struct Arguments {
  Request source{"source", "the command"}, target{"target", "the command"};
  std::string key;
  ShiftTestOptions options;
  Precision precision = Precision::automatic;
  bool json = false, quiet = false;
};

Json outcome_json(const ShiftOutcome& part) {
  return {{"observed", part.observed},
          {"noise", part.noise},
          {"noise_deviation", part.noise_deviation},
          {"z", part.z},
          {"p_normal", part.p_normal},
          {"p_permutation", part.p_permutation}};
}

Json direction_json(const MovedDirection& moved) {
  return {{"number", moved.number},
          {"mean_shift", moved.mean_shift},
          {"mean_z", moved.mean_z},
          {"mean_p", moved.mean_p},
          {"deviation_source", moved.deviation_source},
          {"deviation_target", moved.deviation_target},
          {"deviation_z", moved.deviation_z},
          {"deviation_p", moved.deviation_p},
          {"direction", std::vector<double>(moved.direction.data(), moved.direction.data() + moved.direction.size())}};
}

Json report_json(const ShiftTest& found) {
  Json directions = Json::array();
  for (const MovedDirection& moved : found.directions) directions.push_back(direction_json(moved));
  return {{"command", "shift"},
          {"samples_source", found.samples_source},
          {"samples_target", found.samples_target},
          {"dim", found.dim},
          {"rank", found.rank},
          {"explained", found.explained},
          {"permutations", found.permutations},
          {"mean", outcome_json(found.mean)},
          {"covariance", outcome_json(found.covariance)},
          {"directions", std::move(directions)}};
}

void print_report(const ShiftTest& found) {
  const auto row = [](std::string_view what, const ShiftOutcome& part) {
    print_line(fmt::format("{:<12} {:>12} {:>12} {:>12} {:>8.1f} {:>13} {:>10}", what, small_number(part.observed),
                           small_number(part.noise), small_number(part.noise_deviation), part.z,
                           std::isnan(part.p_permutation) ? "-" : fmt::format("{:.3g}", part.p_permutation),
                           fmt::format("{:.3g}", part.p_normal)));
  };
  print_line(fmt::format("{:<12} {:>12} {:>12} {:>12} {:>8} {:>13} {:>10}", "", "observed", "noise", "its spread", "z",
                         "p permutation", "p normal"));
  row("means", found.mean);
  row("covariances", found.covariance);
  print_line(fmt::format("The covariances in {} leading directions, with {} of the variance; {} permutations.",
                         found.rank, percent(found.explained), found.permutations));
  constexpr std::size_t most = 10;
  const std::size_t count = found.directions.size();
  if (count == 0) {
    print_line("No direction moved beyond noise.");
    return;
  }
  print_line(fmt::format("\n{} of the {} directions moved beyond noise{}:", count, found.rank,
                         count > most ? fmt::format(" (the first {}; --json has all)", most) : ""));
  print_line(fmt::format("{:>9} {:>12} {:>8} {:>12} {:>12} {:>8}  {}", "direction", "mean shift", "z", "deviation",
                         "becomes", "z", "largest coordinate"));
  for (std::size_t i = 0; i < std::min(most, count); ++i) {
    const MovedDirection& moved = found.directions[i];
    Index largest = 0;
    moved.direction.cwiseAbs().maxCoeff(&largest);
    print_line(fmt::format("{:>9} {:>12} {:>8.1f} {:>12} {:>12} {:>8.1f}  {} ({:.2f})", moved.number,
                           small_number(moved.mean_shift), moved.mean_z, small_number(moved.deviation_source),
                           small_number(moved.deviation_target), moved.deviation_z, largest, moved.direction(largest)));
  }
}

template <Storage Data>
int run_on(const Arguments& given, io::Array source_array, io::Array target_array) {
  const auto source = load<Data>(given.source, std::move(source_array), Checks{.trust = true});
  const auto target = load<Data>(given.target, std::move(target_array), Checks{.trust = true});
  if (!given.quiet && !given.json) {
    print_note(source.note());
    print_note(target.note());
  }
  check_same_dim(source, target);
  Progress progress(!given.quiet && source.dim() >= long_work);
  progress.show("permuting");
  const ShiftTest found = shift_test<Data>(source.values.view(), target.values.view(), given.options);
  progress.clear();
  const bool finite =
      check_finite_result({{"the means' distance", found.mean.observed}, {"W2^2", found.covariance.observed}});
  if (given.json)
    print_json(report_json(found));
  else
    print_report(found);
  return finite ? exit_code::success : exit_code::outcome;
}

int run(Arguments& given) {
  check_at_least("--rank", given.options.rank, 1);
  check_at_least("--permutations", given.options.permutations, 0);
  if (!(given.options.level > 0 && given.options.level < 1))
    misuse(fmt::format("--level is {}, outside (0, 1)", given.options.level), "give a probability, for instance 0.05");
  std::tie(given.source.key, given.target.key) = one_or_two("--key", given.key);
  given.source.as = given.target.as = Kind::features;
  auto source = open(given.source), target = open(given.target);
  return with_data_type(given.precision, {&source, &target},
                        [&]<class Data>() { return run_on<Data>(given, std::move(source), std::move(target)); });
}

}  // namespace

Command add_shift(CLI::App& program) {
  CLI::App* app = program.add_subcommand("shift", "test whether two feature sets differ by more than noise");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "SOURCE", given->source.path, "features (n x d): an .npy or .npz file")->required();
  add_path(*app, "TARGET", given->target.path, "features (m x d): an .npy or .npz file")->required();
  app->add_option("--key", given->key, "their names in an .npz (one, or two with a comma)")->type_name("NAME[,NAME]");
  add_whole(*app, "--rank", given->options.rank, "leading directions in which covariances are compared")
      ->default_str(fmt::format("{}", given->options.rank));
  add_whole(*app, "--permutations", given->options.permutations, "0: normal theory alone")
      ->default_str(fmt::format("{}", given->options.permutations));
  add_real(*app, "--level", given->options.level, "of the list of directions as a whole")
      ->default_str(fmt::format("{:g}", given->options.level));
  add_seed(*app, "--seed", given->options.seed, "of the permutations")
      ->default_str(fmt::format("{}", given->options.seed));
  add_precision(*app, given->precision);
  add_threads(*app);
  app->add_flag("--json", given->json, "print one JSON object");
  app->add_flag("--quiet", given->quiet, "print the result alone");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
