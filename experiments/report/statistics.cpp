// SPDX-License-Identifier: Apache-2.0
#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace itspace::experiments::report {

double median(std::vector<double> values) {
  if (values.empty()) return no_number;
  for (double& value : values) {
    if (std::isnan(value)) value = not_reached;
  }
  std::sort(values.begin(), values.end());
  const std::size_t upper = values.size() / 2;
  return values.size() % 2 == 1 ? values[upper] : (values[upper - 1] + values[upper]) / 2;
}

double upper_median(std::vector<double> values) {
  if (values.empty()) return no_number;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double count = static_cast<double>(values.size());
  Spread result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(squares / (count - 1));
  }
  return result;
}

}  // namespace itspace::experiments::report
