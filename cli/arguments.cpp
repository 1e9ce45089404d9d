// SPDX-License-Identifier: Apache-2.0
//
// Strict argument parsing on std::from_chars.
#include "arguments.hpp"

#include "text.hpp"

#include <itspace/threads.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace itspace::cli {

namespace {

template <class Number>
Number parse(std::string_view option, std::string_view text, std::string_view expected) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    misuse(fmt::format("{} is {}, which is out of range", option, text), fmt::format("give {}", expected));
  if (error != std::errc() || end != text.data() + text.size())
    misuse(fmt::format("{} is '{}', which is not {}", option, text, expected), fmt::format("give {}", expected));
  return value;
}

// A CLI11 option that hands its raw text to `read`.
template <class Read>
CLI::Option* add_text(CLI::App& app, const std::string& flag, const std::string& type, const std::string& help,
                      Read read) {
  return app.add_option_function<std::string>(flag, read, help)->type_name(type);
}

}  // namespace

std::int64_t parse_whole(std::string_view option, std::string_view text) {
  return parse<std::int64_t>(option, text, "a whole number");
}

double parse_real(std::string_view option, std::string_view text) {
  const auto value = parse<double>(option, text, "a finite number");
  if (!std::isfinite(value))
    misuse(fmt::format("{} is {}, which is not a finite number", option, text), "give a finite number");
  return value;
}

CLI::Option* add_path(CLI::App& app, const std::string& flag, std::filesystem::path& value, const std::string& help,
                      const std::string& type) {
  return add_text(app, flag, type, help, [flag, &value](const std::string& text) {
    if (text.empty()) misuse(fmt::format("{} is empty", flag), "give the name of a file");
    value = text;
  });
}

CLI::Option* add_whole(CLI::App& app, const std::string& flag, Index& value, const std::string& help) {
  return add_text(app, flag, "N", help, [flag, &value](const std::string& text) { value = parse_whole(flag, text); });
}

CLI::Option* add_whole(CLI::App& app, const std::string& flag, std::optional<Index>& value, const std::string& help) {
  return add_text(app, flag, "N", help, [flag, &value](const std::string& text) { value = parse_whole(flag, text); });
}

CLI::Option* add_real(CLI::App& app, const std::string& flag, double& value, const std::string& help) {
  return add_text(app, flag, "X", help, [flag, &value](const std::string& text) { value = parse_real(flag, text); });
}

CLI::Option* add_seed(CLI::App& app, const std::string& flag, std::uint64_t& value, const std::string& help) {
  return add_text(app, flag, "N", help, [flag, &value](const std::string& text) {
    value = parse<std::uint64_t>(flag, text, "a whole number from 0 to 18446744073709551615");
  });
}

Kind kind_named(std::string_view option, std::string_view text) {
  for (const Kind kind : {Kind::automatic, Kind::covariance, Kind::features, Kind::factor})
    if (text == name(kind)) return kind;
  misuse(fmt::format("{} is '{}', which is no kind of input", option, text),
         "give auto, covariance, features or factor");
}

CLI::Option* add_kind(CLI::App& app, const std::string& flag, Kind& value, const std::string& help) {
  return add_text(app, flag, "KIND", help, [flag, &value](const std::string& text) { value = kind_named(flag, text); })
      ->default_str(std::string(name(value)));
}

CLI::Option* add_route(CLI::App& app, const std::string& flag, Route& value, const std::string& help) {
  return add_text(app, flag, "ROUTE", help,
                  [flag, &value](const std::string& text) {
                    const auto route = route_named(text);
                    if (!route)
                      misuse(fmt::format("{} is '{}', which is no route", flag, text),
                             "give auto, qr, gram, factor or root");
                    value = *route;
                  })
      ->default_str(std::string(name(value)));
}

CLI::Option* add_solver(CLI::App& app, Solver& value) {
  const std::string flag = "--solver";
  return add_text(app, flag, "SOLVER",
                  "paper: damped, controlled steps; ritz: the best factor of a growing\n"
                  "subspace, fastest to the floor, without a step size",
                  [flag, &value](const std::string& text) {
                    const auto solver = solver_named(text);
                    if (!solver)
                      misuse(fmt::format("{} is '{}', which is no solver", flag, text), "give paper or ritz");
                    value = *solver;
                  })
      ->default_str(std::string(name(value)));
}

