// SPDX-License-Identifier: Apache-2.0
#include <itspace/checkpoint_file.hpp>

#include "state_file.hpp"

namespace itspace::io {
namespace {

constexpr StateKind kind{"checkpoint of a run", checkpoint_format, "itspace align --checkpoint"};
constexpr std::string_view remedy = "the file is damaged: begin the run again, or use an older copy";

}  // namespace

template <Storage Scalar>
void save_checkpoint(const std::filesystem::path& path, const Checkpoint<Scalar>& checkpoint, std::string_view run) {
  AtomicFile file(path);
  StateWriter out(file, path);
  out.text("format", checkpoint_format);
  out.text("precision", precision_name<Scalar>());
  out.text("run", run);
  out.bytes("trace", to_json(checkpoint.trace));
  out.matrix<Scalar>("current", checkpoint.current);
  out.matrix<Scalar>("best", checkpoint.best);
  out.finish();
  file.commit();
}

CheckpointHead load_checkpoint_head(const std::filesystem::path& path) {
  check_format(path, kind);
  CheckpointHead head{read_text(path, "precision"), read_text(path, "run")};
  if (head.precision != precision_name<float>() && head.precision != precision_name<double>()) {
    fail("{}: its precision is {}, float32 or float64 was expected; {}", in_quotes(path), in_quotes(head.precision),
         remedy);
  }
  return head;
}

template <Storage Scalar>
Checkpoint<Scalar> load_checkpoint(const std::filesystem::path& path) {
  const CheckpointHead head = load_checkpoint_head(path);
  if (head.precision != precision_name<Scalar>()) {
    fail("{}: is the checkpoint of a run in {}, and this one is in {}; resume it in its own precision", in_quotes(path),
         head.precision, precision_name<Scalar>());
  }
  const StateReader in(path, remedy);
  Checkpoint<Scalar> checkpoint{in.template matrix<Scalar>("current"), in.template matrix<Scalar>("best"), {}};
  in.require_shape("best", checkpoint.best.rows(), checkpoint.best.cols(), checkpoint.current.rows(),
                   checkpoint.current.cols());
  try {
    checkpoint.trace = trace_from_json(in.bytes("trace"));
  } catch (const std::runtime_error& error) {
    fail("array 'trace' of {}: {}; {}", in_quotes(path), error.what(), remedy);
  }
  if (checkpoint.trace.steps.empty()) {
    fail("array 'trace' of {}: has no steps; {}", in_quotes(path), remedy);
  }
  return checkpoint;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                 \
  template void save_checkpoint<Scalar>(const std::filesystem::path&, const Checkpoint<Scalar>&, std::string_view); \
  template Checkpoint<Scalar> load_checkpoint<Scalar>(const std::filesystem::path&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::io
