// SPDX-License-Identifier: Apache-2.0
//
// itspace barycenter: from several files to one factor and its trace.
#include "align_report.hpp"
#include "arguments.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "resolution.hpp"
#include "step_arguments.hpp"
#include "text.hpp"

#include <itspace/barycenter.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace barycenter a.npy b.npy c.npy --rank 16 --out Y.npy
      one covariance of rank 16 for three feature sets (or covariances), all of equal weight
  itspace barycenter day*.npy --weights 5,3,1 --rank 8 --steps 200 --tolerance 1e-9 --out Y.npy --trace run.json
      the first counts five times the third; the record of every step
  itspace barycenter runs/*.npy --rank 8 --starts 5 --out Y.npy --json
      the best of five random starts: below full rank there may be several minima
  itspace barycenter many/*.npy --rank 8 --subset 20 --out Y.npy
      many files: move after every 20 of them, in random order

Each input is taken for what `itspace align` would take it for (--as sets it for all), and kinds may differ. The
objective is the weighted mean of W2^2 to the inputs. Weights are divided by their sum. A pass, in the table and the
record, is a sweep over one input. --out and --trace appear together or not at all.)";

struct Arguments {
  std::vector<std::string> files;
  Kind as = Kind::automatic;
  std::string key, weights;
  Request start{"start", "--start"};
  std::filesystem::path out, trace;
  Precision precision = Precision::automatic;
  Index rank = 0;
  StepArguments step;
  BarycenterOptions options;
  bool trust = false, json = false, quiet = false;
};

std::vector<Request> requests_of(const Arguments& given) {
  std::vector<Request> requests;
  for (const std::string& file : given.files) {
    Request request{"input", "--as"};
    request.path = file;
    request.key = given.key;
    request.as = given.as;
    requests.push_back(std::move(request));
  }
  return requests;
}

// "2,1,0.5": one for each file.
Eigen::VectorXd weights_of(const Arguments& given) {
  std::vector<double> values;
  if (given.weights.empty()) return {};
  std::string_view rest = given.weights;
  while (true) {
    const auto comma = rest.find(',');
    values.push_back(parse_real("--weights", rest.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (values.size() != given.files.size())
    misuse(fmt::format("--weights has {} numbers and there are {} inputs", values.size(), given.files.size()),
           "give one weight for each input, with commas between them, or leave out --weights");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] < 0)
      misuse(fmt::format("--weights gives {} the weight {}, below the limit 0",
                         quoted(std::filesystem::path(given.files[i])), values[i]),
             "give 0 or more");
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Index>(values.size()));
}

void check_arguments(Arguments& given) {
  given.options.step_size = given.step.size();
  if (given.options.step_size.kind() == StepSize::Kind::line_search)
    misuse("--alpha is line-search, which would take a second pass over every input in each step",
           "give 0 < alpha < 2, or leave it out for the default");
  check_at_least("--rank", given.rank, 1);
  check_at_least("--steps", given.options.steps, 0);
  check_at_least("--subset", given.options.subset, 0);
  check_at_least("--starts", given.options.starts, 1);
  check_not_negative("--tolerance", given.options.tolerance);
  NamedFiles inputs{{"--start", given.start.path}};
  for (const std::string& file : given.files) {
    if (file.empty())
      misuse("the name of an input is empty", "name an .npy or .npz file; an unset shell variable is a likely cause");
    inputs.push_back({"input", file});
  }
  check_files(inputs, {{"--out", given.out}, {"--trace", given.trace}});
}

template <Storage Scalar>
Json result_json(const Arguments& given, const Barycenter<Scalar>& result, Json inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i]["weight"] = result.weights(static_cast<Index>(i));
    inputs[i]["w2_squared"] = result.objectives(static_cast<Index>(i));
  }
  Json json{{"command", "barycenter"}, {"inputs", std::move(inputs)}};
  json.update(align_json(result.trace, std::nullopt));
  json["start_objectives"] = result.start_objectives;
  json["best_start"] = result.best_start;
  json["out"] = given.out.string();
  return json;
}

template <Storage Scalar>
std::string summary(const Arguments& given, const AlignReport& report, const Barycenter<Scalar>& result) {
  const Trace& trace = result.trace;
  std::string text = report.summary(trace);
  if (result.start_objectives.size() > 1)
    text += fmt::format("\nThe best of {} starts was number {}; they ended at {} to {}.",
                        result.start_objectives.size(), result.best_start + 1,
                        number(*std::min_element(result.start_objectives.begin(), result.start_objectives.end())),
                        number(*std::max_element(result.start_objectives.begin(), result.start_objectives.end())));
  text += fmt::format("\nThe factor ({}) is in {}", shape_text(trace.dim, trace.rank), quoted(given.out));
  if (!given.trace.empty()) text += fmt::format(", the trace in {}", quoted(given.trace));
  return text + ".";
}

template <Storage Scalar, Storage Data>
int run_in(const Arguments& given, const std::deque<Input<Data>>& inputs, const Eigen::VectorXd& weights,
           const std::optional<Block<Scalar>>& start, const Json& described, ResolutionWatch& watch) {
  const bool talkative = !given.quiet && !given.json;
  std::deque<ProblemTarget<Scalar, Data>> problems;  // which are not to be moved
  std::vector<TargetRef<Scalar>> targets;
  for (const Input<Data>& input : inputs) targets.push_back(problems.emplace_back(input, Eigen::VectorXd(), 0.0).ref());
  AlignReport report(std::nullopt, "the inputs, weighted mean");
  Progress progress(!given.quiet);
  watch_for_interrupt();
  const OnStep<Scalar> on_step = [&](const Step& step, const ConstBlockView<Scalar>&) {
    progress.clear();
    watch.see(step);
    if (watch.given_up()) return StepAction::stop;
    if (step.index == 0 && talkative) print_line(report.heading());
    if (talkative) print_line(report.row(step));
    progress.show_step(step.index, given.options.steps);
    return interrupt_asked() ? StepAction::stop : StepAction::proceed;
  };
  Barycenter<Scalar> result = start ? barycenter<Scalar>(targets, weights, *start, given.options, on_step)
                                    : barycenter<Scalar>(targets, weights, given.rank, given.options, on_step);
  progress.clear();
  if (watch.given_up()) return exit_code::success;
  name_precision<Scalar, Data>(result.trace);
  save_run<Scalar>(given.out, given.trace, result);
  if (talkative) print_line("\n" + summary(given, report, result));
  if (given.json) print_json(result_json(given, result, described));
  if (interrupt_asked())
    print_note(fmt::format("stopped by an interrupt; the best iterate is in {}", quoted(given.out)));
  const bool ended_badly = failed(result.status());
  if (ended_badly)
    print_error(fmt::format("the run ended as {}{}\nthe best iterate is in {}", name(result.status()),
                            result.trace.reason.empty() ? "" : ": " + result.trace.reason, quoted(given.out)));
  return ended_badly ? exit_code::outcome : interrupt_exit_code(exit_code::success);
}

template <Storage Data>
int run_on(const Arguments& given, const std::vector<Request>& requests, std::vector<io::Array> arrays,
           const Eigen::VectorXd& weights) {
  std::deque<Input<Data>> inputs;
  Json described = Json::array();
  const Checks checks{.trust = given.trust, .quiet = given.quiet};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    inputs.push_back(load<Data>(requests[i], std::move(arrays[i]), checks));
    const Input<Data>& input = inputs.back();
    if (!given.quiet) print_note(input.note());
    check_same_dim(inputs.front(), input);
    described.push_back(input_json(input));
  }
  check_rank(given.rank, inputs.front().dim(), requests.front().path);
  if (!given.quiet && weights.size() > 0 && weights.sum() != 1)
    print_note(fmt::format("the weights sum to {}; each is divided by that", number(weights.sum())));
  std::optional<Input<double>> from;
  if (!given.start.path.empty()) {
    from = load<double>(given.start, open(given.start), checks, FactorShape{inputs.front().dim(), given.rank});
    if (!given.quiet) print_note(from->note());
    check_same_dim(inputs.front(), *from);
  }
  return in_enough_precision<Data>(given.precision, given.quiet, [&]<class Scalar>(ResolutionWatch& watch) {
    std::optional<Block<Scalar>> start;
    if (from) start = start_of<Scalar>(*from, given.rank);
    return run_in<Scalar, Data>(given, inputs, weights, start, described, watch);
  });
}

int run(Arguments& given) {
  check_arguments(given);
  const Eigen::VectorXd weights = weights_of(given);
  const std::vector<Request> requests = requests_of(given);
  std::vector<io::Array> arrays;
  for (const Request& request : requests) arrays.push_back(open(request));
  io::check_writable(given.out);
  if (!given.trace.empty()) io::check_writable(given.trace);
  // float32 where every file is; the type of a run is one.
  const auto wide = std::find_if_not(arrays.begin(), arrays.end(), holds_float32);
  return with_data_type(given.precision, {wide != arrays.end() ? &*wide : &arrays.front()},
                        [&]<class Data>() { return run_on<Data>(given, requests, std::move(arrays), weights); });
}

void add_inputs(CLI::App& app, Arguments& given) {
  app.add_option("FILES", given.files, "covariances or feature sets of one dimension (.npy or .npz)")
      ->required()
      ->type_name("FILE")
      ->group(input_group);
  add_kind(app, "--as", given.as, "take them for: auto, covariance, features (n x d), factor (d x m)")
      ->group(input_group);
  app.add_option("--key", given.key, "their name in an .npz")->type_name("NAME")->group(input_group);
  app.add_option("--weights", given.weights, "one weight >= 0 for each file, with commas between them (default: equal)")
      ->type_name("X,...")
      ->group(input_group);
  add_path(app, "--start", given.start.path, "where to start (default: random)")->group(input_group);
  add_trust(app, given.trust)->group(input_group);
  add_precision(app, given.precision)->group(input_group);
  add_threads(app)->group(input_group);
}

void add_steps(CLI::App& app, Arguments& given) {
  const std::string group = "Steps";
  BarycenterOptions& options = given.options;
  add_whole(app, "--rank", given.rank, "the rank r of the result, 1 to d")->required()->group(group);
  add_whole(app, "--steps", options.steps, "steps to make at most")
      ->default_str(fmt::format("{}", options.steps))
      ->group(group);
  app.add_option("--alpha", given.step.alpha,
                 "step size in (0, 2).\nDefault: 1 for one step, 1.1 for 2 to 4, 1.3 from 5 on")
      ->type_name("A")
      ->group(group);
  add_real(app, "--tolerance", options.tolerance, "stop when a step gains less than this share; 0: never")
      ->default_str(fmt::format("{}", options.tolerance))
      ->group(group);
  add_whole(app, "--subset", options.subset, "move after every N inputs, in random order; 0: after all")
      ->default_str(fmt::format("{}", options.subset))
      ->group(group);
  add_whole(app, "--starts", options.starts, "runs from so many starts; the one that ends lowest counts")
      ->default_str(fmt::format("{}", options.starts))
      ->group(group);
  add_seed(app, "--seed", options.seed, "for the random starts and the order of subsets")
      ->default_str(fmt::format("{}", options.seed))
      ->group(group);
}

}  // namespace

Command add_barycenter(CLI::App& program) {
  CLI::App* app = program.add_subcommand("barycenter", "one rank-r covariance for several targets, with certificates");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_inputs(*app, *given);
  add_steps(*app, *given);
  const std::string group = "Output";
  add_path(*app, "--out", given->out, "the factor Y, d x r (.npy)")->required()->group(group);
  add_path(*app, "--trace", given->trace, "the record of every step (JSON)")->group(group);
  app->add_flag("--json", given->json, "print one JSON object instead of the table")->group(group);
  app->add_flag("--quiet", given->quiet, "print nothing but errors")->group(group);
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
