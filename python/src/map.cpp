// SPDX-License-Identifier: Apache-2.0
#include <itspace/map_file.hpp>
#include <itspace/transport_map.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace itspace::python {
namespace {

MapKind kind_named(const std::string& text) {
  const auto kind = map_kind_named(text);
  require(kind.has_value(), "kind is '", text, "'; it must be 'monge' or 'whiten'");
  return *kind;
}

double remainder_of(const AnyTarget& target, const AnyArray& factor, const Vector& mean, double floor) {
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        require(factor.dtype() == nb::dtype<Scalar>(), "the factor is not of its target's dtype; convert it first");
        const MatrixView<Scalar> y = view_as<Scalar>(factor);
        const Eigen::VectorXd copied = copy_of(mean);
        const nb::gil_scoped_release unlocked;
        return model_of<Scalar>(ref, y, copied, floor).remainder;
      },
      target.ref);
}

TransportMap from_models(const Matrix<double>& from_factor, const Vector& from_mean, double from_remainder,
                         const Matrix<double>& to_factor, const Vector& to_mean, double to_remainder,
                         const std::string& kind) {
  const MapKind named = kind_named(kind);
  const LowRankGaussian from{view<double>(from_factor), copy_of(from_mean), from_remainder};
  const LowRankGaussian to{view<double>(to_factor), copy_of(to_mean), to_remainder};
  const nb::gil_scoped_release unlocked;
  return TransportMap(from, to, named);
}

template <Storage Scalar>
void apply(const TransportMap& map, const WritableMatrix<Scalar>& samples) {
  const auto rows = static_cast<Index>(samples.shape(0)), cols = static_cast<Index>(samples.shape(1));
  Eigen::Map<RowMajorMatrix<Scalar>, 0, Eigen::OuterStride<>> view(samples.data(), rows, cols,
                                                                   Eigen::OuterStride<>(cols));
  const nb::gil_scoped_release unlocked;
  map.apply<Scalar>(view);
}

nb::object parts_of(const TransportMap& map) {
  const TransportMap::Parts& parts = map.parts();
  nb::dict out;
  out["kind"] = std::string(name(parts.kind));
  out["scalar"] = parts.scalar;
  out["basis"] = to_numpy<double>(Block<double>(parts.basis));
  out["core"] = to_numpy<double>(Block<double>(parts.core));
  out["mean_from"] = to_numpy(Eigen::VectorXd(parts.mean_from));
  out["mean_to"] = to_numpy(Eigen::VectorXd(parts.mean_to));
  out["from_root"] = to_numpy<double>(Block<double>(parts.from_root));
  out["to_root"] = to_numpy<double>(Block<double>(parts.to_root));
  out["from_remainder"] = parts.from_remainder;
  out["to_remainder"] = parts.to_remainder;
  return out;
}

TransportMap from_parts(const std::string& kind, double scalar, const Matrix<double>& basis, const Matrix<double>& core,
                        const Vector& mean_from, const Vector& mean_to, const Matrix<double>& from_root,
                        const Matrix<double>& to_root, double from_remainder, double to_remainder) {
  return TransportMap(TransportMap::Parts{kind_named(kind), scalar, view<double>(basis), view<double>(core),
                                          copy_of(mean_from), copy_of(mean_to), view<double>(from_root),
                                          view<double>(to_root), from_remainder, to_remainder});
}

// Calls `work` without the interpreter's lock; what a file is guilty of comes out as `type`.
template <class Work>
auto with_file(PyObject* type, Work work) {
  try {
    const nb::gil_scoped_release unlocked;
    return work();
  } catch (const std::runtime_error& error) {
    PyErr_SetString(type, error.what());
    throw nb::python_error();
  }
}

void save(const TransportMap& map, const std::filesystem::path& path) {
  with_file(PyExc_OSError, [&] { io::save_map(path, map); });
}

TransportMap load(const std::filesystem::path& path) {
  return with_file(PyExc_ValueError, [&] { return io::load_map(path); });
}

nb::object diagnosis_of(const TransportMap& map, std::optional<Index> samples_from, std::optional<Index> samples_to) {
  const MapDiagnosis found = map.diagnose(samples_from, samples_to);
  nb::dict out;
  out["displacement"] = found.displacement;
  out["relative_displacement"] = found.relative_displacement;
  out["mean_share"] = found.mean_share;
  out["touched_variance"] = found.touched_variance;
  out["condition"] = found.condition;
  out["warnings"] = found.warnings;
  return out;
}

// The library's own defaults, for the test that holds Python's against them.
nb::object default_map_options() {
  nb::dict out;
  out["kind"] = std::string(name(TransportMap::Parts{}.kind));
  out["floor"] = default_remainder_floor;
  return out;
}

}  // namespace

void add_map(nb::module_& module) {
  module.def("remainder_of", &remainder_of, nb::arg("target"), nb::arg("factor"), nb::arg("mean"), nb::arg("floor"));
  module.def("_default_map_options", &default_map_options);
  nb::class_<TransportMap>(module, "TransportMap", "x -> mean_to + A (x - mean_from).")
      .def_static("from_models", &from_models, nb::arg("from_factor"), nb::arg("from_mean"), nb::arg("from_remainder"),
                  nb::arg("to_factor"), nb::arg("to_mean"), nb::arg("to_remainder"), nb::arg("kind"))
      .def_static("from_parts", &from_parts, nb::arg("kind"), nb::arg("scalar"), nb::arg("basis"), nb::arg("core"),
                  nb::arg("mean_from"), nb::arg("mean_to"), nb::arg("from_root"), nb::arg("to_root"),
                  nb::arg("from_remainder"), nb::arg("to_remainder"))
      .def_static("load", &load, nb::arg("path"))
      .def("save", &save, nb::arg("path"))
      .def("parts", &parts_of)
      .def("apply_in_place", &apply<float>, nb::arg("samples").noconvert())
      .def("apply_in_place", &apply<double>, nb::arg("samples").noconvert())
      .def("inverse", &TransportMap::inverse)
      .def("matrix", [](const TransportMap& map) { return to_numpy<double>(map.matrix()); })
      .def("displacement", &TransportMap::displacement)
      .def("diagnose", &diagnosis_of, nb::arg("samples_from").none(), nb::arg("samples_to").none())
      .def_prop_ro("dim", &TransportMap::dim)
      .def_prop_ro("kind", [](const TransportMap& map) { return std::string(name(map.kind())); });
}

}  // namespace itspace::python
