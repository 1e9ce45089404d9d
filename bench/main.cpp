// SPDX-License-Identifier: Apache-2.0
#include "ratio_reporter.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  itspace::bench::RatioReporter reporter({
      {"certified_step", "sgemm", 1.25},
      {"certified_step", "paper_gram_step", 0.60},
      {"first_iterate", "sgemm", 1.40},
      {"certified_step_gram", "sgemm"},
      {"line_search_step", "sgemm"},
      {"certified_step", "read_sigma_once"},
      {"sgemm", "read_sigma_once"},
      {"paper_root", "certified_step"},
      {"dense_step_mixed", "dense_step_float64"},
      {"dense_step_mixed", "dense_step_float32"},
      {"features_step_mixed", "features_step_float64", 1.00},
      {"features_step_mixed", "features_step_float32"},
      {"map_apply", "two_skinny_products", 1.50},
  });
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::Shutdown();
  return 0;
}
