// SPDX-License-Identifier: Apache-2.0
//
// itspace verify: objective and certificate of a factor somebody hands you, and whether its trace tells the truth.
#include "arguments.hpp"
#include "commands.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/covariance.hpp>
#include <itspace/verify.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace verify Y.npy --target target.npy                      objective and certificate, computed anew
  itspace verify Y.npy --target target.npy --trace run.json     and whether the trace's claims hold
  itspace verify Y.npy --target features.npy --floor --json     with the least objective that its rank allows
  itspace verify Y.npy --target target.npy --ridge 1e-3 --trace run.json   a run that was made with --ridge

Numbers are computed through the factor of the target where it has one (features, factors), otherwise by
the QR route, in double unless --precision float32 is given; nothing is taken from the trace. Its last claim about Y
is compared with what was found; its other rows are held against each other and the rules of the method. A trace that
was written with its factor holds the factor's checksum, so that another run's factor shows. Exit code 1: a claim is
false. Whether the run was certified is told apart from that: a trace that says it was not tells the truth.)";

struct Arguments {
  Request factor{"factor", "--as", {}, {}, Kind::factor};
  TargetArguments target;
  std::filesystem::path trace;
  bool floor = false, json = false, quiet = false;
};

struct Report : Verification {
  std::optional<double> floor;
  std::optional<Trace> trace;

  // (F - floor)/(F_0 - floor), where a trace says what F_0 was.
  std::optional<double> gap() const {
    if (!floor || !trace || trace->steps.empty()) return std::nullopt;
    return gap_r(found.objective, trace->steps.front().objective, *floor);
  }
};

std::string route_text(const Step& certificate) {
  return certificate.route ? std::string(name(*certificate.route)) : "-";
}

void print_report(const Report& report) {
  const Step& certificate = report.certificate;
  print_line(fmt::format("objective        {}", precise(report.found.objective)));
  print_line(fmt::format("target trace     {}", precise(report.found.target_trace)));
  if (report.floor) {
    print_line(fmt::format("floor            {} (rank {})", precise(*report.floor), report.found.rank));
    print_line(fmt::format("above the floor  {}", precise(report.found.objective - *report.floor)));
  }
  if (const auto gap = report.gap())
    print_line(fmt::format("gap              {} of the way from the start is left", percent(*gap)));
  print_line(
      fmt::format("certificate gap  {} ({} route)", precise(certificate.certificate_gap), route_text(certificate)));
  print_line(fmt::format("feasibility      {} (1 is the limit it is scaled to)", precise(certificate.feasibility)));
  print_line(fmt::format("orthogonality    {}", small_number(certificate.orthogonality)));
  print_line(fmt::format("gram rank        {} of {}", certificate.gram_rank, report.found.rank));
  if (!report.trace) return;
  print_line("");
  for (const Claim& claim : report.claims)
    print_line(fmt::format("{:<7} {:<19} claimed {}; found {}", claim.holds ? "holds" : "FALSE", claim.name,
                           claim.claimed, claim.found));
  const auto broken =
      std::count_if(report.claims.begin(), report.claims.end(), [](const Claim& claim) { return !claim.holds; });
  print_line(broken == 0 ? fmt::format("All {} claims of the trace hold.", report.claims.size())
                         : fmt::format("{} of {} claims of the trace are FALSE.", broken, report.claims.size()));
  print_line(report.certified.value_or(false)
                 ? "The trace is that of a certified run."
                 : fmt::format("The trace is that of a run that is NOT certified: it ended as {}.",
                               name(report.trace->status)));
}

Json report_json(const Report& report) {
  const Step& certificate = report.certificate;
  Json json{{"command", "verify"},
            {"dim", report.found.dim},
            {"rank", report.found.rank},
            {"objective", report.found.objective},
            {"target_trace", report.found.target_trace},
            {"certificate_gap", certificate.certificate_gap},
            {"feasibility", certificate.feasibility},
            {"orthogonality", certificate.orthogonality},
            {"gram_rank", certificate.gram_rank},
            {"route", route_text(certificate)}};
  if (report.floor) {
    json["floor"] = *report.floor;
    json["above_floor"] = report.found.objective - *report.floor;
  }
  if (const auto gap = report.gap()) json["gap"] = *gap;
  if (report.trace) {
    json["certified"] = *report.certified;
    json["claims"] = Json::array();
    for (const Claim& claim : report.claims)
      json["claims"].push_back(
          {{"name", claim.name}, {"holds", claim.holds}, {"claimed", claim.claimed}, {"found", claim.found}});
  }
  json["holds"] = report.holds();
  return json;
}

