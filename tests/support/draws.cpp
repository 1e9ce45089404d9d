// SPDX-License-Identifier: Apache-2.0
#include "runs.hpp"

#include <rapidcheck.h>

#include <sstream>

namespace itspace::test {

double draw_alpha() {
  return 0.01 * *rc::gen::inRange(1, 200).as("alpha * 100");
}

ProblemShape draw_shape(Index largest_dim, const std::vector<Spectrum>& spectra) {
  ProblemShape shape;
  shape.dim = *rc::gen::inRange<Index>(1, largest_dim + 1).as("dim");
  shape.rank = *rc::gen::inRange<Index>(1, shape.dim + 1).as("rank");
  shape.seed = *rc::gen::inRange<std::uint64_t>(0, 1 << 20).as("seed");
  shape.spectrum = *rc::gen::elementOf(spectra).as("spectrum");
  return shape;
}

std::vector<Spectrum> full_rank() {
  return {std::begin(full_rank_spectra), std::end(full_rank_spectra)};
}

std::vector<Spectrum> any_rank() {
  return {std::begin(all_spectra), std::end(all_spectra)};
}

std::string describe(const ProblemShape& shape) {
  std::ostringstream text;
  text << "d=" << shape.dim << " r=" << shape.rank << " seed=" << shape.seed << " " << shape.spectrum;
  return text.str();
}

}  // namespace itspace::test
