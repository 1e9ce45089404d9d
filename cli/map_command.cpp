// SPDX-License-Identifier: Apache-2.0
//
// itspace map: from two inputs to the transport map between them, with a diagnosis.
#include "align_report.hpp"
#include "arguments.hpp"
#include "commands.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "resolution.hpp"
#include "step_arguments.hpp"
#include "text.hpp"

#include <itspace/align.hpp>
#include <itspace/map_file.hpp>
#include <itspace/transport_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace map --source src.npy --target tgt.npy --rank 16 --steps 2 --out map.npz
      from the features of two domains; then: itspace transform --map map.npz --in tgt.npy --out mapped.npy
  itspace map --source src.npy --target tgt.npy --rank 16 --steps 4 --solver ritz --kind whiten --out map.npz --json
      whitening, then recoloring, from factors at the floor; the diagnosis as one JSON object
  itspace map --source src.npz --target tgt.npz --rank 32 --steps 5 --out map.npz --trace run.json
      from statistics (keys mu and sigma)

It maps target samples into the source's frame: x -> mean_source + A (x - mean_target), where A carries the
target's covariance to the source's, both modelled as rank r plus a multiple of the identity. The source is cut
to rank r; the target's factor is aligned in K steps, from the source's. `itspace transform` applies the map.
A map helps where the domains differ in mean and covariance. Where samples are few, or the shift is of another
kind, it can hurt: read the diagnosis, and compare with no map at all.)";

struct Arguments {
  Request source{"source", "--source-as"}, target{"target", "--target-as"};
  Index rank = 0;
  MapKind kind = MapKind::monge;
  double floor_share = default_remainder_floor;
  StepArguments step;
  AlignOptions options;
  Precision precision = Precision::automatic;
  std::filesystem::path out, trace;
  bool trust = false, json = false, quiet = false;
};

void check_arguments(const Arguments& given) {
  check_at_least("--rank", given.rank, 1);
  check_at_least("--steps", given.options.steps, 0);
  for (const Request* request : {&given.source, &given.target})
    if (request->as == Kind::factor)
      misuse(fmt::format("{} is factor, but a factor does not tell what lies beyond its rank", request->as_option),
             "give features or a covariance");
  if (!(given.floor_share > 0 && given.floor_share <= 1))
    misuse(fmt::format("--floor-share is {}, outside (0, 1]", given.floor_share),
           "give the least share of the mean variance that the remainder may have, for instance 1e-6");
  check_files({{"--source", given.source.path}, {"--target", given.target.path}},
              {{"--out", given.out}, {"--trace", given.trace}});
}

template <Storage Scalar>
bool has_mean(const Input<Scalar>& input) {
  if (input.kind == Kind::features) return true;
  const auto keys = io::array_keys(input.request.path);
  return std::find(keys.begin(), keys.end(), "mu") != keys.end();
}

struct Means {
  Eigen::VectorXd source, target;
  bool known = true;
};

// One mean without the other would move samples by a whole mean, so both are known or both are zero.
template <Storage Scalar>
Means means_of(const Arguments& given, const Input<Scalar>& source, const Input<Scalar>& target) {
  for (const auto* input : {&source, &target})
    if (!has_mean(*input)) {
      if (!given.quiet)
        print_note(
            fmt::format("{} {} is a covariance without a mean (no key mu), so both means are taken for 0: feed "
                        "`itspace transform` with centred samples",
                        input->request.role, quoted(input->request.path)));
      const Eigen::VectorXd zero = Eigen::VectorXd::Zero(source.dim());
      return {zero, zero, false};
    }
  return {mean_of(source), mean_of(target)};
}

template <Storage Scalar>
std::optional<Index> samples_of(const Input<Scalar>& input) {
  if (input.kind != Kind::features) return std::nullopt;
  return input.values.rows();
}

template <Storage Scalar>
Json input_json(const Input<Scalar>& input) {
  return {{"path", input.request.path.string()}, {"taken_for", name(input.kind)}, {"why", input.why}};
}

