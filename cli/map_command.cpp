// SPDX-License-Identifier: Apache-2.0
//
// itspace map: from two inputs to the transport map between them, with a diagnosis.
#include "align_report.hpp"
#include "commands.hpp"
#include "map_arguments.hpp"
#include "map_gate.hpp"
#include "map_inputs.hpp"
#include "map_report.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "resolution.hpp"
#include "text.hpp"

#include <itspace/align.hpp>
#include <itspace/class_shares.hpp>
#include <itspace/covariance.hpp>
#include <itspace/map_file.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/transport_map.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace map --source src.npy --target tgt.npy --rank 16 --steps 2 --out map.npz
      from the features of two domains; then: itspace transform --map map.npz --in tgt.npy --out mapped.npy
  itspace map --source src.npy --target tgt.npy --map scale --out map.npz
      each feature by itself: the means and standard deviations alone, no rank
  itspace map --source src.npy --target tgt.npy --map scale+monge --rank 16 --shrink halves --out map.npz --json
      scaled, then the low-rank map between the correlation matrices, in one application; noise measured by halves
  itspace map --source src.npy --target tgt.npy --map scale --predictions p.npy,p_scale.npy --out map.npz
      the map only where a classifier's predictions before and after it (probabilities n x K, or labels) speak for
      it; else the file holds the identity. --map auto --predictions p.npy,p_scale.npy[,p_both.npy[,p_monge.npy]]
      chooses between scale, scale+monge and monge so. With --remix, here and where the maps for the predictions
      were made, a part of the mean's move is put down to other class shares and left
  itspace map --source src.npy --target tgt.npy --map auto --rank 16 --out map.npz --json
      without a classifier: none, scale or monge by what the moments alone can know
  itspace map --source src.npz --target tgt.npz --source-samples 900 --target-samples 300 --rank 32 --out map.npz
      from statistics (keys mu and sigma), with the counts that tell shift from noise

It maps target samples into the source's frame: x -> mean_source + A (x - mean_target), where A carries the
target's covariance to the source's, both modelled as rank r plus a multiple of the identity. The source is cut
to rank r; the target's factor is aligned in K steps, from the source's. `itspace transform` applies the map.
Two sample sets of one distribution differ too, by noise. --shrink keeps of mean, covariance and scale of each
feature the share max(0, 1 - noise/observed) of the way: noise by the formulas of normal samples (5 more sweeps over
both inputs), or by splitting each input in halves (no normality; a truncation and K + 2 sweeps over half of each).
A map helps where the domains differ in mean and covariance. Where samples are few, or the shift is of another
kind, it can hurt: read the diagnosis, and compare with no map at all.)";

using Arguments = MapArguments;

// What was asked for, or by noise where the counts are known.
template <Storage Scalar>
Shrink shrink_of(const Arguments& given, const Input<Scalar>& source, const Input<Scalar>& target) {
  for (const auto& [input, told] :
       {std::pair{&source, given.source_samples}, std::pair{&target, given.target_samples}}) {
    const bool features = input->kind == Kind::features;
    const std::string& role = input->request.role;
    if (given.shrink == Shrink::halves && !features)
      misuse(fmt::format("--shrink is halves, and {} {} is a covariance, which has no halves", role,
                         quoted(input->request.path)),
             "give features, or use --shrink noise");
    if (given.shrink == Shrink::none || samples_of(*input, told) > 0) continue;
    const std::string missing = fmt::format("{} {} is a covariance, and how many samples are behind it is not known",
                                            role, quoted(input->request.path));
    const std::string remedy = fmt::format("give --{}-samples", role);
    if (given.shrink) misuse(missing, remedy + ", or --shrink none");
    if (!given.quiet) print_note(fmt::format("{}, so the map is not shrunk by noise: {}", missing, remedy));
    return Shrink::none;
  }
  // The constants of a choice by moments were set with halves. Predictions are under maps that were made one by one:
  // the map that is written must be one of them.
  const bool by_moments = given.automatic && given.predictions.empty();
  return given.shrink.value_or(by_moments ? Shrink::halves : Shrink::noise);
}

