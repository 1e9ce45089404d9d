// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <itspace/covariance.hpp>
#include <itspace/rank.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include "core/require.hpp"
#include "module.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <cmath>
#include <string>

namespace itspace::python {
namespace {

// A user's object, as the Python side hands it over: its dimension, and functions for its trace and its products, which
// check what they return. The run goes on without the interpreter's lock, so each call takes it.
template <Storage Scalar>
class PythonOperator {
 public:
  PythonOperator(Index dim, std::shared_ptr<PythonCalls> trace_and_apply)
      : dim_(dim), calls_(std::move(trace_and_apply)) {}

  Index dim() const { return dim_; }

  double trace() const {
    const nb::gil_scoped_acquire lock;
    const auto value = nb::cast<double>(calls_->first());
    require(std::isfinite(value) && value >= 0, "the target's trace is ", value,
            "; a covariance has a trace that is finite and 0 or more");
    return value;
  }

  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
    const nb::gil_scoped_acquire lock;
    const nb::object product = calls_->second(to_numpy<Scalar>(Block<Scalar>(y)));
    const auto array = nb::cast<Matrix<Scalar>>(product);
    require(static_cast<Index>(array.shape(0)) == out.rows() && static_cast<Index>(array.shape(1)) == out.cols(),
            "the target's apply returned an array of shape (", array.shape(0), ", ", array.shape(1),
            ") for a block of shape (", out.rows(), ", ", out.cols(), "); it must return Sigma @ Y, of the same shape");
    out = view<Scalar>(array);
  }

 private:
  Index dim_;
  std::shared_ptr<PythonCalls> calls_;
};

// The maker of a target with blocks of Scalar on an array of Data, and, where both are float, of the one with double
// blocks on the same array.
template <Storage Data, class Make>
AnyTarget made_by(Make make) {
  AnyTarget any = make.template operator()<Data>();
  if constexpr (std::same_as<Data, float>) any.widened = [make] { return make.template operator()<double>(); };
  return any;
}

template <Storage Data>
AnyTarget from_covariance(const Matrix<Data>& sigma, bool check) {
  if (check) {  // symmetry was seen to at the door, by the same limit
    const nb::gil_scoped_release unlocked;
    check_covariance<Data>(view<Data>(sigma), rounded_to_float);
  }
  return made_by<Data>([sigma]<class Scalar>() {
    using Dense = DenseTarget<Scalar, Data>;
    return AnyTarget::make<Scalar, Dense, Data>("covariance", std::make_shared<Dense>(borrow<Data>(sigma)), sigma);
  });
}

template <Storage Data>
AnyTarget from_features(const Matrix<Data>& features, const std::optional<Vector>& weights) {
  const Eigen::VectorXd copied = weights ? copy_of(*weights) : Eigen::VectorXd();
  {
    const nb::gil_scoped_release unlocked;
    check_samples<Data>(view<Data>(features), copied, "X");
  }
  return made_by<Data>([features, copied, weighted = weights.has_value()]<class Scalar>() {
    using Features = FeaturesTarget<Scalar, Data>;
    std::shared_ptr<Features> target;
    {
      const nb::gil_scoped_release unlocked;
      target = weighted ? std::make_shared<Features>(borrow<Data>(features), copied)
                        : std::make_shared<Features>(borrow<Data>(features));
    }
    AnyTarget any = AnyTarget::make<Scalar, Features, Data>("features", target, features);
    any.mean = target->mean();
    any.samples = target->samples();
    any.weights = copied;
    return any;
  });
}

template <Storage Data>
AnyTarget from_factor(const Matrix<Data>& factor) {
  check_finite<Data>(view<Data>(factor), "T");
  return made_by<Data>([factor]<class Scalar>() {
    using Factor = FactorTarget<Scalar, Data>;
    return AnyTarget::make<Scalar, Factor, Data>("factor", std::make_shared<Factor>(borrow<Data>(factor)), factor);
  });
}

template <Storage Data>
AnyTarget low_rank_plus_diagonal(const Matrix<Data>& u, const Vector& s, const std::variant<double, Vector>& sigma2) {
  check_finite<Data>(view<Data>(u), "U");
  std::variant<double, Eigen::VectorXd> diagonal;
  if (const auto* values = std::get_if<Vector>(&sigma2)) {
    diagonal = copy_of(*values);
  } else {
    diagonal = std::get<double>(sigma2);
  }
  return made_by<Data>([u, lambda = copy_of(s), diagonal]<class Scalar>() {
    using LowRank = LowRankDiagonalTarget<Scalar, Data>;
    auto target = std::visit(
        [&](const auto& value) { return std::make_shared<LowRank>(borrow<Data>(u), lambda, value); }, diagonal);
    return AnyTarget::make<Scalar, LowRank, Data>("low_rank_plus_diagonal", std::move(target), u);
  });
}

template <Storage Scalar>
AnyTarget operator_of(Index dim, std::shared_ptr<PythonCalls> calls) {
  using Operator = PythonOperator<Scalar>;
  AnyTarget any =
      AnyTarget::make<Scalar, Operator, Scalar>("operator", std::make_shared<Operator>(dim, calls), std::nullopt);
  any.calls = std::move(calls);
  return any;
}

AnyTarget from_functions(Index dim, bool float32, const nb::callable& trace, const nb::callable& apply) {
  auto calls = std::make_shared<PythonCalls>(PythonCalls{trace, apply});
  return float32 ? operator_of<float>(dim, std::move(calls)) : operator_of<double>(dim, std::move(calls));
}

// For the collector of cycles: which Python objects a target holds, and how they are let go.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  if (const auto& calls = nb::inst_ptr<AnyTarget>(self)->calls) {
    Py_VISIT(calls->first.ptr());
    Py_VISIT(calls->second.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  if (const auto& calls = nb::inst_ptr<AnyTarget>(self)->calls) *calls = {nb::none(), nb::none()};
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

template <Storage Scalar>
nb::object apply(const AnyTarget& target, const Matrix<Scalar>& y) {
  const auto* ref = std::get_if<TargetRef<Scalar>>(&target.ref);
  require(ref != nullptr, "the block is not of the target's dtype; convert it first");
  require(static_cast<Index>(y.shape(0)) == ref->dim(), "the block has ", y.shape(0),
          " rows and the target has dimension ", ref->dim(), "; it must be d x r");
  Block<Scalar> out(view<Scalar>(y).rows(), view<Scalar>(y).cols());
  {
    const nb::gil_scoped_release unlocked;
    ref->apply(view<Scalar>(y), out);
  }
  return to_numpy<Scalar>(std::move(out));
}

double trace(const AnyTarget& target) {
  const nb::gil_scoped_release unlocked;
  return std::visit([](const auto& ref) { return ref.trace(); }, target.ref);
}

bool has_factor(const AnyTarget& target) {
  return std::visit([](const auto& ref) { return ref.has_factor(); }, target.ref);
}

nb::object random_start_of(const AnyTarget& target, Index rank, std::uint64_t seed) {
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        Block<Scalar> start;
        {
          const nb::gil_scoped_release unlocked;
          start = random_start<Scalar>(ref, rank, seed);
        }
        return to_numpy<Scalar>(std::move(start));
      },
      target.ref);
}

