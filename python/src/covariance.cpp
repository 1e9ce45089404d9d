// SPDX-License-Identifier: Apache-2.0
//
// The one rule by which every function of the package accepts a matrix as a covariance. Where a matrix was accumulated
// in float32, or by a product that does not know its result to be symmetric, the two triangles differ by rounding: that
// is averaged away, once, here, so that it does not depend on the routine which triangle counts. And the covariance of
// a target as a matrix.
#include <itspace/covariance.hpp>
#include <itspace/covariance_bands.hpp>
#include <itspace/row_stream.hpp>

#include "arrays.hpp"
#include "core/negative_variance.hpp"
#include "core/require.hpp"
#include "interrupt.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <concepts>
#include <filesystem>
#include <stdexcept>

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
    const Asymmetry found = check_symmetric<Scalar>(sigma, rounded_to_float, name);
    refuse_negative_variance<Scalar>(sigma, name);
    if (found.size > 0) {
      averaged = sigma;
      symmetrise<Scalar>(averaged);
    }
  }
  if (averaged.size() == 0) return nb::none();
  return to_numpy<Scalar>(std::move(averaged));
}

// What a file that is written is guilty of is an OSError; what is read has words of its own.
template <class Write>
auto written(const Write& write) {
  try {
    return write();
  } catch (const std::runtime_error& error) {
    const nb::gil_scoped_acquire lock;
    PyErr_SetString(PyExc_OSError, error.what());
    throw nb::python_error();
  }
}

// The rows of a target's covariance, in bands within `memory`, for `take(first, rows)`.
template <class Take>
void in_bands(const AnyTarget& target, std::uint64_t memory, const Take& take) {
  std::visit(
      [&]<class Scalar>(const TargetRef<Scalar>& ref) {
        SignalCheck signals;
        Index first = 0;
        covariance_bands<Scalar>(ref, band_rows(ref.dim(), memory), [&](const ConstBlockView<Scalar>& rows) {
          take(first, rows);
          first += rows.rows();
          signals.poll();
        });
      },
      target.ref);
}

nb::object covariance_of(const AnyTarget& target, std::uint64_t memory) {
  Block<double> whole(target.dim(), target.dim());
  {
    const nb::gil_scoped_release unlocked;
    in_bands(target, memory, [&](Index first, const auto& rows) {
      whole.middleRows(first, rows.rows()) = rows.template cast<double>();
    });
  }
  return to_numpy<double>(std::move(whole));
}

void save_covariance(const AnyTarget& target, std::uint64_t memory, const std::filesystem::path& path) {
  const nb::gil_scoped_release unlocked;
  auto file = written([&] { return io::RowWriter<double>(path, target.dim(), target.dim()); });
  in_bands(target, memory, [&]<class Rows>(Index, const Rows& rows) {
    written([&] {
      if constexpr (std::same_as<typename Rows::Scalar, double>)
        file.write(rows);
      else
        file.write(Block<double>(rows.template cast<double>()));
    });
  });
  written([&] { file.commit(); });
}

}  // namespace

void add_covariance(nb::module_& module) {
  module.def("covariance", &covariance_of, nb::arg("target"), nb::arg("memory"));
  module.def("save_covariance", &save_covariance, nb::arg("target"), nb::arg("memory"), nb::arg("path"));
  module.def("symmetric", &symmetric<float>, nb::arg("sigma"), nb::arg("name"));
  module.def("symmetric", &symmetric<double>, nb::arg("sigma"), nb::arg("name"));
}

}  // namespace itspace::python
