// SPDX-License-Identifier: Apache-2.0
//
// The product of a features target over some of its rows: what each worker of a cluster adds to a step.
#include "arrays.hpp"
#include "core/require.hpp"
#include "module.hpp"
#include "targets/rows_product.hpp"

namespace itspace::python {
namespace {

template <Storage Scalar>
using Shift = nb::ndarray<const Scalar, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <Storage Scalar, Storage Data>
nb::object product(const Matrix<Data>& rows, const Shift<Scalar>& shift, const Matrix<Scalar>& y) {
  require(y.shape(0) == rows.shape(1) && shift.shape(0) == rows.shape(1), "the rows have ", rows.shape(1),
          " columns, the block ", y.shape(0), " rows and the shift ", shift.shape(0), " values; the three must agree");
  const auto block = view<Scalar>(y);
  Block<Scalar> out(block.rows(), block.cols());
  {
    const nb::gil_scoped_release unlocked;
    itspace::rows_product<Scalar, Data>(view<Data>(rows), shift.data(), block, out);
  }
  return to_numpy<Scalar>(std::move(out));
}

template <Storage Scalar, Storage Data>
void add_typed(nb::module_& module) {
  module.def("rows_product", &product<Scalar, Data>, nb::arg("rows"), nb::arg("shift"), nb::arg("y"),
             "sum_i (x_i - shift)(x_i - shift)' y over the rows, in one sweep.");
}

}  // namespace

void add_rows(nb::module_& module) {
  add_typed<float, float>(module);
  add_typed<double, double>(module);
  add_typed<double, float>(module);
}

}  // namespace itspace::python
