// SPDX-License-Identifier: Apache-2.0
//
// A transport map whose small parts lie on a GPU, to move samples that are there.
//
//     const TransportMap map(from, to);                    // made on the host: O(d r^2)
//     const cuda::MapOnDevice<float> there(device, map);
//     there.apply(samples);                                // n x d, in place: two skinny products
#pragma once

#include <itspace/cuda/space.hpp>
#include <itspace/transport_map.hpp>

#include <memory>

namespace itspace::cuda {

template <Storage Scalar>
class ITSPACE_API MapOnDevice {
 public:
  MapOnDevice(Device device, const TransportMap& map);

  const Device& device() const { return device_; }
  Index dim() const { return dim_; }
  // The rows, one sample each, moved. Throws std::invalid_argument, and moves none, where one is not finite.
  void apply(const View<Scalar>& samples) const;

 private:
  Device device_;
  Index dim_;
  bool moves_nothing_ = false;
  std::shared_ptr<const Block<Scalar>> basis_, update_;                       // d x m, m x d
  std::shared_ptr<const Block<double>> mean_from_, minus_mean_to_, factors_;  // d each
};

}  // namespace itspace::cuda
