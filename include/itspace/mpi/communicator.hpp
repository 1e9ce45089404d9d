// SPDX-License-Identifier: Apache-2.0
//
// The processes (ranks) of an MPI job, and the few things they say to each other.
//
//     mpi::Environment mpi;                                   // MPI_Init ... MPI_Finalize
//     mpi::Communicator ranks = mpi::Communicator::world();
//     mpi::FeatureRows<float> target(ranks, my_rows);         // mpi/targets.hpp
//     auto result = align<float>(target, 16, {.steps = 5});   // on every rank, with the same bits
//
// Sums are made in the order of the ranks, in double, each entry by one rank, which then tells the others: all ranks
// hold the same bits, whatever algorithm or network MPI has. (MPI_Allreduce does not promise that, and solvers that
// decide by numbers which differ in the last digit part company, and wait for each other for ever.) Messages are
// counted. A rank that does not answer within the time limit is named in the error that ends the wait.
//
// Every function that talks is called by all ranks, in the same order, from one thread of each.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace itspace::mpi {

// MPI_Init, and MPI_Finalize at the end of its life; both only where nobody else did.
class ITSPACE_API Environment {
 public:
  Environment();
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  bool owner_ = false;
};

// A rank that did not answer in time, or a message that MPI could not deliver. Nothing more can be said to the others;
// end the job with abort_job().
struct Lost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An error that all ranks know of, and all throw (Communicator::agree).
struct Agreed {};
struct AgreedMisuse : std::invalid_argument, Agreed {
  using std::invalid_argument::invalid_argument;
};
struct AgreedFailure : std::runtime_error, Agreed {
  using std::runtime_error::runtime_error;
};

// Ends every process of the job; the launcher's exit code is this one.
[[noreturn]] ITSPACE_API void abort_job(int exit_code);

// What this rank has sent, and how long it took to send and to wait for the others.
struct Traffic {
  std::int64_t messages = 0, bytes = 0;
  double seconds = 0;
};

// Cheap to copy: copies are the same ranks, and count together.
class ITSPACE_API Communicator {
 public:
  static Communicator world();
  // Of MPI_Comm_c2f(comm), or mpi4py's comm.py2f(). The ranks of it are taken, not its messages: it is duplicated.
  static Communicator of(int fortran_handle);

  int rank() const;
  int size() const;
  Traffic traffic() const;

  // How long to wait for the slowest of the others, in seconds; 0 (the default): for ever.
  void set_time_limit(double seconds);

  // The share of a rank: rank p has the rows [first_row(p, rows), first_row(p + 1, rows)).
  Index first_row(int rank, Index rows) const { return rows * rank / size(); }
  Index first_row(Index rows) const { return first_row(rank(), rows); }
  Index own_rows(Index rows) const { return first_row(rank() + 1, rows) - first_row(rows); }

  // Few numbers: everyone sends all of them to everyone, and adds up.
  void sum(std::span<double> values) const;
  // The sum over the ranks of a block, in place. `stamp` goes along in each message, and must be the same
  // on all ranks. @throws Lost where it is not.
  template <Storage Scalar>
  void sum_rows(BlockView<Scalar> block, std::uint64_t stamp = 0) const;
  // Its two halves: each rank gets its share of the rows of the sum; and each rank's rows become known to all.
  template <Storage Scalar>
  void sum_to_owners(const std::type_identity_t<ConstBlockView<Scalar>>& part, BlockView<Scalar> own_rows,
                     std::uint64_t stamp = 0) const;
  template <Storage Scalar>
  void gather_rows(const std::type_identity_t<ConstBlockView<Scalar>>& own_rows, BlockView<Scalar> all,
                   std::uint64_t stamp = 0) const;

  // What rank 0 has.
  template <Storage Scalar>
  void broadcast(BlockView<Scalar> block) const;
  std::string broadcast(std::string text) const;

  // Whether one of the ranks says so.
  bool any(bool here) const;

  // Does the work of this rank; where it throws on one of them, all throw AgreedMisuse (std::invalid_argument) or
  // AgreedFailure with the text of the first that did, and the number of that rank where not all ranks say the same.
  void agree(const std::function<void()>& work) const;

 private:
  struct State;
  explicit Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// Tells bits apart: equal for equal values, and hardly ever for others.
template <Storage Scalar>
ITSPACE_API std::uint64_t fingerprint(const std::type_identity_t<ConstBlockView<Scalar>>& block);

}  // namespace itspace::mpi
