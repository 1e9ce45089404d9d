// SPDX-License-Identifier: Apache-2.0
//
// The one rule by which every function of the package accepts a matrix as a covariance. Where a matrix was accumulated
// in float32, or by a product that does not know its result to be symmetric, the two triangles differ by rounding: that
// is averaged away, once, here, so that it does not depend on the routine which triangle counts.
#include <itspace/covariance.hpp>

#include "arrays.hpp"
#include "core/negative_variance.hpp"
#include "core/require.hpp"
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <limits>

namespace itspace::python {
namespace {

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
    constexpr double rounded_to_float = std::numeric_limits<float>::epsilon();
    const Asymmetry found = check_symmetric<Scalar>(sigma, rounded_to_float, name);
    const double limit = symmetry_limit<Scalar>(sigma, rounded_to_float);
    refuse_negative_variance<Scalar>(sigma, limit, name);
    if (found.size > 0) {
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
