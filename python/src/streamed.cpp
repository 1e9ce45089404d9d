// SPDX-License-Identifier: Apache-2.0
//
// Features that go by: from files, which the library reads itself, or from what a Python function hands out.
#include <itspace/row_files.hpp>
#include <itspace/streamed.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "target.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace itspace::python {
namespace {

// first() returns an iterator over C-contiguous arrays of Data with `dim` columns (the Python side sees to it);
// second(row) names a row. The library reads on a thread of its own, which takes the interpreter's lock for each call.
template <Storage Data>
class PythonRows : public RowSource<Data> {
 public:
  PythonRows(Index dim, std::shared_ptr<PythonCalls> calls) : dim_(dim), calls_(std::move(calls)) {}
  ~PythonRows() override {
    const nb::gil_scoped_acquire lock;
    rows_.reset();
    iterator_.reset();
    calls_.reset();
  }

  Index cols() const override { return dim_; }

  void restart() override {
    const nb::gil_scoped_acquire lock;
    rows_.reset();
    iterator_ = calls_->first();
    next_ = 0;
  }

  Index read(BlockView<Data> out) override {
    const nb::gil_scoped_acquire lock;
    while (!rows_ || next_ == static_cast<Index>(rows_->shape(0))) {
      const nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
      if (!item.is_valid()) {
        if (PyErr_Occurred() != nullptr) nb::raise_python_error();
        return 0;
      }
      rows_ = nb::cast<Matrix<Data>>(item);
      next_ = 0;
    }
    const Index count = std::min(out.rows(), static_cast<Index>(rows_->shape(0)) - next_);
    out.topRows(count) = view<Data>(*rows_).middleRows(next_, count);
    next_ += count;
    return count;
  }

  std::string place_of(Index row) const override {
    const nb::gil_scoped_acquire lock;
    return nb::cast<std::string>(calls_->second(row));
  }

 private:
  Index dim_;
  std::shared_ptr<PythonCalls> calls_;
  nb::object iterator_;
  std::optional<Matrix<Data>> rows_;
  Index next_ = 0;
};

// The target with blocks of Scalar over the source that make() makes; each target has one of its own.
template <Storage Scalar, Storage Data, class Make>
AnyTarget streamed(const Make& make, std::uint64_t memory) {
  using Streamed = StreamedFeatures<Scalar, Data>;
  auto target = std::make_shared<Streamed>(make(), memory);
  AnyTarget any = AnyTarget::make<Scalar, Streamed, Data>("stream", target, std::nullopt);
  any.gathered = [target] { return std::pair<Eigen::VectorXd, Index>(target->mean(), target->samples()); };
  if constexpr (std::same_as<Scalar, float>)
    any.widened = [make, memory] { return streamed<double, float>(make, memory); };
  return any;
}

template <Storage Scalar, Storage Data>
AnyTarget of_rows(Index dim, const std::shared_ptr<PythonCalls>& calls, std::uint64_t memory) {
  AnyTarget any = streamed<Scalar, Data>(
      [dim, calls]() -> std::shared_ptr<RowSource<Data>> { return std::make_shared<PythonRows<Data>>(dim, calls); },
      memory);
  any.calls = calls;
  if constexpr (std::same_as<Scalar, float>)  // with references of its own
    any.widened = [=] { return of_rows<double, float>(dim, std::make_shared<PythonCalls>(*calls), memory); };
  return any;
}

AnyTarget from_rows(Index dim, bool float32, const nb::callable& begin, const nb::callable& place,
                    std::uint64_t memory) {
  const auto calls = std::make_shared<PythonCalls>(PythonCalls{begin, place});
  return float32 ? of_rows<float, float>(dim, calls, memory) : of_rows<double, double>(dim, calls, memory);
}

AnyTarget from_files(const std::vector<std::string>& names, const std::string& dtype, std::uint64_t memory) {
  const io::RowFiles files(names);
  const bool narrow = files.type() == "float32" || files.type() == "float16";
  if (dtype == "float32" || (dtype.empty() && narrow))
    return streamed<float, float>([files] { return files.source<float>(); }, memory);
  return streamed<double, double>([files] { return files.source<double>(); }, memory);
}

}  // namespace

void add_streamed(nb::module_& module) {
  module.def("stream_of_rows", &from_rows, nb::arg("dim"), nb::arg("float32"), nb::arg("begin"), nb::arg("place"),
             nb::arg("memory"));
  module.def("stream_of_files", &from_files, nb::arg("names"), nb::arg("dtype"), nb::arg("memory"));
  module.def("_default_stream_memory", [] { return default_stream_memory; });
}

}  // namespace itspace::python
