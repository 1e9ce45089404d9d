// SPDX-License-Identifier: Apache-2.0
#include "follow_gate.hpp"

#include "arguments.hpp"
#include "input.hpp"
#include "predicted.hpp"
#include "predictions.hpp"

#include <itspace/covariance.hpp>
#include <itspace/map_file.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace itspace::cli {
namespace {

constexpr auto gate_group = "Gate";

std::vector<std::filesystem::path> pair_of(const std::string& text) {
  const auto paths = paths_between_commas(text);
  if (paths.size() != 2 || paths[0].empty() || paths[1].empty())
    misuse(fmt::format("--predictions is '{}', which is not two files with a comma between", text),
           "give the predictions for the samples as they are, then for the mapped ones");
  return paths;
}

std::vector<double> classes_of(const std::filesystem::path& labels) {
  std::vector<double> classes;
  for (const std::string& name : balance_of_labels(labels).classes) classes.push_back(std::stod(name));
  return classes;
}

}  // namespace

void GateArguments::add_files(NamedFiles& inputs, NamedFiles& outputs) const {
  for (const std::string& pair : predictions)
    for (const auto& path : pair_of(pair)) inputs.push_back({"--predictions", path});
  inputs.push_back({"--source", source});
  outputs.push_back({"--map-out", map_out});
  outputs.push_back({"--candidate-out", candidate_out});
}

void add_gate_options(CLI::App& app, GateArguments& given) {
  app.add_option("--predictions", given.predictions,
                 "a classifier's predictions (labels n, or probabilities n x K) for the rows as they\n"
                 "are and under the map; once for each file of batches. They open and close the gate")
      ->type_name("FILE,FILE")
      ->allow_extra_args(false)
      ->group(gate_group);
  add_path(app, "--source", given.source, "features of the source, the frame that the stream is mapped into")
      ->group(gate_group);
  app.add_option_function<std::string>(
         "--map",
         [&given](const std::string& text) {
           given.kind = map_kind_named(text);
           if (!given.kind || *given.kind == MapKind::scale_monge)
             misuse(fmt::format("--map is '{}', which is no map of a stream", text),
                    "give scale, mean, monge or whiten");
         },
         "from the stream to the source: scale, mean, monge or whiten (default scale),\n"
         "of which only what is beyond noise is kept")
      ->type_name("KIND")
      ->group(gate_group);
  add_path(app, "--map-out", given.map_out, "the map while the gate is open, the identity while it is closed (.npz)")
      ->group(gate_group);
  add_path(app, "--candidate-out", given.candidate_out,
           "the map, whatever the gate says: to ask the classifier about the next batch (.npz)")
      ->group(gate_group);
  add_whole(app, "--gate-samples", given.samples, "decide by the last so many samples (default 512)")
      ->group(gate_group);
  add_whole(app, "--patience", given.patience, "batches in a row that it takes to open or close (default 1)")
      ->group(gate_group);
}

void check_gate(const GateArguments& given, const std::vector<std::string>& files) {
  if (!given.predictions.empty() && given.predictions.size() != files.size())
    misuse(
        fmt::format("--predictions is given {} times for {} files of batches", given.predictions.size(), files.size()),
        "give one for each, in their order, or none");
  if (!given.predictions.empty() && std::count(files.begin(), files.end(), "-") > 0)
    misuse("--predictions is given with standard input (-)", "give the batches as files");
  for (const auto& [option, path] :
       {std::pair{"--map-out", &given.map_out}, {"--candidate-out", &given.candidate_out}}) {
    if (path->empty()) continue;
    if (given.source.empty())
      misuse(fmt::format("{} is given without --source", option), "give the features that the map leads to");
    if (*path == "-") misuse(fmt::format("{} is -", option), "give it a file: standard output has the lines");
    io::check_writable(*path);
  }
  if (given.samples) check_at_least("--gate-samples", *given.samples, 1);
  if (given.patience) check_at_least("--patience", *given.patience, 1);
  if (!given.asked_for() && (given.kind || given.samples || given.patience))
    misuse("--map, --gate-samples or --patience is given without --predictions and --source",
           "give the predictions for each file, or the source");
}

