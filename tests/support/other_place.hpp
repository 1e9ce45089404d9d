// SPDX-License-Identifier: Apache-2.0
//
// A place other than the host's memory, where the suite makes its runs on the same targets.
#pragma once

#include <itspace/align.hpp>
#include <itspace/evaluate.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace itspace::test {

template <Storage Scalar>
class OtherPlace {
 public:
  virtual ~OtherPlace() = default;

  virtual Result<Scalar> align(TargetRef<Scalar> target, const ConstBlockView<Scalar>& start,
                               const AlignOptions& options, const OnStep<Scalar>& on_step) const = 0;
  virtual Result<Scalar> align(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                               const OnStep<Scalar>& on_step) const = 0;
  virtual Evaluation<Scalar> evaluate(TargetRef<Scalar> target, const ConstBlockView<Scalar>& factor,
                                      Route route) const = 0;
};

// A GPU, and the ranks of a job, each of which runs the same tests. Where there is no device, or the build has no
// itspace::cuda or itspace::mpi, the process says so and ends with the code for "skipped".
template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_cuda_place();
template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_mpi_place();

[[noreturn]] inline void skip_all(const std::string& why) {
  constexpr int skipped_exit_code = 77;
  std::printf("skipped: %s\n", why.c_str());
  std::fflush(stdout);
  std::_Exit(skipped_exit_code);
}

}  // namespace itspace::test
