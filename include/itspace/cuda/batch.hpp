// SPDX-License-Identifier: Apache-2.0
//
// align_batch on a GPU: many small problems, whose targets and starts lie on the device, in one call.
//
//     cuda::Device device(0);
//     const cuda::Block<float> sigma = cuda::to_device(device, host_targets);  // or a tensor that is there
//     auto result = cuda::align_batch<float>(device, {sigma.data(), 10000, 64, 64}, 8, {.steps = 2});
//     result.factor(17);               // on the device, d x r
//     result.status[17];               // on the host, as everything else of itspace::BatchResult
//
// Covariances that fit into the shared memory of a multiprocessor, d up to about 220 in float32 and 150 in float64,
// with up to 32 columns and a fixed alpha, are solved in one launch, one by each block of threads, and the host writes
// the records. All else goes through the host's align_batch, in copies: other sizes and options, features, and single
// problems that the launch could not certify (null directions, an ill-conditioned factor, values that are not finite).
// So a result means what it means on the host, problem by problem; `on_device` says which way each one went.
//
// Objectives and YY' agree with the host's to rounding. Same inputs, same bits.
#pragma once

#include <itspace/batch.hpp>
#include <itspace/cuda/space.hpp>

#include <cstdint>
#include <type_traits>
#include <vector>

namespace itspace::cuda {

// `count` matrices in the memory of a device, rows x cols each, row-major, one after the other. The memory is the
// caller's, and what writes it must come before on the device's stream.
template <Storage Scalar>
struct MatrixStack {
  const Scalar* data = nullptr;
  Index count = 0, rows = 0, cols = 0;

  ConstView<Scalar> operator[](Index i) const { return {data + i * rows * cols, rows, cols, cols}; }
};

// A copy on the device: (count rows) x cols.
template <Storage Scalar>
Block<Scalar> to_device(const Device& device, const itspace::MatrixStack<Scalar>& from) {
  const Index rows = from.count * from.rows;
  return to_device<Scalar>(device, ConstBlockView<Scalar>(from.data, rows, from.cols, from.cols));
}

template <Storage Scalar>
struct BatchResult : BatchOutcomes {
  Block<Scalar> factors;                // on the device, (count * dim) x rank: the best iterates, one after the other
  std::vector<std::uint8_t> on_device;  // whether all steps of a problem were made there

  ConstView<Scalar> factor(Index i) const { return {factors.data() + i * dim * rank, dim, rank, rank}; }
};

// As the host's. should_stop is asked before each launch, which solves thousands of problems, and by the host's
// align_batch for what goes there.
template <Storage Scalar>
ITSPACE_API BatchResult<Scalar> align_batch(const Device& device,
                                            const std::type_identity_t<MatrixStack<Scalar>>& targets,
                                            const std::type_identity_t<MatrixStack<Scalar>>& starts,
                                            const AlignOptions& options = {}, const BatchOptions& batch = {});
template <Storage Scalar>
ITSPACE_API BatchResult<Scalar> align_batch(const Device& device,
                                            const std::type_identity_t<MatrixStack<Scalar>>& targets, Index rank,
                                            const AlignOptions& options = {}, const BatchOptions& batch = {});

}  // namespace itspace::cuda