std::optional<FollowGate> gate_of(const GateArguments& given, std::optional<FollowGate> found,
                                  const std::filesystem::path& source_labels, const std::filesystem::path& state) {
  if (!found && !given.asked_for()) return std::nullopt;
  const std::vector<double> classes = source_labels.empty() ? std::vector<double>() : classes_of(source_labels);
  if (!found) {
    FollowGateOptions options{.maps = {given.kind.value_or(MapKind::scale)}, .classes = classes};
    options.samples = given.samples.value_or(options.samples);
    options.patience = given.patience.value_or(options.patience);
    return FollowGate(options);
  }
  const FollowGateOptions& held = found->options();
  const auto same = [&](std::string_view flag, bool asked, const auto& value, const auto& other) {
    if (asked && value != other)
      misuse(fmt::format("{} is {}, and the gate in {} has {}", flag, value, quoted(state), other),
             fmt::format("leave {} out to go on, or give --state another file to begin anew", flag));
  };
  const MapKind kind = held.maps.front();
  same("--map", given.kind.has_value(), name(given.kind.value_or(kind)), name(kind));
  same("--gate-samples", given.samples.has_value(), given.samples.value_or(0), held.samples);
  same("--patience", given.patience.has_value(), given.patience.value_or(0), held.patience);
  if (!classes.empty() && classes != held.classes)
    misuse(fmt::format("--source-labels has other classes than the gate in {}: {} and {}", quoted(state),
                       fmt::join(classes, ", "),
                       held.classes.empty() ? "none" : fmt::format("{}", fmt::join(held.classes, ", "))),
           "leave it out to go on, or give --state another file to begin anew");
  return found;
}

AnswersFile::AnswersFile(const std::string& pair, Index samples) {
  const auto paths = pair_of(pair);
  before_ = read_answers(paths[0]);
  after_ = read_answers(paths[1]);
  for (const auto& [path, answers] : {std::pair{&paths[0], &before_}, {&paths[1], &after_}})
    if (answers->rows() != samples)
      misuse(fmt::format("{} has predictions for {} samples, and its batches have {}", quoted(*path), answers->rows(),
                         samples),
             "give one for each row of the file it belongs to");
}

GateAnswers AnswersFile::rows(Index first, Index count) const {
  return {before_.middleRows(first, count), {after_.middleRows(first, count)}};
}

template <Storage Scalar>
GatedStream<Scalar>::GatedStream(const GateArguments& given, FollowGate gate, Index rank, Index dim)
    : given_(given), gate_(std::move(gate)) {
  if (given.source.empty()) return;
  const Request request{.role = "source", .as_option = "--source", .path = given.source, .as = Kind::features};
  const Input<Scalar> source = load<Scalar>(request, open(request), {});
  if (source.dim() != dim)
    misuse(
        fmt::format("--source {} has dimension {}, and the batches have {}", quoted(given.source), source.dim(), dim),
        "give features of the same kind");
  const FeaturesTarget<Scalar> target(source.values);
  const Block<Scalar> factor = start_from_features<Scalar>(source.values.view(), std::min(rank, dim));
  source_ = model_of<Scalar>(target, factor, target.mean(),
                             ModelOptions{.deviations = deviations<Scalar>(source.values.view()),
                                          .samples = static_cast<double>(source.values.rows())});
  clusters_ = cluster_means<Scalar>(source.values.view(), source_->mean, source_->factor);
}

template <Storage Scalar>
std::optional<FollowedShift> GatedStream<Scalar>::shift_of(const OnlineAligner<Scalar>& aligner) const {
  if (!source_ || aligner.parts().factor.size() == 0) return std::nullopt;
  return followed_shift(*source_, aligner.model(), &clusters_);
}

template <Storage Scalar>
Json GatedStream<Scalar>::observe(const OnlineAligner<Scalar>& aligner, const std::optional<GateAnswers>& answers) {
  if (!answers || answers->before.rows() == 0) return {{"choice", gate_.choice()}, {"asked", false}};
  const auto shift = shift_of(aligner);
  const FollowVerdict verdict = gate_.observe(*answers, shift ? shift->moments : MomentEvidence());
  Json entry{{"choice", verdict.choice},        {"asked", true},
             {"says", verdict.decision.choice}, {"sentence", verdict.decision.sentence},
             {"samples", verdict.samples},      {"evidence", verdict.are_labels ? "labels" : "probabilities"},
             {"candidates", Json::object()},    {"unexplained", nullptr}};
  entry["candidates"]["none"] = json_of(verdict.predictions[0]);
  entry["candidates"][std::string(name(gate_.options().maps.front()))] = json_of(verdict.predictions[1]);
  if (shift && shift->moments.unexplained) entry["unexplained"] = *shift->moments.unexplained;
  return entry;
}

template <Storage Scalar>
void GatedStream<Scalar>::save_maps(const OnlineAligner<Scalar>& aligner) const {
  if (given_.map_out.empty() && given_.candidate_out.empty()) return;
  const TransportMap identity(*source_, *source_, MapKind::mean, Kept{.mean = 0});
  const MapKind kind = gate_.options().maps.front();
  const auto shift = shift_of(aligner);  // nothing before there are two samples that differ
  const TransportMap candidate = shift ? aligner.map(*source_, kind, shift->kept(kind)) : identity;
  io::Outputs outputs;
  if (!given_.map_out.empty()) io::save_map(outputs, given_.map_out, gate_.is_open() ? candidate : identity);
  if (!given_.candidate_out.empty()) io::save_map(outputs, given_.candidate_out, candidate);
  commit(outputs);
}

template class GatedStream<float>;
template class GatedStream<double>;

}  // namespace itspace::cli
