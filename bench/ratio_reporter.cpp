// SPDX-License-Identifier: Apache-2.0
#include "ratio_reporter.hpp"

#include <cstdio>
#include <limits>

namespace itspace::bench {

void RatioReporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs)
    if (run.aggregate_name == "median")
      medians_[run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args)] =
          run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
  ConsoleReporter::ReportRuns(runs);
}

double RatioReporter::median_of(const std::string& name) const {
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto& [key, seconds] : medians_)
    if ((key == name || key.rfind(name + "/", 0) == 0) && seconds < fastest) fastest = seconds;
  return fastest;
}

void RatioReporter::Finalize() {
  ConsoleReporter::Finalize();
  std::printf("\nratios of medians\n");
  for (const Ratio& ratio : ratios_) {
    const double value = median_of(ratio.name) / median_of(ratio.baseline);
    if (!(value < std::numeric_limits<double>::infinity())) continue;  // one of the two was filtered out
    std::printf("  %-44s / %-28s %7.3f", ratio.name.c_str(), ratio.baseline.c_str(), value);
    if (ratio.limit > 0) std::printf("   limit %.2f  %s", ratio.limit, value <= ratio.limit ? "ok" : "MISSED");
    std::printf("\n");
  }
}

}  // namespace itspace::bench
