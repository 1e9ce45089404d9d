// SPDX-License-Identifier: Apache-2.0
#include "fetching_place.hpp"

#include <itspace/cuda/align.hpp>

namespace itspace::test {
namespace {

const cuda::Device& first_device() {
  if (const std::string why = cuda::why_no_device(); !why.empty()) skip_all(why);
  static const cuda::Device first(0);
  return first;
}

template <Storage ScalarType>
struct OnDevice {
  using Scalar = ScalarType;
  using Space = cuda::Space<Scalar>;

  const cuda::Device& device() const { return first_device(); }
  Block<Scalar> fetch(const cuda::ConstView<Scalar>& from) const { return cuda::to_host<Scalar>(device(), from); }
  void put(const Block<Scalar>& all, const cuda::View<Scalar>& to) const {
    cuda::copy_to_device<Scalar>(device(), all, to);
  }
  template <class Start>
  Result<Scalar> align(const cuda::TargetArgument<Scalar>& target, const Start& start, const AlignOptions& options,
                       const cuda::OnStep<Scalar>& on_step) const {
    return cuda::on_host<Scalar>(device(), cuda::align<Scalar>(target, start, options, on_step));
  }
  cuda::Evaluation<Scalar> evaluate(const cuda::TargetArgument<Scalar>& target, const ConstBlockView<Scalar>& factor,
                                    Route route) const {
    return cuda::evaluate<Scalar>(target, cuda::to_device<Scalar>(device(), factor), route);
  }
};

}  // namespace

template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_cuda_place() {
  return std::make_unique<FetchingPlace<OnDevice<Scalar>>>();
}

template std::unique_ptr<const OtherPlace<float>> make_cuda_place<float>();
template std::unique_ptr<const OtherPlace<double>> make_cuda_place<double>();

}  // namespace itspace::test
