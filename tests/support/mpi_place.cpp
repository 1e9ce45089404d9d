// SPDX-License-Identifier: Apache-2.0
#include "fetching_place.hpp"
#include "mpi_ranks.hpp"

#include <itspace/mpi/align.hpp>

namespace itspace::test {
namespace {

template <Storage ScalarType>
struct OnRanks {
  using Scalar = ScalarType;
  using Space = mpi::Space<Scalar>;

  const mpi::Communicator& ranks() const { return all_ranks(); }
  Block<Scalar> fetch(const mpi::ConstView<Scalar>& from) const { return mpi::gather<Scalar>(ranks(), from); }
  void put(const Block<Scalar>& all, const mpi::View<Scalar>& to) const {
    to.local() = all.middleRows(to.first, to.local_rows);
  }
  Result<Scalar> align(const mpi::TargetArgument<Scalar>& target, const ConstBlockView<Scalar>& start,
                       const AlignOptions& options, const mpi::OnStep<Scalar>& on_step) const {
    return mpi::gathered<Scalar>(ranks(),
                                 mpi::align<Scalar>(target, mpi::spread<Scalar>(ranks(), start), options, on_step));
  }
  Result<Scalar> align(const mpi::TargetArgument<Scalar>& target, Index rank, const AlignOptions& options,
                       const mpi::OnStep<Scalar>& on_step) const {
    return mpi::gathered<Scalar>(ranks(), mpi::align<Scalar>(target, rank, options, on_step));
  }
  mpi::Evaluation<Scalar> evaluate(const mpi::TargetArgument<Scalar>& target, const ConstBlockView<Scalar>& factor,
                                   Route route) const {
    return mpi::evaluate<Scalar>(target, mpi::spread<Scalar>(ranks(), factor), route);
  }
};

}  // namespace

template <Storage Scalar>
std::unique_ptr<const OtherPlace<Scalar>> make_mpi_place() {
  return std::make_unique<FetchingPlace<OnRanks<Scalar>>>();
}

template std::unique_ptr<const OtherPlace<float>> make_mpi_place<float>();
template std::unique_ptr<const OtherPlace<double>> make_mpi_place<double>();

}  // namespace itspace::test
