// SPDX-License-Identifier: Apache-2.0
//
// The smallest program around an installed itspace: a random dense target, one run, the trace as JSON.
#include <cstdlib>
#include <iostream>
#include <itspace/io.hpp>
#include <itspace/itspace.hpp>

int main() {
  itspace::Block<double> root(64, 64);
  itspace::Random(1).fill_normal<double>(root);
  const itspace::Block<double> sigma = root * root.transpose();
  const itspace::DenseTarget<double> target(sigma);

  const auto result = itspace::align<double>(target, 8, {.steps = 5});

  std::cout << "itspace " << itspace::version() << "\n" << itspace::io::to_json(result.trace) << "\n";
  const auto& steps = result.trace.steps;
  const bool fine = result.status() == itspace::Status::step_limit && steps.size() == 6 &&
                    steps.back().objective < steps.front().objective;
  return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
