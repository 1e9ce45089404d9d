// SPDX-License-Identifier: Apache-2.0
#include <itspace/online.hpp>
#include <itspace/online_file.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "options.hpp"
#include "target.hpp"
#include "trace.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace itspace::python {
namespace {

// An aligner of the dtype of its stream.
class Online {
 public:
  using Any = std::variant<OnlineAligner<float>, OnlineAligner<double>>;

  Online(Any aligner) : aligner_(std::move(aligner)) {}  // NOLINT(google-explicit-constructor)
  static Online make(bool float32, Index rank, Index steps, std::optional<double> alpha, bool line_search,
                     double half_life, const std::string& unit, Index window, std::optional<Index> keep,
                     std::optional<double> run_length, Index reference_batches, std::uint64_t seed,
                     const std::optional<Vector>& shares, const std::vector<std::string>& classes) {
    require(unit == "batches" || unit == "samples", "half_life_unit is '", unit,
            "'; it must be 'batches' or 'samples'");
    OnlineAlignerOptions options;
    options.rank = rank;
    options.steps = steps;
    options.step_size = align_options(steps, alpha, {}, line_search, "paper", "auto", {}, seed).step_size;
    options.seed = options.stream.seed = seed;
    options.stream.half_life = half_life;
    options.stream.unit = unit == "samples" ? HalfLifeUnit::samples : HalfLifeUnit::batches;
    options.stream.window = window;
    options.stream.kept_rank = keep;
    if (shares) options.stream.balance = ClassBalance{.shares = copy_of(*shares), .classes = classes};
    if (run_length) {
      options.drift.emplace();
      options.drift->run_length = *run_length;
      options.drift->reference_batches = reference_batches;
      options.drift->rank = std::min(options.drift->rank, std::max<Index>(rank, 1));
      options.drift->seed = seed;
    }
    if (float32) return Any(OnlineAligner<float>(options));
    return Any(OnlineAligner<double>(options));
  }
  static Online load(const std::filesystem::path& path) {
    const nb::gil_scoped_release unlocked;
    if (io::online_precision(path) == "float32") return Any(io::load_online<float>(path));
    return Any(io::load_online<double>(path));
  }
  void save(const std::filesystem::path& path) const {
    const nb::gil_scoped_release unlocked;
    std::visit([&](const auto& aligner) { io::save_online(path, aligner); }, aligner_);
  }

  // Classes by their number among those of the source, or a row of probabilities for each sample.
  nb::object observe(const AnyArray& batch, const std::optional<Vector>& weights,
                     const std::optional<std::vector<Index>>& labels, const std::optional<AnyArray>& probabilities) {
    const Eigen::VectorXd copied = weights ? Eigen::VectorXd(copy_of(*weights)) : Eigen::VectorXd();
    require(!weights || copied.size() > 0 || batch.shape(0) == 0, "there are 0 weights for ", batch.shape(0),
            " samples; give one for each");
    Predicted predicted;
    if (labels) predicted.labels = *labels;
    if (probabilities) predicted.probabilities = view_as<double>(*probabilities);
    Observation seen = std::visit(
        [&]<class Scalar>(OnlineAligner<Scalar>& aligner) {
          require(batch.dtype() == nb::dtype<Scalar>(), "the batch is not of the dtype of the stream");
          const MatrixView<Scalar> rows = view_as<Scalar>(batch);
          const nb::gil_scoped_release unlocked;
          return aligner.observe(rows, copied, predicted);
        },
        aligner_);
    nb::dict out;
    out["batch"] = seen.batch;
    out["samples"] = seen.samples;
    out["skipped"] = seen.skipped;
    out["warning"] = seen.warning;
    out["effective_samples"] = seen.effective_samples;
    out["target_trace"] = seen.target_trace;
    out["trace"] = seen.trace ? nb::cast(std::move(*seen.trace)) : nb::none();
    out["class_shares"] = seen.class_shares.size() > 0 ? to_numpy(Eigen::VectorXd(seen.class_shares)) : nb::none();
    out["drift"] = nb::none();
    if (seen.drift)
      out["drift"] = nb::make_tuple(seen.drift->watching, seen.drift->alarm, seen.drift->mean_z,
                                    seen.drift->covariance_z, seen.drift->mean_level, seen.drift->covariance_level);
    return out;
  }

