// SPDX-License-Identifier: Apache-2.0
//
// The console report of Google Benchmark, and after it a table of ratios of medians, each beside its limit.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace itspace::bench {

// "`name` costs at most `limit` times `baseline`." No limit: the ratio is shown only.
struct Ratio {
  std::string name, baseline;
  double limit = 0;
};

class RatioReporter : public benchmark::ConsoleReporter {
 public:
  explicit RatioReporter(std::vector<Ratio> ratios) : ratios_(std::move(ratios)) {}

  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  // The fastest of the benchmarks named `name` or `name/...`.
  double median_of(const std::string& name) const;

  std::vector<Ratio> ratios_;
  std::map<std::string, double> medians_;  // seconds
};

}  // namespace itspace::bench
