// SPDX-License-Identifier: Apache-2.0
//
// Features in, factor out: the example of the README.
#include <iostream>
#include <itspace/itspace.hpp>

int main() {
  itspace::Block<float> source(500, 100), target_features(400, 100);  // samples x features: your data goes here
  itspace::Random(1).fill_normal<float>(source);
  itspace::Random(2).fill_normal<float>(target_features);
  target_features.leftCols(4) *= 5;  // the target varies most where the source does not

  const auto start = itspace::start_from_features<float>(source, 8);
  const itspace::FeaturesTarget<float> target(target_features);  // its 100 x 100 covariance is never formed
  const auto result = itspace::align<float>(target, start, {.steps = 5});

  for (const auto& step : result.trace.steps)
    std::cout << step.index << "  W2^2 = " << step.objective
              << (step.certified.value_or(true) ? "" : "  (not certified)") << "\n";
  return result.factor.rows() == 100 && result.factor.cols() == 8 ? 0 : 1;  // the covariance is factor * factor'
}