Json diagnosis_json(const TransportMap& map, const MapDiagnosis& diagnosis) {
  const auto& parts = map.parts();
  return {{"kind", name(map.kind())},
          {"dim", map.dim()},
          {"map_rank", parts.core.rows()},
          {"scalar", parts.scalar},
          {"remainder_target", parts.from_remainder},
          {"remainder_source", parts.to_remainder},
          {"displacement", diagnosis.displacement},
          {"relative_displacement", diagnosis.relative_displacement},
          {"mean_share", diagnosis.mean_share},
          {"touched_variance", diagnosis.touched_variance},
          {"condition", diagnosis.condition},
          {"warnings", diagnosis.warnings}};
}

void print_diagnosis(const Arguments& given, const TransportMap& map, const MapDiagnosis& diagnosis,
                     const Trace& trace) {
  const auto line = [](std::string_view label, const std::string& value, std::string_view meaning) {
    print_line(fmt::format("{:<22} {:>12}  {}", label, value, meaning));
  };
  print_line(fmt::format("{} map from target {} into the frame of source {}: dimension {}, acting on {} directions.",
                         map.kind() == MapKind::monge ? "Monge" : "Whitening", quoted(given.target.path),
                         quoted(given.source.path), map.dim(), map.parts().core.rows()));
  line("displacement", fmt::format("{:.6g}", diagnosis.displacement), "mean squared distance a sample is moved");
  line("relative displacement", fmt::format("{:.4g}", diagnosis.relative_displacement),
       "its root, in units of the target's spread");
  line("mean share", percent(diagnosis.mean_share), "of the displacement is the shift of the means");
  line("touched variance", percent(diagnosis.touched_variance), "of the target's lies in the directions acted on");
  line("condition", fmt::format("{:.4g}", diagnosis.condition), "largest over smallest stretch");
  print_line("\nThe target's factor, aligned from the source's:\n" + AlignReport(std::nullopt).summary(trace));
  print_line(fmt::format("The map is in {}; apply it with\n  itspace transform --map {} --in X.npy --out mapped.npy",
                         quoted(given.out), quoted(given.out)));
}

struct MapMade {
  TransportMap map;
  Trace trace;  // of the target's alignment
};

// Nothing where the watch has given up.
template <Storage Scalar, Storage Data>
std::optional<MapMade> make_map(const Arguments& given, const Input<Data>& source, const Input<Data>& target,
                                const Means& means, ResolutionWatch& watch) {
  const ProblemTarget<Scalar, Data> source_problem(source, {}, 0), target_problem(target, {}, 0);
  const Block<Scalar> source_factor = start_of<Scalar>(source, given.rank);
  const OnStep<Scalar> on_step = [&](const Step& step, const ConstBlockView<Scalar>&) {
    watch.see(step);
    return watch.given_up() ? StepAction::stop : StepAction::proceed;
  };
  Result<Scalar> aligned = align<Scalar>(target_problem.ref(), source_factor, given.options, on_step);
  if (watch.given_up()) return std::nullopt;
  name_precision<Scalar, Data>(aligned.trace);
  return guard_overflow([&] {
    const auto from = model_of<Scalar>(target_problem.ref(), aligned.factor, means.target, given.floor_share);
    const auto to = model_of<Scalar>(source_problem.ref(), source_factor, means.source, given.floor_share);
    return std::optional<MapMade>({TransportMap(from, to, given.kind), std::move(aligned.trace)});
  });
}