// Noise is told by the move that was seen, whatever part of it the map leaves.
LowRankGaussian remixed(LowRankGaussian to, const Means& means) {
  if (means.remixed) to.mean = *means.remixed;
  return to;
}

// Nothing where the watch has given up. The inputs are as the models are to have them.
template <Storage Scalar, Storage Data>
std::optional<MapMade> make_map(const Arguments& given, Shrink shrink, const Input<Data>& source,
                                const LowRankGaussian& source_moments, const Input<Data>& target,
                                const LowRankGaussian& target_moments, const Means& means, ResolutionWatch& watch) {
  const ProblemTarget<Scalar, Data> source_problem(source, {}, 0), target_problem(target, {}, 0);
  const Block<Scalar> source_factor = start_of<Scalar>(source, *given.rank);
  const OnStep<Scalar> on_step = [&](const Step& step, const ConstBlockView<Scalar>&) {
    watch.see(step);
    return watch.given_up() ? StepAction::stop : StepAction::proceed;
  };
  Result<Scalar> aligned = align<Scalar>(target_problem.ref(), source_factor, given.options, on_step);
  if (watch.given_up()) return std::nullopt;
  name_precision<Scalar, Data>(aligned.trace);
  return guard_overflow([&] {
    const auto options_of = [&](const LowRankGaussian& moments) {
      return ModelOptions{.floor = given.floor_share,
                          .deviations = moments.deviations,
                          .standardised = given.kind == MapKind::scale_monge,
                          .samples = moments.samples};
    };
    const auto from =
        model_of<Scalar>(target_problem.ref(), aligned.factor, target_moments.mean, options_of(target_moments));
    const auto to =
        model_of<Scalar>(source_problem.ref(), source_factor, source_moments.mean, options_of(source_moments));
    SeenShift seen;
    if (shrink == Shrink::noise)
      seen = seen_shift<Scalar>(target_problem.ref(), from, source_problem.ref(), to, given.kind, given.options.seed);
    if (shrink == Shrink::halves)
      seen = seen_shift_by_halves<Data>(target.values.view(), from, source.values.view(), to, given.kind, given.options,
                                        given.floor_share);
    const Kept kept = shrink == Shrink::none ? Kept{} : seen.kept();
    return std::optional<MapMade>(
        {TransportMap(from, remixed(to, means), given.kind, kept), std::move(aligned.trace), seen});
  });
}

// Without a low-rank part: the moments say all.
template <Storage Data>
MapMade make_plain_map(const Arguments& given, Shrink shrink, const Input<Data>& source, const LowRankGaussian& to,
                       const Input<Data>& target, const LowRankGaussian& from, const Means& means) {
  return guard_overflow([&] {
    SeenShift seen;
    if (shrink == Shrink::noise) seen = seen_shift(from, to, given.kind);
    if (shrink == Shrink::halves)
      seen = seen_shift_by_halves<Data>(target.values.view(), from, source.values.view(), to, given.kind);
    const Kept kept = shrink == Shrink::none ? Kept{} : seen.kept();
    return MapMade{TransportMap(from, remixed(to, means), given.kind, kept), std::nullopt, seen};
  });
}

template <Storage Data>
MapMade make_any_map(const Arguments& given, Shrink shrink, const Input<Data>& source, const Input<Data>& target,
                     const Means& means) {
  const auto from = moments_of(target, means.target, samples_of(target, given.target_samples));
  const auto to = moments_of(source, means.source, samples_of(source, given.source_samples));
  if (!is_low_rank(given)) return make_plain_map(given, shrink, source, to, target, from, means);
  const bool scaled = given.kind == MapKind::scale_monge;
  const Input<Data> source_frame = scaled ? standardised(source, to) : source;
  const Input<Data> target_frame = scaled ? standardised(target, from) : target;
  return *in_enough_precision<Data>(given.precision, given.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
    return make_map<Scalar, Data>(given, shrink, source_frame, to, target_frame, from, means, watch);
  });
}

