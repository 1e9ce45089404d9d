// SPDX-License-Identifier: Apache-2.0
//
// Exact distances between covariances on a GPU: W2^2 of distance.hpp, to the same accuracy.
//
//     double w2 = cuda::dense_distance<double>(device, a, b).squared;   // a, b: views of device memory
//
// On a GPU products are fast and eigenvalues are not. W2^2 = tr A + tr B - 2 ||L_A' L_B||_* with Cholesky factors, and
// the sum of singular values comes from products alone, with a bound on what it misses. Where the bound is not good
// enough, one of the two is not definite, or their dimension is above 46340 (more than cuBLAS counts), they are brought
// to the host and the distance is computed there.
//
// Needs cuBLAS and cuSOLVER at run time (they come with the CUDA toolkit and with PyTorch).
#pragma once

#include <itspace/cuda/space.hpp>
#include <itspace/distance.hpp>

namespace itspace::cuda {

struct DeviceDistance {
  double squared = 0;    // W2^2 of the centred Gaussians
  double error = 0;      // the bound on it; 0 where it was computed on the host, which keeps to the accuracy asked for
  bool on_host = false;  // the device was not sure enough
  int products = 0;      // d x d, on the device
};

// @pre square, finite and symmetric as on the host, else std::invalid_argument.
template <Storage Scalar>
ITSPACE_API DeviceDistance dense_distance(const Device& device, const std::type_identity_t<ConstView<Scalar>>& a,
                                          const std::type_identity_t<ConstView<Scalar>>& b,
                                          const Accuracy& accuracy = default_accuracy);

// The Gaussians fitted to two feature sets; both need more samples than features for it to be done on the device.
template <Storage Scalar>
ITSPACE_API Distance features_distance(const Device& device, const std::type_identity_t<ConstView<Scalar>>& a,
                                       const std::type_identity_t<ConstView<Scalar>>& b,
                                       const Accuracy& accuracy = default_accuracy);

}  // namespace itspace::cuda