template <Storage Data>
int run_on(const Arguments& given, io::Array source_array, io::Array target_array) {
  const Checks checks{.trust = given.trust, .quiet = given.quiet};
  const auto source = load<Data>(given.source, std::move(source_array), checks);
  const auto target = load<Data>(given.target, std::move(target_array), checks);
  if (!given.quiet) {
    print_note(source.note());
    print_note(target.note());
  }
  check_same_dim(source, target);
  check_rank(given.rank, source.dim(), given.source.path);
  const Means means = means_of(given, source, target);

  Progress progress(!given.quiet && source.dim() >= long_work);
  progress.show("making the map");
  const auto made = in_enough_precision<Data>(given.precision, given.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
    return make_map<Scalar, Data>(given, source, target, means, watch);
  });
  const TransportMap& map = made->map;
  const Trace& trace = made->trace;
  const MapDiagnosis diagnosis =
      map.diagnose(samples_of(target), samples_of(source), {.from = "the target", .to = "the source"});
  progress.clear();

  io::Outputs outputs;
  io::save_map(outputs, given.out, map);
  if (!given.trace.empty()) io::save_text(outputs, given.trace, io::to_json(trace));
  commit(outputs);
  if (given.json) {
    Json json{{"command", "map"}, {"source", input_json(source)}, {"target", input_json(target)}};
    json["rank"] = given.rank;
    json["means_known"] = means.known;
    json.update(diagnosis_json(map, diagnosis));
    json["align"] = align_json(trace, std::nullopt);
    json["out"] = given.out.string();
    print_json(json);
  } else if (!given.quiet) {
    print_diagnosis(given, map, diagnosis, trace);
  }
  if (!given.quiet)
    for (const auto& warning : diagnosis.warnings) print_note("warning: " + warning);
  const bool aligned_badly = failed(trace.status);
  if (aligned_badly)
    print_error(
        fmt::format("the alignment of the target ended as {} after {} of {} steps\nthe map in {} is made from "
                    "the best iterate",
                    name(trace.status), trace.steps.size() - 1, given.options.steps, quoted(given.out)));
  const bool finite = check_finite_result({{"displacement", diagnosis.displacement},
                                           {"relative_displacement", diagnosis.relative_displacement},
                                           {"condition", diagnosis.condition}});
  return aligned_badly || !finite ? exit_code::outcome : exit_code::success;
}

int run(Arguments& given) {
  given.options.step_size = given.step.size();
  check_arguments(given);
  auto source = open(given.source), target = open(given.target);
  io::check_writable(given.out);
  if (!given.trace.empty()) io::check_writable(given.trace);
  return with_data_type(given.precision, {&source, &target},
                        [&]<class Data>() { return run_on<Data>(given, std::move(source), std::move(target)); });
}

void add_input(CLI::App& app, Request& request, const std::string& help) {
  const std::string flag = "--" + request.role;
  add_path(app, flag, request.path, help)->required()->group(input_group);
  add_kind(app, flag + "-as", request.as, "take it for: auto, covariance, features (n x d)")->group(input_group);
  app.add_option(flag + "-key", request.key, "its name in an .npz")->type_name("NAME")->group(input_group);
}

void add_steps(CLI::App& app, Arguments& given) {
  const std::string group = "Map";
  add_whole(app, "--rank", given.rank, "the rank r of both models, 1 to d")->required()->group(group);
  app.add_option_function<std::string>(
         "--kind",
         [&given](const std::string& text) {
           const auto kind = map_kind_named(text);
           if (!kind) misuse(fmt::format("--kind is '{}', which is no kind of map", text), "give monge or whiten");
           given.kind = *kind;
         },
         "monge: the optimal transport, moves samples least;\nwhiten: whitening, then recoloring, the paper's map")
      ->type_name("KIND")
      ->default_str(std::string(name(given.kind)))
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

Command add_map(CLI::App& program) {
  CLI::App* app = program.add_subcommand("map", "make the map that takes target samples into the source's frame");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_input(*app, given->source, "the frame to map into: an .npy or .npz file");
  add_input(*app, given->target, "where the samples come from: an .npy or .npz file");
  add_trust(*app, given->trust)->group(input_group);
  add_precision(*app, given->precision)->group(input_group);
  add_threads(*app)->group(input_group);
  add_steps(*app, *given);
  const std::string group = "Output";
  add_path(*app, "--out", given->out, "the map (.npz, format itspace.map/1)")->required()->group(group);
  add_path(*app, "--trace", given->trace, "the record of the target's alignment (JSON)")->group(group);
  app->add_flag("--json", given->json, "print one JSON object")->group(group);
  app->add_flag("--quiet", given->quiet, "print nothing but errors")->group(group);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