template <Storage Data>
ClusterMeans clusters_of(const Arguments& given, const Input<Data>& source, const Eigen::VectorXd& mean) {
  constexpr Index default_rank = 16;
  const Index rank = std::min(given.rank.value_or(default_rank), source.dim());
  const Block<double> factor = start_of<double>(source, rank);
  return cluster_means<Data>(source.values.view(), mean, factor, given.options.seed);
}

// The means, with the source's remixed where that was asked for.
template <Storage Data>
Means remix_if_asked(const Arguments& given, const Input<Data>& source, const Input<Data>& target, Means means) {
  if (!given.remix) return means;
  for (const Input<Data>* input : {&source, &target})
    if (input->kind != Kind::features)
      misuse(fmt::format("--remix is given, and {} {} is a covariance, which does not tell how samples lie",
                         input->request.role, quoted(input->request.path)),
             "give features, or leave out --remix");
  means.remixed = remixed_mean(clusters_of(given, source, means.source), means.source, means.target);
  return means;
}

// The share of the mean's squared move that a remixed map leaves, where there is one.
std::optional<double> put_down_to_class_shares(const Means& means) {
  if (!means.remixed) return std::nullopt;
  const double whole = (means.source - means.target).squaredNorm();
  return whole > 0 ? 1 - (*means.remixed - means.target).squaredNorm() / whole : 0;
}

// The share of the mean's move that other class shares cannot explain. Nothing where there are no samples to cluster.
template <Storage Data>
std::optional<double> unexplained_of(const Arguments& given, const Input<Data>& source, const LowRankGaussian& to,
                                     const LowRankGaussian& from) {
  if (source.kind != Kind::features || !(from.samples > 0)) return std::nullopt;
  const Seen moved = seen_shift(from, to, MapKind::mean).mean;
  if (!(moved.kept() > 0)) return 0.0;
  const ClusterMeans clusters = clusters_of(given, source, to.mean);
  return unexplained_move(clusters, to.mean, from.mean, from.deviations.squaredNorm() / from.samples);
}

struct Chosen {
  MapMade made;
  std::optional<MapDecision> decided;  // where there was something to decide
};

