// SPDX-License-Identifier: Apache-2.0
//
// The covariance of rows that no memory holds, read by many processes: each rank goes through its share of them once
// for each product, as StreamedFeatures does, and one d x r block is summed.
//
//     io::RowFiles files({"part-*.npy"});
//     auto own = files.source<float>(ranks.first_row(files.rows()), ranks.own_rows(files.rows()));
//     mpi::StreamedRows<float> target(ranks, own);
//     auto result = align<float>(target, 16, {.steps = 5});      // six or seven sweeps, the same bits on every rank
#pragma once

#include <itspace/mpi/communicator.hpp>
#include <itspace/streamed.hpp>

#include <cstdint>
#include <memory>

namespace itspace::mpi {

// As mpi::FeatureRows, with a source of rows on each rank; one that knows it has none, or one, will do. What goes wrong
// in the source of one rank (a value that is not finite, a file that has changed) all ranks throw, as
// Communicator::agree does. Copies share the source. Everything but dim() is called by all ranks.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API StreamedRows {
 public:
  // `memory`: of this rank, as in StreamedFeatures.
  StreamedRows(Communicator ranks, std::shared_ptr<RowSource<Data>> own_rows,
               std::uint64_t memory = default_stream_memory);

  const Communicator& ranks() const;
  Index dim() const;
  // @throws Lost where a rank has another y than this one.
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

  // What the first sweep gathers; each makes a sweep of its own where there was none.
  double trace() const;
  Index samples() const;  // of all ranks

  Index sweeps() const;  // that this rank has made so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace itspace::mpi