CLI::Option* add_precision(CLI::App& app, Precision& value) {
  const std::string flag = "--precision";
  return add_text(app, flag, "TYPE",
                  "float32, float64, or mixed: data in float32, arithmetic in float64.\n"
                  "Default: float64; for float32 and float16 files float32, and mixed\n"
                  "where float32 does not resolve W2^2 to 1 % of itself",
                  [flag, &value](const std::string& text) {
                    if (text == "auto") {
                      value = Precision::automatic;
                    } else if (text == "float32") {
                      value = Precision::float32;
                    } else if (text == "mixed") {
                      value = Precision::mixed;
                    } else if (text == "float64") {
                      value = Precision::float64;
                    } else {
                      misuse(fmt::format("{} is '{}', which is no precision", flag, text),
                             "give auto, float32, mixed or float64");
                    }
                  })
      ->default_str("auto");
}

CLI::Option* add_threads(CLI::App& app) {
  const std::string flag = "--threads";
  return add_text(app, flag, "N", "threads, ours and BLAS's (default: the processors that this process may use)",
                  [flag](const std::string& text) {
                    constexpr long long most = 4096;
                    const auto count = parse_whole(flag, text);
                    if (count < 1 || count > most)
                      misuse(fmt::format("{} is {}, outside 1 to {}", flag, count, most),
                             "give the number of threads, 1 for a single one");
                    set_threads(static_cast<Index>(count));
                  });
}

NamedFiles TargetArguments::files() const {
  NamedFiles files{{"--weights", weights}};
  if (names.empty()) files.push_back({"--target", request.path});
  for (const std::string& name : names) files.push_back({"--target", name});
  return files;
}

void add_target(CLI::App& app, TargetArguments& given, bool several) {
  if (several) {
    app.add_option_function<std::vector<std::string>>(
           "--target",
           [&given](const std::vector<std::string>& texts) {
             for (const std::string& text : texts)
               if (text.empty()) misuse("--target is empty", "give the name of a file");
             given.names = texts;
             given.request.path = texts.front();
           },
           "the target: an .npy or .npz file; or features to be streamed: several .npy files, patterns "
           "('part-*.npy'), file.h5:/dataset, .parquet and .arrow files")
        ->type_name("FILE...")
        ->required()
        ->group(input_group);
  } else {
    add_path(app, "--target", given.request.path, "the target: an .npy or .npz file")->required()->group(input_group);
  }
  add_kind(app, "--target-as", given.request.as, "take it for: auto, covariance, features (n x d), factor (d x m)")
      ->group(input_group);
  app.add_option("--target-key", given.request.key, "its name in an .npz")->type_name("NAME")->group(input_group);
  add_path(app, "--weights", given.weights, "one weight >= 0 for each row of a features target")->group(input_group);
  add_real(app, "--ridge", given.ridge, "add X times the identity to the target")->group(input_group);
  add_trust(app, given.trust)->group(input_group);
  add_precision(app, given.precision)->group(input_group);
  add_threads(app)->group(input_group);
}

CLI::Option* add_trust(CLI::App& app, bool& value) {
  return app.add_flag("--trust", value, "do not check that a covariance is symmetric and positive semidefinite");
}

void check_at_least(std::string_view option, Index value, Index limit) {
  if (value < limit)
    misuse(fmt::format("{} is {}, below the limit {}", option, value, limit), fmt::format("give {} or more", limit));
}

void check_not_negative(std::string_view option, double value) {
  if (value < 0) misuse(fmt::format("{} is {}, below the limit 0", option, value), "give 0 or more");
}

std::pair<std::string, std::string> one_or_two(std::string_view option, const std::string& text) {
  const auto comma = text.find(',');
  if (comma == std::string::npos) return {text, text};
  if (text.find(',', comma + 1) != std::string::npos)
    misuse(fmt::format("{} is '{}', more than the two values it takes", option, text),
           "give one value for both inputs, or two with a comma between them");
  return {text.substr(0, comma), text.substr(comma + 1)};
}

}  // namespace itspace::cli
