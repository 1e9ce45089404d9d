// SPDX-License-Identifier: Apache-2.0
//
// Runs on a GPU: the values of the target are copied there, and the factor back.
#include "device.hpp"

#include <itspace/cuda/targets.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace itspace::cli {

namespace {

// Calls run(target) for the target on the device.
template <Storage Scalar, Storage Data, class Run>
auto with_target(const cuda::Device& device, const ProblemTarget<Scalar, Data>& given, Run run) {
  cuda::Block<Scalar> values = cuda::to_device_as<Scalar, Data>(device, given.input().values.view());
  const auto shifted_or_not = [&](auto target) {
    return given.ridge() > 0 ? run(cuda::ShiftedTarget<Scalar>(std::move(target), given.ridge())) : run(target);
  };
  switch (given.input().kind) {
    case Kind::features:
      return shifted_or_not(cuda::FeaturesTarget<Scalar>(device, std::move(values), given.weights()));
    case Kind::factor:
      return shifted_or_not(cuda::FactorTarget<Scalar>(device, std::move(values)));
    default:
      return shifted_or_not(cuda::DenseTarget<Scalar>(device, std::move(values)));
  }
}

}  // namespace

void check_device(const DeviceChoice& choice) {
  if (!choice.cuda) return;
  try {
    cuda::Device device(*choice.cuda);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        fmt::format("--device cuda:{}: {}\nleave out --device to compute on the CPU", *choice.cuda, error.what()));
  }
}

template <Storage Scalar, Storage Data>
Result<Scalar> align_on_gpu(const DeviceChoice& choice, const ProblemTarget<Scalar, Data>& given,
                            const std::optional<Block<Scalar>>& start, Index rank, const AlignOptions& options,
                            const OnStep<Scalar>& on_step) {
  const cuda::Device device(choice.cuda.value_or(0));
  const cuda::OnStep<Scalar> on_device_step = [&](const Step& step, const cuda::ConstView<Scalar>& iterate) {
    return on_step(step, cuda::to_host<Scalar>(device, iterate));
  };
  return with_target(device, given, [&](const auto& target) {
    return cuda::on_host<Scalar>(device, start ? cuda::align<Scalar>(target, *start, options, on_device_step)
                                               : cuda::align<Scalar>(target, rank, options, on_device_step));
  });
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
