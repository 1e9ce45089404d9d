// SPDX-License-Identifier: Apache-2.0
//
// The demo: a real pair of domains, one line per iterate, and what it means in plain language.
#include "domains.hpp"
#include "stopwatch.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <itspace/io.hpp>
#include <itspace/itspace.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace itspace::experiments {
namespace {

struct DemoOptions {
  Index rank = 16;
  Index steps = 8;
  std::string alpha;  // a number, "line-search", or empty for the library's default
  bool synthetic = false;
  std::string csv;
};

// The best that rank r can do, and where the run stands against it.
struct Yardstick {
  double floor = 0;
  double start_objective = not_a_number;

  double gap(const Step& step) const { return step.objective - floor; }
  double share_left(const Step& step) const { return gap_r(step.objective, start_objective, floor); }
};

StepSize step_size_named(const std::string& text) {
  if (text.empty()) return {};
  if (text == "line-search") return StepSize::line_search();
  double alpha = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, alpha).ptr != end)
    throw std::invalid_argument(fmt::format("--alpha is '{}'; give a number in (0, 2), or line-search", text));
  return StepSize::alpha(alpha);
}

DomainPair open_domains(const DemoOptions& options) {
  const char* chosen = std::getenv("ITSPACE_FASHION_MNIST");
  const std::filesystem::path folder = chosen ? chosen : ITSPACE_FASHION_MNIST_FOLDER;
  if (options.synthetic) return power_law_domains();
  if (!chosen && !std::filesystem::exists(folder)) {
    fmt::print(
        "(Fashion-MNIST is not installed here, so this is a synthetic power-law pair instead. Debian and Ubuntu\n"
        " have it as the package dataset-fashion-mnist; ITSPACE_FASHION_MNIST may name a folder that holds it.)\n\n");
    return power_law_domains();
  }
  try {
    return fashion_mnist_domains(folder);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}; mend or remove it, or run with --synthetic", error.what()));
  }
}

void print_table_head(const Yardstick& yardstick, Index rank, double floor_seconds) {
  fmt::print(
      "  floor    {:.4f}: no covariance of rank {} comes closer to the target\n"
      "           (from a full eigendecomposition, {:.2f} s, made only so that the gap can be shown)\n"
      "\n"
      "  objective      squared Bures-Wasserstein distance to the target, exact\n"
      "  gap to floor   objective minus floor; left: as a share of the gap at the start\n"
      "  eps            how much the computed certificate falls short of the exact one\n"
      "  promised, got  the descent that the certificate guarantees for the step, and the actual one\n"
      "  time           since the run began\n"
      "\n"
      " step   objective  gap to floor      left      eps   promised        got  certified      time\n",
      yardstick.floor, rank, floor_seconds);
}

void print_row(const Step& step, const Yardstick& yardstick) {
  const auto descent = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.4g}", value) : std::string("-");
  };
  fmt::print("{:5}  {:10.4f}  {:12.5f}  {:7.3f}%  {:7.1e}  {:>9}  {:>9}  {:>9}  {:5.0f} ms\n", step.index,
             step.objective, yardstick.gap(step), 100 * yardstick.share_left(step), step.certificate_gap,
             descent(step.promised_descent), descent(step.actual_descent),
             step.certified ? (*step.certified ? "yes" : "NO") : "start", 1e3 * step.seconds);
  std::fflush(stdout);
}

std::string csv_of(const Trace& trace, const Yardstick& yardstick) {
  std::string text =
      "step,objective,gap,gap_share,certificate_gap,promised_descent,actual_descent,certified,passes,seconds\n";
  for (const Step& step : trace.steps)
    text += fmt::format("{},{:.10g},{:.10g},{:.10g},{:.3g},{:.10g},{:.10g},{},{},{:.6f}\n", step.index, step.objective,
                        yardstick.gap(step), yardstick.share_left(step), step.certificate_gap, step.promised_descent,
                        step.actual_descent, step.certified ? (*step.certified ? "1" : "0") : "", step.passes,
                        step.seconds);
  return text;
}

std::string closed_text(const Trace& trace, const Yardstick& yardstick) {
  const auto closed = [&](std::size_t k) { return 100 * (1 - yardstick.share_left(trace.steps[k])); };
  const std::size_t last = trace.steps.size() - 1;
  std::string text =
      fmt::format("One step closed {:.4g}% of the gap to the best that rank {} can do", closed(1), trace.rank);
  if (last >= 2) text += fmt::format(", two steps {:.4g}%", closed(2));
  if (last >= 3) text += fmt::format(", and all {} steps {:.4g}%", last, closed(last));
  return text + ".";
}

