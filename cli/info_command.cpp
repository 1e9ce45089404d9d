// SPDX-License-Identifier: Apache-2.0
//
// itspace info: what is in a file, what it is taken for, and its spectrum.
#include "arguments.hpp"
#include "commands.hpp"
#include "problem.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/rank.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace info features.npy                      shape, kind, trace, ten leading eigenvalues, effective rank
  itspace info stats.npz                         an .npz: its keys, and sigma
  itspace info data.npz --key train --rank 32    a named array; the share of the 32 leading directions
  itspace info Y.npy --as factor --json          a factor of `itspace align`, as JSON
  itspace info huge.npy --spectrum               the spectrum of a large input, which is left out unless asked for)";

constexpr Index large = 2048;  // above this the spectrum takes more than a few seconds

struct Arguments {
  Request request{"input", "--as"};
  Index rank = 10;
  bool spectrum = false, trust = false, json = false;
};

struct Spectrum {
  Eigen::VectorXd leading;
  double share_of_leading;
  EffectiveRank effective_rank;
};

Spectrum spectrum_of(const Eigen::VectorXd& all, double trace, Index rank) {
  Spectrum spectrum;
  spectrum.leading = all.head(std::min(rank, all.size()));
  spectrum.share_of_leading = trace > 0 ? spectrum.leading.sum() / trace : 0;
  spectrum.effective_rank = effective_rank(all, trace);
  return spectrum;
}

Json file_json(const io::Array& array, const std::vector<std::string>& keys) {
  const auto& info = array.info();
  Json json{{"path", info.path.string()}, {"shape", info.shape}, {"type", info.type}, {"bytes", info.bytes}};
  json["fortran_order"] = info.fortran_order;
  json["big_endian"] = info.big_endian;
  if (!keys.empty()) {
    json["keys"] = keys;
    json["key"] = info.key;
  }
  return json;
}

void print_file(const io::Array& array, const std::vector<std::string>& keys) {
  const auto& info = array.info();
  print_line(fmt::format("file             {}", quoted(info.path)));
  if (!keys.empty()) print_line(fmt::format("keys             {} (this is {})", joined(keys), info.key));
  print_line(fmt::format("shape            {}", fmt::join(info.shape, " x ")));
  print_line(fmt::format("type             {}{}{}", info.type, info.fortran_order ? ", Fortran order" : "",
                         info.big_endian ? ", big-endian" : ""));
}

void print_spectrum(const Spectrum& spectrum) {
  std::string values;
  for (const double value : spectrum.leading) values += fmt::format("{}{:.6g}", values.empty() ? "" : "  ", value);
  print_line(fmt::format("eigenvalues      {}", values));
  print_line(fmt::format("share of top {:<3} {}", spectrum.leading.size(), percent(spectrum.share_of_leading)));
  print_line(fmt::format("effective rank   {:.4g} (participation ratio, tr^2/||Sigma||_F^2)",
                         spectrum.effective_rank.participation_ratio));
  print_line(fmt::format("                 {:.4g} (intrinsic dimension, tr/lambda_max)",
                         spectrum.effective_rank.intrinsic_dimension));
}

Json spectrum_json(const Spectrum& spectrum) {
  return {{"eigenvalues", std::vector<double>(spectrum.leading.begin(), spectrum.leading.end())},
          {"share_of_leading", spectrum.share_of_leading},
          {"participation_ratio", spectrum.effective_rank.participation_ratio},
          {"intrinsic_dimension", spectrum.effective_rank.intrinsic_dimension}};
}

template <Storage Scalar>
int run_in(const Arguments& given, io::Array array, Json json) {
  const Index smaller = std::min(array.rows(), array.cols());
  const bool wants_spectrum = given.spectrum || smaller <= large;
  // The check that a covariance has no negative eigenvalue is done on the spectrum: one eigenproblem, not several.
  const auto input = load<Scalar>(given.request, std::move(array), Checks{.trust = true});
  const bool checks = input.kind == Kind::covariance && !given.trust;
  if (checks) check_symmetry(input);
  const ProblemTarget<Scalar> target(input, {}, 0);
  const double trace = target.ref().trace();
  json["taken_for"] = name(input.kind);
  json["why"] = input.why;
  json["dim"] = input.dim();
  json["trace"] = trace;
  bool finite = check_finite_result({{"trace", trace}});
  if (!given.json) {
    print_line(fmt::format("taken for        {} ({})", input.description(), input.why));
    print_line(fmt::format("trace            {}", number(trace)));
  }
  if (!wants_spectrum) {
    print_note(fmt::format("no spectrum: the smaller side is {}, above {}; --spectrum computes it", smaller, large));
    json["spectrum"] = nullptr;
  } else {
    Progress progress(smaller > large / 2);
    progress.show("computing the spectrum");
    const Eigen::VectorXd all = target.leading(smaller);
    progress.clear();
    if (checks) check_spectrum(input, all);
    const Spectrum spectrum = spectrum_of(all, trace, given.rank);
    finite = finite && check_finite_result({{"the largest eigenvalue", all.size() > 0 ? all[0] : 0.0},
                                            {"participation_ratio", spectrum.effective_rank.participation_ratio},
                                            {"intrinsic_dimension", spectrum.effective_rank.intrinsic_dimension}});
    json["spectrum"] = spectrum_json(spectrum);
    if (!given.json) print_spectrum(spectrum);
  }
  if (given.json) print_json(json);
  return finite ? exit_code::success : exit_code::outcome;
}

int run(const Arguments& given) {
  check_at_least("--rank", given.rank, 1);
  auto array = open(given.request);
  const auto keys = io::array_keys(given.request.path);
  if (!given.json) print_file(array, keys);
  Json json = file_json(array, keys);
  return with_data_type(Precision::automatic, {&array},
                        [&]<class Scalar>() { return run_in<Scalar>(given, std::move(array), std::move(json)); });
}

}  // namespace

Command add_info(CLI::App& program) {
  CLI::App* app = program.add_subcommand("info", "what is in a file, what it is taken for, and its spectrum");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "FILE", given->request.path, "an .npy or .npz file")->required();
  add_kind(*app, "--as", given->request.as, "take it for: auto, covariance, features (n x d), factor (d x m)");
  app->add_option("--key", given->request.key, "its name in an .npz")->type_name("NAME");
  add_whole(*app, "--rank", given->rank, "how many leading eigenvalues")->default_str("10");
  app->add_flag("--spectrum", given->spectrum, fmt::format("compute it even where min(n, d) is above {}", large));
  add_trust(*app, given->trust);
  add_threads(*app);
  app->add_flag("--json", given->json, "print one JSON object");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