template <Storage Scalar, Storage Data>
Report examine(const Arguments& given, const ProblemTarget<Scalar, Data>& target, const Input<Scalar>& factor) {
  const auto y = factor.values.view();
  Report report;
  if (!given.trace.empty()) report.trace = io::load_trace(given.trace);
  static_cast<Verification&>(report) = verify<Scalar>(y, target.ref(), report.trace ? &*report.trace : nullptr);
  if (report.trace && !report.trace->factor_checksum.empty())
    report.claims.push_back(checksum_claim(*report.trace, io::checksum_of(factor.array)));
  if (given.floor) {
    Progress progress(!given.quiet);
    progress.show("computing the floor");
    report.floor = target.floor(y.cols());
  }
  return report;
}

template <Storage Scalar, Storage Data>
int run_in(const Arguments& given, io::Array target_array, io::Array factor_array) {
  const auto input = load<Data>(given.target.request, std::move(target_array), given.target.checks(given.quiet));
  if (!given.quiet) print_note(input.note());
  const auto factor = load<Scalar>(given.factor, std::move(factor_array), Checks{});
  if (factor.dim() != input.dim())
    misuse(fmt::format("factor {} has {} rows, but target {} has dimension {}", quoted(given.factor.path), factor.dim(),
                       quoted(given.target.request.path), input.dim()),
           "a factor has one row for each coordinate of its target; see also --target-as");
  if (factor.values.cols() > factor.dim())
    misuse(fmt::format("factor {} has {} columns, more than its dimension {}", quoted(given.factor.path),
                       factor.values.cols(), factor.dim()),
           "give a d x r factor with r <= d");
  const Eigen::VectorXd weights =
      given.target.weights.empty() ? Eigen::VectorXd() : load_weights(given.target.weights, input);
  const ProblemTarget<Scalar, Data> target(input, weights, given.target.ridge);
  const Report report = examine(given, target, factor);
  if (given.json) {
    print_json(report_json(report));
  } else if (!given.quiet) {
    print_report(report);
  }
  for (const Claim& claim : report.claims)
    if (!claim.holds)
      print_error(fmt::format("the trace's claim about {} is false: claimed {}\nfound {}", claim.name, claim.claimed,
                              claim.found));
  if (!std::isfinite(report.found.objective)) print_error("the objective of the factor is not finite");
  return report.holds() ? exit_code::success : exit_code::outcome;
}

int run(const Arguments& given) {
  check_not_negative("--ridge", given.target.ridge);
  auto target_array = open(given.target.request), factor_array = open(given.factor);
  // A check is to be finer than what it checks: the arithmetic is double unless float32 is asked for.
  return with_data_type(given.target.precision, {&target_array}, [&]<class Data>() {
    if (std::same_as<Data, float> && given.target.precision == Precision::float32)
      return run_in<float, float>(given, std::move(target_array), std::move(factor_array));
    return run_in<double, Data>(given, std::move(target_array), std::move(factor_array));
  });
}

}  // namespace

Command add_verify(CLI::App& program) {
  CLI::App* app = program.add_subcommand("verify", "recompute what a factor is worth, and check what its trace claims");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "Y", given->factor.path, "the factor, d x r (.npy)")->required();
  add_target(*app, given->target);
  add_path(*app, "--trace", given->trace, "the trace to check (JSON)");
  app->add_flag("--floor", given->floor, "compute the floor of the factor's rank (an eigenproblem)");
  app->add_flag("--json", given->json, "print one JSON object");
  app->add_flag("--quiet", given->quiet, "print nothing but errors");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