std::string certificate_text(const Trace& trace) {
  Index certified = 0;
  bool descending = true;
  for (std::size_t k = 1; k < trace.steps.size(); ++k) {
    certified += trace.steps[k].certified.value_or(false);
    descending = descending && trace.steps[k].objective <= trace.steps[k - 1].objective;
  }
  const auto steps = static_cast<Index>(trace.steps.size()) - 1;
  if (certified < steps)
    return fmt::format("Only {} of {} steps were certified (status: {}); the best iterate is what the run returned.",
                       certified, steps, name(trace.status));
  return fmt::format(
      "Every step was certified: it went down at least as far as it had promised. Each of the {} covariances on the "
      "way "
      "is valid, has rank at most {}, and {}.",
      steps + 1, trace.rank,
      descending ? "is closer to the target than the one before" : "is no farther from the target, up to rounding");
}

std::string remainder_text(const Trace& trace, const Yardstick& yardstick) {
  const double left = trace.steps.back().objective;
  const bool mostly_floor = yardstick.floor > 0.9 * left;
  return fmt::format("The distance that remains, {:.4f} of a total variance of {:.4f}, is {:.4g}% floor: {}.", left,
                     trace.target_trace, 100 * yardstick.floor / left,
                     mostly_floor ? "a higher rank lowers it, more steps hardly do" : "more steps lower it further");
}

void print_wrapped(std::string_view text) {
  constexpr std::size_t width = 100;
  while (text.size() > width) {
    const std::size_t cut = text.rfind(' ', width);
    if (cut == std::string_view::npos) break;
    fmt::print("{}\n", text.substr(0, cut));
    text.remove_prefix(cut + 1);
  }
  fmt::print("{}\n", text);
}

void print_summary(const Trace& trace, const Yardstick& yardstick, const DomainPair& domains) {
  fmt::print("\n");
  if (trace.steps.size() < 2) {
    fmt::print("No step was made (status: {}).\n", name(trace.status));
    return;
  }
  print_wrapped(fmt::format(
      "In plain language. The run moved a covariance of rank {} from the source domain to the target domain, without "
      "forming the target's own {} x {} covariance. {} {} It read the target's {} samples {} times, once for each step "
      "and once to measure the last result, in {:.2f} s. {}",
      trace.rank, trace.dim, trace.dim, closed_text(trace, yardstick), certificate_text(trace),
      domains.target.features.rows(), trace.passes_total, trace.steps.back().seconds,
      remainder_text(trace, yardstick)));
  fmt::print(
      "\nTry next: script/demo --rank 64\n"
      "          script/demo --alpha line-search\n"
      "          build/release/cli/itspace align --help     (your own data)\n");
}

int run(const DemoOptions& options) {
  // Known before the data is read, so said before.
  if (options.rank < 1)
    throw std::invalid_argument(
        fmt::format("--rank is {}; give 1 or more, up to the number of features", options.rank));
  if (options.steps < 0) throw std::invalid_argument(fmt::format("--steps is {}; give 0 or more", options.steps));
  const StepSize step_size = step_size_named(options.alpha);
  if (!options.csv.empty()) io::check_writable(options.csv);

  fmt::print("itspace {}: certified low-rank covariance alignment\n\n", version());
  std::fflush(stdout);
  const DomainPair domains = open_domains(options);
  fmt::print("  source   {}\n  target   {}\n", domains.source.description, domains.target.description);

  const Block<float> start = start_from_features<float>(domains.source.features, options.rank);
  fmt::print("  start    the source's {} leading directions: a {} x {} factor\n", options.rank, start.rows(),
             start.cols());
  std::fflush(stdout);

  const Stopwatch floor_watch;
  const FeaturesTarget<float> target(borrow(domains.target.features));
  const Eigen::VectorXd leading =
      leading_eigenvalues_of_factor(compact_factor<float>(domains.target.features), options.rank);
  Yardstick yardstick;
  yardstick.floor = floor_r(target.trace(), leading, options.rank);
  print_table_head(yardstick, options.rank, floor_watch.seconds());

  AlignOptions align_options;
  align_options.steps = options.steps;
  align_options.step_size = step_size;
  const auto result = align<float>(target, start, align_options, [&](const Step& step, const ConstBlockView<float>&) {
    if (step.index == 0) yardstick.start_objective = step.objective;
    print_row(step, yardstick);
    return StepAction::proceed;
  });
  print_summary(result.trace, yardstick, domains);

  if (!options.csv.empty()) io::save_text(options.csv, csv_of(result.trace, yardstick));
  return failed(result.status()) ? 1 : 0;
}

}  // namespace
}  // namespace itspace::experiments

int main(int argc, char** argv) {
  itspace::experiments::DemoOptions options;
  CLI::App app("Aligns one half of Fashion-MNIST with the other and explains what happened.", "script/demo");
  app.add_option("--rank", options.rank, "columns of the factor")->capture_default_str();
  app.add_option("--steps", options.steps, "steps to make")->capture_default_str();
  app.add_option("--alpha", options.alpha, "step size in (0, 2), or line-search; default: by the number of steps");
  app.add_flag("--synthetic", options.synthetic, "a synthetic power-law pair instead of Fashion-MNIST");
  app.add_option("--csv", options.csv, "also write the curve to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return itspace::experiments::run(options);
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "demo: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "demo: {}\n", error.what());
    return 3;
  }
}
