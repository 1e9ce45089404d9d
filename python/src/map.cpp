// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/map_file.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/shift_test.hpp>
#include <itspace/shrinkage.hpp>
#include <itspace/transport_map.hpp>

#include "core/require.hpp"
#include "interrupt.hpp"
#include "models.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

namespace itspace::python {
namespace {

MapKind kind_named(const std::string& text) {
  const auto kind = map_kind_named(text);
  require(kind.has_value(), "kind is '", text, "'; it must be ", map_kind_names());
  return *kind;
}

double remainder_of(const AnyTarget& target, const AnyArray& factor, const Vector& mean, double floor,
                    double shrinkage) {
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        require(factor.dtype() == nb::dtype<Scalar>(), "the factor is not of its target's dtype; convert it first");
        const MatrixView<Scalar> y = view_as<Scalar>(factor);
        const Eigen::VectorXd copied = copy_of(mean);
        const nb::gil_scoped_release unlocked;
        return model_of<Scalar>(ref, y, copied, ModelOptions{.floor = floor, .shrinkage = shrinkage}).remainder;
      },
      target.ref);
}

TransportMap from_models(const ModelTuple& from, const ModelTuple& to, const std::string& kind, double kept_mean,
                         double kept_covariance, const std::optional<Vector>& kept_deviations) {
  const MapKind named = kind_named(kind);
  const LowRankGaussian from_model = model_from(from), to_model = model_from(to);
  const Kept kept{kept_mean, kept_covariance, given_or_empty(kept_deviations)};
  const nb::gil_scoped_release unlocked;
  return TransportMap(from_model, to_model, named, kept);
}

nb::object seen_out(const SeenShift& seen) {
  nb::dict out;
  const auto pair = [](const Seen& part) { return nb::make_tuple(part.observed, part.noise); };
  const auto values = [](const itspace::Vector& v) -> nb::object {
    return v.size() > 0 ? to_numpy(Eigen::VectorXd(v)) : nb::none();
  };
  out["mean"] = pair(seen.mean);
  out["covariance"] = pair(seen.covariance);
  out["deviations_observed"] = values(seen.deviations_observed);
  out["deviations_noise"] = values(seen.deviations_noise);
  return out;
}

nb::object seen_by_noise(const AnyTarget& from_target, const ModelTuple& from, const AnyTarget& to_target,
                         const ModelTuple& to, const std::string& kind, std::uint64_t seed) {
  const MapKind named = kind_named(kind);
  const LowRankGaussian from_model = model_from(from), to_model = model_from(to);
  require(from_target.float32() == to_target.float32(), "the two targets differ in dtype; convert one of them first");
  const SeenShift seen = std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        const auto other = std::get<TargetRef<Scalar>>(to_target.ref);
        const nb::gil_scoped_release unlocked;
        return seen_shift<Scalar>(ref, from_model, other, to_model, named, seed);
      },
      from_target.ref);
  return seen_out(seen);
}

nb::object seen_by_halves(const Matrix<double>& from_features, const ModelTuple& from,
                          const Matrix<double>& to_features, const ModelTuple& to, const std::string& kind, Index steps,
                          std::uint64_t seed, double floor) {
  const MapKind named = kind_named(kind);
  const LowRankGaussian from_model = model_from(from), to_model = model_from(to);
  const MatrixView<double> first = view<double>(from_features), second = view<double>(to_features);
  AlignOptions options;
  options.steps = steps;
  options.seed = seed;
  SeenShift seen;
  {
    const nb::gil_scoped_release unlocked;
    seen = seen_shift_by_halves<double>(first, from_model, second, to_model, named, options, floor);
  }
  return seen_out(seen);
}

template <Storage Scalar>
nb::object deviations_of(const Matrix<Scalar>& features, const std::optional<Vector>& weights) {
  const MatrixView<Scalar> rows = view<Scalar>(features);
  const Eigen::VectorXd copied = given_or_empty(weights);
  Eigen::VectorXd found;
  {
    const nb::gil_scoped_release unlocked;
    found = deviations<Scalar>(rows, copied);
  }
  return to_numpy(std::move(found));
}

template <Storage Scalar>
nb::object standardised(const Matrix<Scalar>& values, const std::optional<Vector>& mean, const Vector& deviations) {
  Block<Scalar> copy = view<Scalar>(values);
  const Eigen::VectorXd divisors = copy_of(deviations);
  if (mean)
    standardise_features<Scalar>(copy_of(*mean), divisors, copy);
  else
    standardise_covariance<Scalar>(divisors, copy);
  return to_numpy<Scalar>(std::move(copy));
}

template <Storage Scalar>
double ledoit_wolf(const Matrix<Scalar>& features) {
  const MatrixView<Scalar> rows = view<Scalar>(features);
  const nb::gil_scoped_release unlocked;
  return ledoit_wolf_shrinkage<Scalar>(rows);
}

double oas(const AnyTarget& target, double samples) {
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        const nb::gil_scoped_release unlocked;
        return oas_shrinkage<Scalar>(ref, samples);
      },
      target.ref);
}