// The map that was asked for, or the one that the predictions and moments speak for.
template <Storage Data>
Chosen choose_map(const Arguments& given, Shrink shrink, const Input<Data>& source, const Input<Data>& target,
                  const Means& means) {
  const auto make = [&](MapKind kind) {
    Arguments own = given;
    own.kind = kind;
    own.automatic = false;
    MapMade made = make_any_map(own, shrink, source, target, means);
    made.remixed = put_down_to_class_shares(means);
    return made;
  };
  if (!given.automatic && given.predictions.empty()) return {make(given.kind), std::nullopt};
  for (const Input<Data>* input : {&source, &target})
    if (given.automatic && input->kind != Kind::features)
      misuse(fmt::format("--map is auto, and {} {} is a covariance, which does not tell how samples lie",
                         input->request.role, quoted(input->request.path)),
             "give features, or name the map");
  std::optional<PredictionNumbers> numbers;
  if (!given.predictions.empty()) {
    numbers =
        read_predictions(prediction_files(given.predictions, kind_asked_for(given)), 0, "see `itspace map --help`");
    if (target.kind == Kind::features && numbers->samples != target.values.rows())
      print_note(fmt::format("the predictions are of {} samples, and the target has {}", numbers->samples,
                             target.values.rows()));
  }
  const auto from = moments_of(target, means.target, samples_of(target, given.target_samples));
  const auto to = moments_of(source, means.source, samples_of(source, given.source_samples));
  const auto unchanged = [&] { return MapMade{TransportMap(from, to, MapKind::mean, {.mean = 0}), std::nullopt, {}}; };
  MomentEvidence moments;
  if (means.known) moments.unexplained = unexplained_of(given, source, to, from);
  if (!given.automatic) {
    const MapDecision decided = decide_about(name(given.kind), *numbers, moments);
    return {decided.opens() ? make(given.kind) : unchanged(), decided};
  }
  MapMade plain = make(MapKind::monge), scaled = make(MapKind::scale_monge);
  const Seen &mean = plain.seen.mean, &covariance = plain.seen.covariance;
  const double both = mean.observed + covariance.observed, source_trace = to.deviations.squaredNorm();
  moments.mean_share = both > 0 ? mean.observed / both : 0;
  moments.mean_kept = mean.kept();
  moments.covariance = covariance.observed / source_trace;
  moments.covariance_kept = covariance.kept();
  moments.covariance_kept_scaled = scaled.seen.covariance.kept();
  const MapDecision decided = decide_among(numbers, moments);
  const std::string& choice = decided.decision.choice;
  if (choice == "monge") return {std::move(plain), decided};
  if (choice == "scale+monge") return {std::move(scaled), decided};
  return {choice == "scale" ? make(MapKind::scale) : unchanged(), decided};
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
  if (given.rank) check_rank(*given.rank, source.dim(), given.source.path);
  const Means means = remix_if_asked(given, source, target, means_of(source, target, given.quiet));

  Progress progress(!given.quiet && source.dim() >= long_work);
  progress.show("making the map");
  const Shrink shrink = shrink_of(given, source, target);
  const Chosen chosen = choose_map(given, shrink, source, target, means);
  const MapMade& made = chosen.made;
  const TransportMap& map = made.map;
  const bool left_alone = chosen.decided && !chosen.decided->opens();
  const MapDiagnosis diagnosis = map.diagnose({}, {}, {.from = "the target", .to = "the source"});
  progress.clear();

  io::Outputs outputs;
  io::save_map(outputs, given.out, map);
  if (!given.trace.empty() && made.trace) io::save_text(outputs, given.trace, io::to_json(*made.trace));
  commit(outputs);
  if (given.json) {
    Json json{{"command", "map"}, {"source", input_json(source)}, {"target", input_json(target)}};
    json["rank"] = is_low_rank(given) ? Json(*given.rank) : Json(nullptr);
    json["means_known"] = means.known;
    json["remixed"] = given.remix;
    json["put_down_to_class_shares"] = made.remixed ? Json(*made.remixed) : Json(nullptr);
    json.update(diagnosis_json(map, diagnosis));
    if (left_alone) json["kind"] = "none";
    json["shrink"] = shrink_json(left_alone ? Shrink::none : shrink, made.seen, map.kind());
    json["gate"] = chosen.decided ? gate_json(*chosen.decided, given.automatic) : Json(nullptr);
    json["align"] = made.trace ? align_json(*made.trace, std::nullopt) : Json(nullptr);
    json["out"] = given.out.string();
    print_json(json);
  } else if (!given.quiet) {
    if (chosen.decided)
      print_line(
          fmt::format("choice  {}\nwhy     {}\n", chosen.decided->decision.choice, chosen.decided->decision.sentence));
    if (left_alone)
      print_line(fmt::format("The map in {} leaves samples as they are.", quoted(given.out)));
    else
      print_diagnosis({given.source.path, given.target.path, given.out}, shrink, made, diagnosis);
  }
  if (!given.quiet && !left_alone)
    for (const auto& warning : diagnosis.warnings) print_note("warning: " + warning);
  const bool aligned_badly = made.trace && failed(made.trace->status);
  if (aligned_badly)
    print_error(
        fmt::format("the alignment of the target ended as {} after {} of {} steps\nthe map in {} is made from "
                    "the best iterate",
                    name(made.trace->status), made.trace->steps.size() - 1, given.options.steps, quoted(given.out)));
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

}  // namespace

Command add_map(CLI::App& program) {
  CLI::App* app = program.add_subcommand("map", "make the map that takes target samples into the source's frame");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_arguments(*app, *given);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
