// SPDX-License-Identifier: Apache-2.0
//
// Stands in for device_cuda.cpp in a build without itspace::cuda.
#include "device.hpp"

#include <stdexcept>

namespace itspace::cli {

namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(
      "--device cuda: this itspace was built without CUDA\n"
      "leave out --device, or configure with -DITSPACE_CUDA=ON where nvcc is installed");
}

}  // namespace

void check_device(const DeviceChoice& device) {
  if (device.cuda) refuse();
}

template <Storage Scalar, Storage Data>
Result<Scalar> align_on_gpu(const DeviceChoice&, const ProblemTarget<Scalar, Data>&,
                            const std::optional<Block<Scalar>>&, Index, const AlignOptions&, const OnStep<Scalar>&) {
  refuse();
}

#define ITSPACE_INSTANTIATE(Scalar, Data)                                                                             \
  template Result<Scalar> align_on_gpu<Scalar, Data>(const DeviceChoice&, const ProblemTarget<Scalar, Data>&,         \
                                                     const std::optional<Block<Scalar>>&, Index, const AlignOptions&, \
                                                     const OnStep<Scalar>&);
ITSPACE_INSTANTIATE(float, float)
ITSPACE_INSTANTIATE(double, double)
ITSPACE_INSTANTIATE(double, float)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cli