template <Storage Scalar>
nb::object test_shift(const Matrix<Scalar>& source, const Matrix<Scalar>& target, Index rank, Index permutations,
                      double level, std::uint64_t seed) {
  const MatrixView<Scalar> first = view<Scalar>(source), second = view<Scalar>(target);
  ShiftTest found;
  {
    const nb::gil_scoped_release unlocked;
    SignalCheck signals;
    found = shift_test<Scalar>(first, second, {rank, permutations, level, seed, [&] { signals.poll(); }});
  }
  const auto outcome = [](const ShiftOutcome& part) {
    return nb::make_tuple(part.observed, part.noise, part.noise_deviation, part.z, part.p_normal, part.p_permutation);
  };
  nb::list directions;
  for (const MovedDirection& moved : found.directions)
    directions.append(nb::make_tuple(moved.number, to_numpy(Eigen::VectorXd(moved.direction)), moved.mean_shift,
                                     moved.mean_z, moved.mean_p, moved.deviation_source, moved.deviation_target,
                                     moved.deviation_z, moved.deviation_p));
  return nb::make_tuple(found.samples_source, found.samples_target, found.dim, found.rank, found.explained,
                        found.permutations, outcome(found.mean), outcome(found.covariance), directions);
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
  const auto values = [](const itspace::Vector& v) -> nb::object {
    return v.size() > 0 ? to_numpy(Eigen::VectorXd(v)) : nb::none();
  };
  out["scale_from"] = values(parts.scale_from);
  out["scale_to"] = values(parts.scale_to);
  out["samples_from"] = parts.samples_from;
  out["samples_to"] = parts.samples_to;
  out["kept_mean"] = parts.kept.mean;
  out["kept_covariance"] = parts.kept.covariance;
  out["kept_deviations"] = values(parts.kept.deviations);
  return out;
}

TransportMap from_parts(const std::string& kind, double scalar, const Matrix<double>& basis, const Matrix<double>& core,
                        const Vector& mean_from, const Vector& mean_to, const Matrix<double>& from_root,
                        const Matrix<double>& to_root, double from_remainder, double to_remainder,
                        const std::optional<Vector>& scale_from, const std::optional<Vector>& scale_to,
                        double samples_from, double samples_to, double kept_mean, double kept_covariance,
                        const std::optional<Vector>& kept_deviations) {
  return TransportMap(
      TransportMap::Parts{kind_named(kind), scalar, view<double>(basis), view<double>(core), copy_of(mean_from),
                          copy_of(mean_to), view<double>(from_root), view<double>(to_root), from_remainder,
                          to_remainder, given_or_empty(scale_from), given_or_empty(scale_to), samples_from, samples_to,
                          Kept{kept_mean, kept_covariance, given_or_empty(kept_deviations)}});
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
  const ShiftTestOptions shift;
  out["shift_rank"] = shift.rank;
  out["shift_permutations"] = shift.permutations;
  out["shift_level"] = shift.level;
  out["shift_seed"] = shift.seed;
  return out;
}

}  // namespace

void add_map(nb::module_& module) {
  module.def("remainder_of", &remainder_of, nb::arg("target"), nb::arg("factor"), nb::arg("mean"), nb::arg("floor"),
             nb::arg("shrinkage"));
  module.def("seen_by_noise", &seen_by_noise, nb::arg("from_target"), nb::arg("from_model"), nb::arg("to_target"),
             nb::arg("to_model"), nb::arg("kind"), nb::arg("seed"));
  module.def("seen_by_halves", &seen_by_halves, nb::arg("from_features"), nb::arg("from_model"), nb::arg("to_features"),
             nb::arg("to_model"), nb::arg("kind"), nb::arg("steps"), nb::arg("seed"), nb::arg("floor"));
  module.def(
      "effective_samples",
      [](const Vector& weights) { return effective_samples(static_cast<Index>(weights.size()), copy_of(weights)); },
      nb::arg("weights"));
  module.def("deviations", &deviations_of<float>, nb::arg("features").noconvert(), nb::arg("weights").none());
  module.def("deviations", &deviations_of<double>, nb::arg("features").noconvert(), nb::arg("weights").none());
  module.def("standardised", &standardised<float>, nb::arg("values").noconvert(), nb::arg("mean").none(),
             nb::arg("deviations"));
  module.def("standardised", &standardised<double>, nb::arg("values").noconvert(), nb::arg("mean").none(),
             nb::arg("deviations"));
  module.def("ledoit_wolf", &ledoit_wolf<float>, nb::arg("features").noconvert());
  module.def("ledoit_wolf", &ledoit_wolf<double>, nb::arg("features").noconvert());
  module.def("oas", &oas, nb::arg("target"), nb::arg("samples"));
  module.def("shift_test", &test_shift<float>, nb::arg("source").noconvert(), nb::arg("target").noconvert(),
             nb::arg("rank"), nb::arg("permutations"), nb::arg("level"), nb::arg("seed"));
  module.def("shift_test", &test_shift<double>, nb::arg("source").noconvert(), nb::arg("target").noconvert(),
             nb::arg("rank"), nb::arg("permutations"), nb::arg("level"), nb::arg("seed"));
  module.def("_default_map_options", &default_map_options);
  nb::class_<TransportMap>(module, "TransportMap", "x -> mean_to + A (x - mean_from).")
      .def_static("from_models", &from_models, nb::arg("from_model"), nb::arg("to_model"), nb::arg("kind"),
                  nb::arg("kept_mean"), nb::arg("kept_covariance"), nb::arg("kept_deviations").none())
      .def_static("from_parts", &from_parts, nb::arg("kind"), nb::arg("scalar"), nb::arg("basis"), nb::arg("core"),
                  nb::arg("mean_from"), nb::arg("mean_to"), nb::arg("from_root"), nb::arg("to_root"),
                  nb::arg("from_remainder"), nb::arg("to_remainder"), nb::arg("scale_from").none(),
                  nb::arg("scale_to").none(), nb::arg("samples_from"), nb::arg("samples_to"), nb::arg("kept_mean"),
                  nb::arg("kept_covariance"), nb::arg("kept_deviations").none())
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
