// SPDX-License-Identifier: Apache-2.0
//
// Features that are spread over the GPUs of several processes: itspace::nccl, built where CUDA, MPI and NCCL are found.
//
//     mpi::Environment mpi;
//     auto ranks = mpi::Communicator::world();
//     cuda::Device device(ranks.rank() % cuda::device_count());           // a GPU for each rank
//     nccl::FeatureRows<float> target({ranks, device}, my_rows);          // from the host, or memory of the device
//     auto result = cuda::align<float>(target, 16, {.steps = 5});         // called by all ranks
//
// The space is that of one GPU, cuda::Space: every GPU holds Y and takes the same steps. A product is that of each
// rank's rows, and one sum of d x r values between the GPUs, by NCCL, which leaves the same bits on all of them. GPUs
// are to be of one kind; ranks whose Y differ are found out in the next product. Numbers of the host, a few for each
// product, go by MPI. No header here needs NCCL's, and the library is looked for when it is first used.
#pragma once

#include <itspace/cuda/targets.hpp>
#include <itspace/mpi/communicator.hpp>

#include <memory>
#include <optional>
#include <string>

namespace itspace::nccl {

// Why nothing can be summed between GPUs from this process: no NCCL, or no device. Empty where it can.
ITSPACE_API std::string why_not();

// The GPUs of the ranks, one for each. Copies are the same ones.
class ITSPACE_API Communicator {
 public:
  // Called by all ranks. @throws mpi::AgreedFailure on all of them, where one has no NCCL or cannot begin.
  Communicator(mpi::Communicator ranks, cuda::Device device);

  const mpi::Communicator& ranks() const;
  const cuda::Device& device() const;

  // The sum over the ranks, in place and in Scalar, after what was launched on the device's stream before. Rows must
  // lie one after the other. @throws std::invalid_argument where they do not.
  template <Storage Scalar>
  void sum(const cuda::View<Scalar>& block) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The covariance of the rows of all ranks: mpi::FeatureRows with the rows, Y and the sums on GPUs.
template <Storage Scalar>
class ITSPACE_API FeatureRows {
 public:
  // Called by all ranks; a rank may have no rows.
  FeatureRows(Communicator gpus, cuda::DeviceData<Scalar> own_rows);
  FeatureRows(Communicator gpus, const ConstBlockView<Scalar>& own_rows)
      : FeatureRows(gpus, cuda::to_device<Scalar>(gpus.device(), own_rows)) {}

  const cuda::Device& device() const { return gpus_.device(); }
  const mpi::Communicator& ranks() const { return gpus_.ranks(); }
  Index dim() const { return dim_; }
  Index samples() const { return samples_; }  // of all ranks
  double trace() const { return trace_; }
  void apply(const cuda::ConstView<Scalar>& y, const cuda::View<Scalar>& out) const;

 private:
  struct Joint;

  Communicator gpus_;
  Index dim_, samples_ = 0;
  double trace_ = 0;
  std::optional<cuda::FeaturesTarget<Scalar>> own_;  // of two rows or more
  std::shared_ptr<Joint> joint_;                     // what joins them to those of the others
};

}  // namespace itspace::nccl
