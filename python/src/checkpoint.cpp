// SPDX-License-Identifier: Apache-2.0
//
// Runs that can be killed, with the files of the program.
#include <itspace/checkpoint.hpp>
#include <itspace/checkpoint_file.hpp>
#include <itspace/io.hpp>

#include "core/require.hpp"
#include "module.hpp"
#include "options.hpp"
#include "run_outcome.hpp"
#include "target.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace itspace::python {
namespace {

struct File {
  std::filesystem::path path;
  std::string run;
  Index every;
  bool found = false;  // there is a checkpoint to go on from
};

// In the words of the program where it has such targets, so that one goes on with checkpoints of the other.
std::string description_of(const AnyTarget& target) {
  if (target.kind == "features") return text("features, ", target.samples, " samples of dimension ", target.dim());
  return text(target.kind, " of dimension ", target.dim());
}

template <Storage Scalar>
Result<Scalar> run_from(TargetRef<Scalar> target, const std::optional<MatrixView<Scalar>>& start, Index rank,
                        const AlignOptions& options, const File& file, const OnStep<Scalar>& on_step) {
  const Checkpoints<Scalar> checkpoints{file.every, [&](const Checkpoint<Scalar>& checkpoint) {
                                          io::save_checkpoint<Scalar>(file.path, checkpoint, file.run);
                                        }};
  if (file.found) return resume<Scalar>(target, io::load_checkpoint<Scalar>(file.path), options, checkpoints, on_step);
  return start ? align_with_checkpoints<Scalar>(target, *start, options, checkpoints, on_step)
               : align_with_checkpoints<Scalar>(target, rank, options, checkpoints, on_step);
}

nb::object align_any(const AnyTarget& target, const std::optional<AnyArray>& start, Index rank, Index steps,
                     std::optional<double> alpha, std::optional<double> lambda, bool line_search,
                     const std::string& solver, const std::string& route, std::optional<Index> guard,
                     std::uint64_t seed, const nb::object& callback, bool keep_iterates, const std::string& path,
                     Index every, bool resumes, const std::string& precision) {
  AlignOptions options = align_options(steps, alpha, lambda, line_search, solver, route, guard, seed);
  options.keep_iterates = keep_iterates;
  File file{path,
            io::run_text({.target = description_of(target),
                          .weighted = target.weights.size() > 0,
                          .rank = rank,
                          .options = options,
                          .precision = precision,
                          .every = every}),
            every};
  io::check_writable(file.path);  // now, and not after the first steps
  if (resumes && std::filesystem::exists(file.path)) {
    file.found = true;
    const io::CheckpointHead head = io::load_checkpoint_head(file.path);
    require(head.run == file.run, "'", path,
            "' is the checkpoint of another run: ", io::difference_of_runs(head.run, file.run),
            "; resume with the target and the options of that run, or leave out resume to begin again");
  }
  return std::visit(
      [&]<class Scalar>(TargetRef<Scalar> ref) {
        return outcome_of_run<Scalar>(start, rank, target.mixed, callback, [&](const auto& first, const auto& on_step) {
          return run_from<Scalar>(ref, first, rank, options, file, on_step);
        });
      },
      target.ref);
}

}  // namespace

void add_checkpoint(nb::module_& module) {
  module.def("align_with_checkpoints", &align_any, nb::arg("target"), nb::arg("start").none(), nb::arg("rank"),
             nb::arg("steps"), nb::arg("alpha").none(), nb::arg("lam").none(), nb::arg("line_search"),
             nb::arg("solver"), nb::arg("route"), nb::arg("guard").none(), nb::arg("seed"), nb::arg("callback").none(),
             nb::arg("keep_iterates"), nb::arg("path"), nb::arg("every"), nb::arg("resume"), nb::arg("precision"));
  module.def("_default_checkpoint_every", [] { return Checkpoints<double>().every; });
}

}  // namespace itspace::python
