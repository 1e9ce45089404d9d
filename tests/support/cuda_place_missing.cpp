// SPDX-License-Identifier: Apache-2.0
//
// A build without itspace::cuda.
#include "other_place.hpp"

namespace itspace::test {

template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_cuda_place() {
  skip_all("this build has no itspace::cuda");
}

template std::unique_ptr<const OtherPlace<float>> make_cuda_place<float>();
template std::unique_ptr<const OtherPlace<double>> make_cuda_place<double>();

}  // namespace itspace::test