  void begin_at(const AnyArray& start) {
    std::visit([&]<class Scalar>(OnlineAligner<Scalar>& aligner) { aligner.begin_at(view_as<Scalar>(start)); },
               aligner_);
  }
  nb::object factor() const {
    return std::visit(
        []<class Scalar>(const OnlineAligner<Scalar>& aligner) {
          return to_numpy<Scalar>(Block<Scalar>(aligner.factor()));
        },
        aligner_);
  }
  // Remainder of the model with that floor (one pass).
  double remainder(double floor) const {
    const nb::gil_scoped_release unlocked;
    return std::visit([&](const auto& aligner) { return aligner.model(floor).remainder; }, aligner_);
  }
  nb::object mean() const {
    return std::visit([](const auto& aligner) { return to_numpy(Eigen::VectorXd(aligner.target().mean())); }, aligner_);
  }
  nb::object deviations() const {
    return std::visit([](const auto& aligner) { return to_numpy(Eigen::VectorXd(aligner.target().deviations())); },
                      aligner_);
  }
  // Sigma y, for y of the dtype of the stream.
  nb::object apply(const AnyArray& y) const {
    return std::visit(
        [&]<class Scalar>(const OnlineAligner<Scalar>& aligner) {
          require(y.dtype() == nb::dtype<Scalar>(), "the block is not of the dtype of the stream");
          require(static_cast<Index>(y.shape(0)) == aligner.target().dim(), "the block has ", y.shape(0),
                  " rows and the stream has dimension ", aligner.target().dim(), "; they must agree");
          Block<Scalar> out(static_cast<Index>(y.shape(0)), static_cast<Index>(y.shape(1)));
          const MatrixView<Scalar> columns = view_as<Scalar>(y);
          {
            const nb::gil_scoped_release unlocked;
            aligner.target().apply(columns, out);
          }
          return to_numpy<Scalar>(std::move(out));
        },
        aligner_);
  }
  nb::object numbers() const {
    return std::visit(
        [](const auto& aligner) -> nb::object {
          return nb::make_tuple(aligner.target().dim(), aligner.options().rank, aligner.target().version(),
                                aligner.target().effective_samples(), aligner.target().trace(), aligner.objective());
        },
        aligner_);
  }
  // The names of the classes that it is balanced over and their shares in the source; none where it is not.
  nb::object balance() const {
    return std::visit(
        [](const auto& aligner) -> nb::object {
          const std::optional<ClassBalance>& balance = aligner.options().stream.balance;
          if (!balance) return nb::none();
          return nb::make_tuple(balance->classes, to_numpy(Eigen::VectorXd(balance->shares)));
        },
        aligner_);
  }
  nb::object class_means() const {
    return std::visit([](const auto& aligner) { return to_numpy<double>(aligner.target().class_means()); }, aligner_);
  }
  bool float32() const { return std::holds_alternative<OnlineAligner<float>>(aligner_); }
  void relearn_drift() {
    std::visit([](auto& aligner) { aligner.relearn_drift(); }, aligner_);
  }

 private:
  Any aligner_;
};

}  // namespace

void add_online(nb::module_& module) {
  nb::class_<Online>(module, "Online")
      .def_static("make", &Online::make, nb::arg("float32"), nb::arg("rank"), nb::arg("steps"), nb::arg("alpha").none(),
                  nb::arg("line_search"), nb::arg("half_life"), nb::arg("unit"), nb::arg("window"),
                  nb::arg("keep").none(), nb::arg("run_length").none(), nb::arg("reference_batches"), nb::arg("seed"),
                  nb::arg("shares").none(), nb::arg("classes"))
      .def_static("load", &Online::load, nb::arg("path"))
      .def("save", &Online::save, nb::arg("path"))
      .def("observe", &Online::observe, nb::arg("batch"), nb::arg("weights").none(), nb::arg("labels").none(),
           nb::arg("probabilities").none())
      .def("begin_at", &Online::begin_at, nb::arg("start"))
      .def("balance", &Online::balance)
      .def("class_means", &Online::class_means)
      .def("factor", &Online::factor)
      .def("remainder", &Online::remainder, nb::arg("floor"))
      .def("mean", &Online::mean)
      .def("deviations", &Online::deviations)
      .def("apply", &Online::apply, nb::arg("y"))
      .def("numbers", &Online::numbers)
      .def("relearn_drift", &Online::relearn_drift)
      .def_prop_ro("float32", &Online::float32);
}

}  // namespace itspace::python
