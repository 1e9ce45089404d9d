// SPDX-License-Identifier: Apache-2.0
//
// A build without itspace::mpi.
#include "other_place.hpp"

namespace itspace::test {

template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_mpi_place() {
  skip_all("this build has no itspace::mpi");
}

template std::unique_ptr<const OtherPlace<float>> make_mpi_place<float>();
template std::unique_ptr<const OtherPlace<double>> make_mpi_place<double>();

}  // namespace itspace::test