nb::object start_from(const AnyTarget& target, Index rank) {
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        Block<Scalar> start;
        if (target.kind == "features") {  // weighted or not, without a d x d matrix where n < d
          const nb::gil_scoped_release unlocked;
          start = std::visit(
              [&]<class Data>(const std::optional<Matrix<Data>>& features) {
                return start_from_features<Scalar, Data>(view<Data>(*features), rank, target.weights);
              },
              target.array());
        } else {
          const nb::gil_scoped_release unlocked;
          start = start_from_target<Scalar>(ref, rank);
        }
        return to_numpy<Scalar>(std::move(start));
      },
      target.ref);
}

Index auto_rank(const AnyTarget& target, double share, std::uint64_t seed) {
  const nb::gil_scoped_release unlocked;
  return std::visit([&]<class Scalar>(TargetRef<Scalar> ref) { return rank_explaining<Scalar>(ref, share, seed); },
                    target.ref);
}

template <Storage Scalar>
void check_named_samples(const Matrix<Scalar>& rows, const std::string& name) {
  const nb::gil_scoped_release unlocked;
  check_samples<Scalar>(view<Scalar>(rows), {}, name);
}

template <Storage Scalar>
void add_typed(nb::module_& module, nb::class_<AnyTarget>& type) {
  module.def("check_samples", &check_named_samples<Scalar>, nb::arg("rows"), nb::arg("name"));
  type.def_static("from_covariance", &from_covariance<Scalar>, nb::arg("sigma"), nb::arg("check"));
  type.def_static("from_features", &from_features<Scalar>, nb::arg("features"), nb::arg("weights").none());
  type.def_static("from_factor", &from_factor<Scalar>, nb::arg("factor"));
  type.def_static("low_rank_plus_diagonal", &low_rank_plus_diagonal<Scalar>, nb::arg("u"), nb::arg("s"),
                  nb::arg("sigma2"));
  type.def("apply", &apply<Scalar>, nb::arg("y"));
}

}  // namespace

void add_target(nb::module_& module) {
  nb::class_<AnyTarget> type(module, "Target", nb::type_slots(slots), "A covariance as an operator.");
  add_typed<float>(module, type);
  add_typed<double>(module, type);
  type.def_static("from_functions", &from_functions, nb::arg("dim"), nb::arg("float32"), nb::arg("trace"),
                  nb::arg("apply"));
  type.def_prop_ro("dim", &AnyTarget::dim);
  type.def_prop_ro("trace", &trace);
  type.def_prop_ro("float32", &AnyTarget::float32);
  type.def("widened", [](const AnyTarget& target) {
    require(target.widened != nullptr, "the target has double blocks, or is an operator; there is nothing to widen");
    return target.widened();
  });
  type.def_prop_ro("has_factor", &has_factor);
  type.def_prop_ro("kind", [](const AnyTarget& target) { return target.kind; });
  type.def_prop_ro("samples", [](const AnyTarget& target) {
    const nb::gil_scoped_release unlocked;
    return target.gathered ? target.gathered().second : target.samples;
  });
  type.def_prop_ro("mean", [](const AnyTarget& target) -> nb::object {
    std::optional<Eigen::VectorXd> mean = target.mean;
    if (target.gathered) {
      const nb::gil_scoped_release unlocked;
      mean = target.gathered().first;
    }
    if (!mean) return nb::none();
    return to_numpy(std::move(*mean));
  });
  module.def(
      "_address_of", [](const AnyTarget& target) { return reinterpret_cast<std::uintptr_t>(target.address); },
      nb::arg("target"), "Where the target reads its data: the array's own memory if nothing was copied.");
  module.def("random_start", &random_start_of, nb::arg("target"), nb::arg("rank"), nb::arg("seed"));
  module.def("start_from", &start_from, nb::arg("target"), nb::arg("rank"));
  module.def("_default_explained_share", [] { return default_explained_share; });
  module.def("auto_rank", &auto_rank, nb::arg("target"), nb::arg("share"), nb::arg("seed"));
}

}  // namespace itspace::python
