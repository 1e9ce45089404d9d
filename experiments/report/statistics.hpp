// SPDX-License-Identifier: Apache-2.0
//
// Statistics over seeds.
#pragma once

#include <limits>
#include <vector>

namespace itspace::experiments::report {

inline constexpr double not_reached = std::numeric_limits<double>::infinity();
inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

// Infinity and NaN count as larger than every number: a seed that did not get there. Of an even count the mean of the
// middle two, which is infinite where one of them is. NaN of nothing.
double median(std::vector<double> values);
// The larger of the middle two.
double upper_median(std::vector<double> values);

// Over seeds: the sample standard deviation (divided by n - 1), NaN of fewer than two.
struct Spread {
  double mean = no_number, deviation = no_number;
};
Spread spread(const std::vector<double>& values);

}  // namespace itspace::experiments::report
