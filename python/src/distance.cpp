// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/moments.hpp>

#include "arrays.hpp"
#include "core/require.hpp"
#include "interrupt.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

namespace itspace::python {
namespace {

template <Storage Scalar>
StackView<Scalar> stack_of(const Stack<Scalar>& array) {
  return {array.data(), static_cast<Index>(array.shape(0)), static_cast<Index>(array.shape(1))};
}

template <Storage Scalar>
nb::object distances_squared(const Stack<Scalar>& a, const Stack<Scalar>& b, bool paired, double relative) {
  SignalCheck signals;
  const auto between = [&signals] { signals.poll(); };
  Eigen::VectorXd pairs;
  Block<double> all;
  {
    const nb::gil_scoped_release unlocked;
    if (paired)
      pairs = paired_distances_squared<Scalar>(stack_of<Scalar>(a), stack_of<Scalar>(b), {relative, 0}, between);
    else
      all = cross_distances_squared<Scalar>(stack_of<Scalar>(a), stack_of<Scalar>(b), {relative, 0}, between);
  }
  return paired ? to_numpy(std::move(pairs)) : to_numpy<double>(std::move(all));
}

template <Storage Scalar>
double distance_squared(const Matrix<Scalar>& a, const Matrix<Scalar>& b, double relative) {
  const nb::gil_scoped_release unlocked;
  return dense_distance_squared<Scalar>(view<Scalar>(a), view<Scalar>(b), {relative, 0});
}

template <Storage Scalar>
nb::tuple features_parts(const Matrix<Scalar>& a, const Matrix<Scalar>& b, double relative) {
  Distance distance;
  {
    const nb::gil_scoped_release unlocked;
    check_samples<Scalar>(view<Scalar>(a), {}, "X1");
    check_samples<Scalar>(view<Scalar>(b), {}, "X2");
    distance = features_distance<Scalar>(view<Scalar>(a), view<Scalar>(b), {relative, 0});
  }
  return nb::make_tuple(distance.covariance_part, distance.mean_part);
}

template <Storage Scalar>
nb::object geodesic_point(const Matrix<Scalar>& a, const Matrix<Scalar>& b, double t) {
  Block<Scalar> point;
  {
    const nb::gil_scoped_release unlocked;
    point = geodesic<Scalar>(view<Scalar>(a), view<Scalar>(b), t);
  }
  return to_numpy<Scalar>(std::move(point));
}

template <Storage Scalar>
nb::object truncate_covariance(const Matrix<Scalar>& sigma, Index rank) {
  Block<Scalar> factor;
  {
    const nb::gil_scoped_release unlocked;
    factor = truncate<Scalar>(view<Scalar>(sigma), rank);
  }
  return to_numpy<Scalar>(std::move(factor));
}

template <Storage Scalar>
nb::object truncate_block(const Matrix<Scalar>& factor, Index rank) {
  Block<Scalar> out;
  {
    const nb::gil_scoped_release unlocked;
    check_finite<Scalar>(view<Scalar>(factor), "Y");
    out = truncate_factor<Scalar>(view<Scalar>(factor), rank);
  }
  return to_numpy<Scalar>(std::move(out));
}

template <Storage Scalar>
nb::object eigenvalues(const Matrix<Scalar>& sigma, Index count) {
  const auto d = static_cast<Index>(sigma.shape(0));
  require(1 <= count && count <= d, "count is ", count, " and the dimension is ", d,
          "; there are as many eigenvalues as dimensions (1 <= count <= ", d, ")");
  Eigen::VectorXd values;
  {
    const nb::gil_scoped_release unlocked;
    values = leading_eigenvalues<Scalar>(view<Scalar>(sigma), count);
  }
  return to_numpy(std::move(values));
}

template <Storage Scalar>
void update(MomentAccumulator& moments, const Matrix<Scalar>& batch) {
  moments.update<Scalar>(view<Scalar>(batch));
}

// @pre nobody changes either meanwhile: the GIL, which would keep others out, is given away.
double moments_distance(const MomentAccumulator& a, const MomentAccumulator& b) {
  const nb::gil_scoped_release unlocked;
  return dense_distance_squared<double>(a.covariance(), b.covariance()) + mean_distance_squared(a.mean(), b.mean());
}

template <Storage Scalar>
void add_typed(nb::module_& module, nb::class_<MomentAccumulator>& moments) {
  module.def("distances_squared", &distances_squared<Scalar>, nb::arg("a"), nb::arg("b"), nb::arg("paired"),
             nb::arg("accuracy"));
  module.def("distance_squared", &distance_squared<Scalar>, nb::arg("a"), nb::arg("b"), nb::arg("accuracy"));
  module.def("features_distance", &features_parts<Scalar>, nb::arg("a"), nb::arg("b"), nb::arg("accuracy"));
  module.def("geodesic", &geodesic_point<Scalar>, nb::arg("a"), nb::arg("b"), nb::arg("t"));
  module.def("truncate", &truncate_covariance<Scalar>, nb::arg("sigma"), nb::arg("rank"));
  module.def("truncate_factor", &truncate_block<Scalar>, nb::arg("factor"), nb::arg("rank"));
  module.def("leading_eigenvalues", &eigenvalues<Scalar>, nb::arg("sigma"), nb::arg("count"));
  moments.def("update", &update<Scalar>, nb::arg("batch"));
}

}  // namespace

void add_distance(nb::module_& module) {
  nb::class_<MomentAccumulator> moments(module, "Moments", "Mean and covariance, batch by batch.");
  moments.def(
      "__init__",
      [](MomentAccumulator* self, std::optional<Index> dim) {
        if (dim)
          new (self) MomentAccumulator(*dim);
        else
          new (self) MomentAccumulator();
      },
      nb::arg("dim").none());
  moments.def_static(
      "from_parts",
      [](Index count, const Vector& mean, const Matrix<double>& scatter) {
        return MomentAccumulator(count, copy_of(mean), view<double>(scatter));
      },
      nb::arg("count"), nb::arg("mean"), nb::arg("scatter"));
  moments.def_prop_ro("dim", &MomentAccumulator::dim);
  moments.def_prop_ro("count", &MomentAccumulator::count);
  moments.def_prop_ro("mean", [](const MomentAccumulator& self) { return to_numpy(Eigen::VectorXd(self.mean())); });
  moments.def_prop_ro("scatter",
                      [](const MomentAccumulator& self) { return to_numpy<double>(Block<double>(self.scatter())); });
  moments.def("covariance", [](const MomentAccumulator& self) { return to_numpy<double>(self.covariance()); });
  moments.def("copy", [](const MomentAccumulator& self) { return MomentAccumulator(self); });
  moments.def("merge", &MomentAccumulator::merge, nb::arg("other"));
  moments.def("reset", &MomentAccumulator::reset);
  moments.def("distance_squared", &moments_distance, nb::arg("other"));
  add_typed<float>(module, moments);
  add_typed<double>(module, moments);
  module.def(
      "mean_distance_squared",
      [](const Vector& a, const Vector& b) { return mean_distance_squared(copy_of(a), copy_of(b)); }, nb::arg("a"),
      nb::arg("b"));
  module.def(
      "floor_r", [](const Vector& eigenvalues, Index rank) { return floor_r(copy_of(eigenvalues), rank); },
      nb::arg("eigenvalues"), nb::arg("rank"));
  module.def("_default_accuracy", [] { return default_accuracy.relative; });
  module.def("gap_r", &gap_r, nb::arg("objective"), nb::arg("start_objective"), nb::arg("floor"));
}

}  // namespace itspace::python
