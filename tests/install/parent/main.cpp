// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <itspace/itspace.hpp>

int main() {
  itspace::Block<double> factor(16, 3);
  itspace::Random(1).fill_normal<double>(factor);
  const auto result = itspace::align<double>(itspace::FactorTarget<double>(factor), 3, {.steps = 2});
  std::cout << "itspace " << itspace::version() << "\n";
  return result.trace.certified() ? EXIT_SUCCESS : EXIT_FAILURE;
}
