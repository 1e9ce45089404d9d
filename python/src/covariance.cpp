// SPDX-License-Identifier: Apache-2.0
//
// The one rule by which every function of the package accepts a matrix as a covariance. Where a matrix was accumulated
// in float32, or by a product that does not know its result to be symmetric, the two triangles differ by rounding: that
// is averaged away, once, here, so that it does not depend on the routine which triangle counts.
#include <itspace/covariance.hpp>

#include "arrays.hpp"
#include "core/text.hpp"
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace itspace::python {
namespace {

// The shortest text that reads back as the same number: two entries that differ look different.
template <class Scalar>
std::string digits(Scalar value) {
  char text[48];
  return {text, std::to_chars(text, std::end(text), value).ptr};
}

struct Asymmetry {
  double size = 0;
  Index row = 0, col = 0;
};

// By tiles, so that both triangles are read along cache lines.
template <Storage Scalar>
Asymmetry largest_asymmetry(const MatrixView<Scalar>& sigma) {
  constexpr Index tile = 32;
  const Index d = sigma.rows();
  Asymmetry worst;
  for (Index first = 0; first < d; first += tile)
    for (Index left = 0; left <= first; left += tile) {
      const Index rows = std::min(tile, d - first), cols = std::min(tile, d - left);
      const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor, tile, tile> difference =
          sigma.block(first, left, rows, cols) - sigma.block(left, first, cols, rows).transpose();
      const auto here = static_cast<double>(difference.cwiseAbs().maxCoeff());
      if (here <= worst.size) continue;
      Index row = 0, col = 0;
      difference.cwiseAbs().maxCoeff(&row, &col);
      worst = {here, first + row, left + col};
    }
  return worst;
}

// What finite entries alone can say against a covariance; eigenvalues are looked at elsewhere.
template <Storage Scalar>
void refuse_negative_variance(const MatrixView<Scalar>& sigma, double limit, const std::string& name) {
  Index at = 0;
  const auto least = static_cast<double>(sigma.diagonal().minCoeff(&at));
  require(least >= -limit, name, " is indefinite: ", name, "[", at, ", ", at, "] = ", least,
          ", and no variance is negative (limit ", -limit, "). Pass a covariance, or add a ridge of at least ", -least,
          " to its diagonal");
  const double trace = sigma.diagonal().template cast<double>().sum();
  require(trace >= 0, name, " is indefinite: its trace is ", trace,
          ", and the variances of a covariance add up to 0 or more. Pass a covariance, or add a ridge of at least ",
          -trace / static_cast<double>(sigma.rows()), " to its diagonal");
}

// None where sigma is exactly symmetric and can be used as it lies; else a copy with the two triangles averaged.
template <Storage Scalar>
nb::object symmetric(const Matrix<Scalar>& array, const std::string& name) {
  const MatrixView<Scalar> sigma = view<Scalar>(array);
  const Index d = sigma.rows();
  require(d == sigma.cols() && d > 0, name, " is ", d, " x ", sigma.cols(),
          "; a covariance is square and not empty. If its rows are samples, pass itspace.Target.from_features(X)");
  Block<Scalar> averaged;
  {
    const nb::gil_scoped_release unlocked;
    check_finite<Scalar>(sigma, name);
    const double rounded_to_float = std::numeric_limits<float>::epsilon();
    const double limit = static_cast<double>(d) * rounded_to_float * static_cast<double>(sigma.cwiseAbs().maxCoeff());
    const Asymmetry worst = largest_asymmetry<Scalar>(sigma);
    require(worst.size <= limit, name, " is not symmetric: entries [", worst.row, ", ", worst.col,
            "] = ", digits(sigma(worst.row, worst.col)), " and [", worst.col, ", ", worst.row,
            "] = ", digits(sigma(worst.col, worst.row)), " differ by ", worst.size, " (limit ", limit,
            "). Pass a covariance, symmetrise it as (A + A.T) / 2, or pass the features it came from");
    refuse_negative_variance<Scalar>(sigma, limit, name);
    if (worst.size > 0) {
      averaged = sigma;
      symmetrise<Scalar>(averaged);
    }
  }
  if (averaged.size() == 0) return nb::none();
  return to_numpy<Scalar>(std::move(averaged));
}

}  // namespace

void add_covariance(nb::module_& module) {
  module.def("symmetric", &symmetric<float>, nb::arg("sigma"), nb::arg("name"));
  module.def("symmetric", &symmetric<double>, nb::arg("sigma"), nb::arg("name"));
}

}  // namespace itspace::python
