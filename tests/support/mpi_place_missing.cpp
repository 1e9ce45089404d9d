// SPDX-License-Identifier: Apache-2.0
//
// A build without itspace::mpi.
#include "mpi_place.hpp"

#include "cuda_place.hpp"

#include <cstdio>
#include <cstdlib>

namespace itspace::test {
namespace {

[[noreturn]] void skip() {
  std::printf("skipped: this build has no itspace::mpi\n");
  std::fflush(stdout);
  std::_Exit(skipped_exit_code);
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar>, const std::type_identity_t<ConstBlockView<Scalar>>&, const AlignOptions&,
                            const std::type_identity_t<OnStep<Scalar>>&) {
  skip();
}
template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar>, Index, const AlignOptions&,
                            const std::type_identity_t<OnStep<Scalar>>&) {
  skip();
}
template <Storage Scalar>
Evaluation<Scalar> evaluate_on_mpi(TargetRef<Scalar>, const std::type_identity_t<ConstBlockView<Scalar>>&, Route) {
  skip();
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                    \
  template Result<Scalar> align_on_mpi<Scalar>(TargetRef<Scalar>, const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                               const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);      \
  template Result<Scalar> align_on_mpi<Scalar>(TargetRef<Scalar>, Index, const AlignOptions&,                          \
                                               const std::type_identity_t<OnStep<Scalar>>&);                           \
  template Evaluation<Scalar> evaluate_on_mpi<Scalar>(TargetRef<Scalar>,                                               \
                                                      const std::type_identity_t<ConstBlockView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::test
