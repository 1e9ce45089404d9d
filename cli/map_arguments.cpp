// SPDX-License-Identifier: Apache-2.0
#include "map_arguments.hpp"

#include "map_gate.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <utility>

namespace itspace::cli {

bool is_low_rank(const MapArguments& given) {
  return given.automatic || (given.kind != MapKind::mean && given.kind != MapKind::scale);
}

std::string_view kind_asked_for(const MapArguments& given) {
  return given.automatic ? "auto" : name(given.kind);
}

void check_arguments(const MapArguments& given) {
  if (is_low_rank(given)) {
    if (!given.rank)
      misuse(fmt::format("--rank is required for a map of kind {}", kind_asked_for(given)),
             "give the rank of both models, for instance 16, or --map scale, which needs none");
    check_at_least("--rank", *given.rank, 1);
  }
  if (given.automatic && given.shrink == Shrink::none)
    misuse("--shrink is none, and --map auto decides by what is beyond noise", "give --shrink halves or noise");
  for (const auto& [option, samples] :
       {std::pair{"--source-samples", given.source_samples}, std::pair{"--target-samples", given.target_samples}})
    if (samples) check_at_least(option, *samples, 2);
  check_at_least("--steps", given.options.steps, 0);
  for (const Request* request : {&given.source, &given.target})
    if (request->as == Kind::factor)
      misuse(fmt::format("{} is factor, but a factor does not tell what lies beyond its rank", request->as_option),
             "give features or a covariance");
  if (!(given.floor_share > 0 && given.floor_share <= 1))
    misuse(fmt::format("--floor-share is {}, outside (0, 1]", given.floor_share),
           "give the least share of the mean variance that the remainder may have, for instance 1e-6");
  if (!is_low_rank(given) && !given.trace.empty())
    misuse(fmt::format("--trace is given, but a map of kind {} needs no alignment", name(given.kind)),
           "leave out --trace, or make a low-rank map");
  if (!is_low_rank(given) && given.rank && !given.remix && given.predictions.empty())
    misuse(
        fmt::format("--rank is {}, but a map of kind {} has no low-rank part", *given.rank, name(given.kind)),
        "leave out --rank, or make a low-rank map; with --remix or --predictions it is the rank of the frame that the "
        "source's clusters are found in");
  NamedFiles inputs{{"--source", given.source.path}, {"--target", given.target.path}};
  if (!given.predictions.empty())
    for (const PredictionFile& file : prediction_files(given.predictions, kind_asked_for(given)))
      inputs.push_back({"--predictions", file.path});
  check_files(inputs, {{"--out", given.out}, {"--trace", given.trace}});
}

namespace {

void add_input(CLI::App& app, Request& request, const std::string& help) {
  const std::string flag = "--" + request.role;
  add_path(app, flag, request.path, help)->required()->group(input_group);
  add_kind(app, flag + "-as", request.as, "take it for: auto, covariance, features (n x d)")->group(input_group);
  app.add_option(flag + "-key", request.key, "its name in an .npz")->type_name("NAME")->group(input_group);
}

void add_steps(CLI::App& app, MapArguments& given) {
  const std::string group = "Map";
  const auto set_kind = [&given](const std::string& option) {
    return [&given, option](const std::string& text) {
      const auto kind = map_kind_named(text);
      given.automatic = text == "auto";
      if (!kind && !given.automatic)
        misuse(fmt::format("{} is '{}', which is no kind of map", option, text),
               fmt::format("give {} or auto", map_kind_names()));
      given.kind = kind.value_or(given.kind);
    };
  };
  app.add_option_function<std::string>("--map", set_kind("--map"),
                                       "monge: the optimal transport, moves samples least;\n"
                                       "whiten: whitening, then recoloring, the paper's map;\n"
                                       "mean: the shift of the means alone; scale: each feature by itself;\n"
                                       "scale+monge: monge between the standardised domains, then scaled;\n"
                                       "auto: none, scale, scale+monge or monge, by --predictions or, without\n"
                                       "them, by the moments (features only)")
      ->type_name("KIND")
      ->default_str(std::string(name(given.kind)))
      ->group(group);
  app.add_option_function<std::string>("--kind", set_kind("--kind"), "the same")->group("");  // its first name
  app.add_option("--predictions", given.predictions,
                 "a classifier's predictions for the target's samples as they are and under\n"
                 "the map, and the map only where they speak for it; for auto as they are,\n"
                 "under scale and, as you like, scale+monge and monge")
      ->type_name("FILE,FILE")
      ->group(group);
  app.add_flag("--remix", given.remix,
               "go to the mean that the source would have with the class shares that the\n"
               "target likely has, not to the source's own (features only); give it where\n"
               "the maps for the predictions are made, too")
      ->group(group);
  add_whole(app, "--rank", given.rank, "the rank r of both models, 1 to d; mean and scale have none")->group(group);
  app.add_option_function<std::string>(
         "--shrink",
         [&given](const std::string& text) {
           given.shrink = shrink_named(text);
           if (!given.shrink)
             misuse(fmt::format("--shrink is '{}', which is no way to shrink", text), "give none, noise or halves");
         },
         "keep what is more than noise, known by: noise (the theory of normal\n"
         "samples), halves (splitting both inputs; features only; the default of\n"
         "auto without predictions), none (keep all)")
      ->type_name("WAY")
      ->default_str(std::string(name(Shrink::noise)))
      ->group(group);
  add_whole(app, "--steps", given.options.steps, "steps of the target's factor, from the source's")
      ->default_str(fmt::format("{}", given.options.steps))
      ->group(group);
  add_solver(app, given.options.solver)->group(group);
  add_step_size(app, given.step, group);
  add_real(app, "--floor-share", given.floor_share,
           "the remainder beyond rank r is at least this share of the mean variance;\n"
           "raise it where the condition number is large")
      ->default_str(fmt::format("{:g}", given.floor_share))
      ->group(group);
  add_seed(app, "--seed", given.options.seed, "for everything random")
      ->default_str(fmt::format("{}", given.options.seed))
      ->group(group);
}

}  // namespace

void add_arguments(CLI::App& app, MapArguments& given) {
  add_input(app, given.source, "the frame to map into: an .npy or .npz file");
  add_input(app, given.target, "where the samples come from: an .npy or .npz file");
  add_whole(app, "--source-samples", given.source_samples, "how many are behind it, for a covariance")
      ->group(input_group);
  add_whole(app, "--target-samples", given.target_samples, "how many are behind it, for a covariance")
      ->group(input_group);
  add_trust(app, given.trust)->group(input_group);
  add_precision(app, given.precision)->group(input_group);
  add_threads(app)->group(input_group);
  add_steps(app, given);
  const std::string group = "Output";
  add_path(app, "--out", given.out, "the map (.npz, format itspace.map/2)")->required()->group(group);
  add_path(app, "--trace", given.trace, "the record of the target's alignment (JSON)")->group(group);
  app.add_flag("--json", given.json, "print one JSON object")->group(group);
  app.add_flag("--quiet", given.quiet, "print nothing but errors")->group(group);
}

}  // namespace itspace::cli
