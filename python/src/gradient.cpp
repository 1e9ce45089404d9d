// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/gradient.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "target.hpp"
#include "trace.hpp"

#include <nanobind/stl/optional.h>

namespace itspace::python {
namespace {

template <Storage Scalar>
nb::tuple gradient(const Matrix<Scalar>& factor, const AnyTarget& target) {
  const auto* ref = std::get_if<TargetRef<Scalar>>(&target.ref);
  require(ref != nullptr, "the factor is not of the target's dtype; convert it first");
  check_factor<Scalar>(view<Scalar>(factor), ref->dim(), "Y");
  ObjectiveGradient<Scalar> found;
  {
    const nb::gil_scoped_release unlocked;
    found = objective_and_gradient<Scalar>(view<Scalar>(factor), *ref);
  }
  Step step;
  step.objective = found.objective;
  step.resolution = found.resolution;
  return nb::make_tuple(found.objective, to_numpy<Scalar>(std::move(found.gradient)), unresolved_of(step));
}

template <Storage Scalar>
nb::tuple features_gradient(const Matrix<Scalar>& factor, const Matrix<Scalar>& features,
                            const std::optional<Vector>& weights) {
  const Eigen::VectorXd copied = weights ? copy_of(*weights) : Eigen::VectorXd();
  FeaturesGradient<Scalar> found;
  {
    const nb::gil_scoped_release unlocked;
    const MatrixView<Scalar> y = view<Scalar>(factor), x = view<Scalar>(features);
    check_samples<Scalar>(x, copied, "X");
    require(y.rows() == x.cols(), "Y has ", y.rows(), " rows and X has ", x.cols(),
            " columns; a factor is d x r for samples of dimension d");
    check_finite<Scalar>(y, "Y");
    found = objective_and_features_gradient<Scalar>(view<Scalar>(factor), view<Scalar>(features), copied);
  }
  return nb::make_tuple(found.objective, to_numpy<Scalar>(std::move(found.gradient)),
                        to_numpy<Scalar>(std::move(found.features_gradient)));
}

template <Storage Scalar>
void add_typed(nb::module_& module) {
  module.def("objective_and_gradient", &gradient<Scalar>, nb::arg("factor"), nb::arg("target"));
  module.def("objective_and_features_gradient", &features_gradient<Scalar>, nb::arg("factor"), nb::arg("features"),
             nb::arg("weights").none());
}

}  // namespace

void add_gradient(nb::module_& module) {
  add_typed<float>(module);
  add_typed<double>(module);
}

}  // namespace itspace::python
