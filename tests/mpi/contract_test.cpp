// SPDX-License-Identifier: Apache-2.0
//
// Targets whose data are spread, under the contract of every target.
#include "contract_suite.hpp"

#include "held_rows.hpp"
#include "mpi_ranks.hpp"

#include <itspace/mpi/streamed.hpp>
#include <itspace/mpi/targets.hpp>

#include <memory>

namespace itspace::test {
namespace {

enum class Where { memory, stream };

// T is the type of the blocks, D that of the data. Skewed: rank 0 has no rows where there are others, and 1 has one.
template <class T, class D, int mean_size, bool skewed, Where where = Where::memory>
struct Features {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(3);
    const Index samples = 3 * dim + 5;
    const Block<D> z = block<D>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean_size, draw));
    const mpi::Communicator& ranks = all_ranks();
    Index first = ranks.first_row(samples), count = ranks.own_rows(samples);
    if (skewed && ranks.size() > 1) {
      const int rank = ranks.rank();
      const Index ends[] = {0, ranks.size() > 2 ? 1 : samples, ranks.size() > 3 ? 4 : samples, samples};
      first = rank == 0 ? 0 : ends[rank - 1];
      count = ends[rank] - first;
    }
    const RealMatrix sigma = square(centred_factor_of(wide(z)));
    Block<D> own = z.middleRows(first, count);
    if constexpr (where == Where::memory) return made<Scalar>(mpi::FeatureRows<Scalar, D>(ranks, own), sigma);
    const auto least = StreamedFeatures<Scalar, D>::least_memory(dim);  // chunks of eight rows
    return made<Scalar>(mpi::StreamedRows<Scalar, D>(ranks, std::make_shared<HeldRows<D>>(own), least), sigma);
  }
};

template <class T, class D>
struct Dense {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    const Block<D> sigma = make_problem<D>({.dim = dim, .rank = 1, .seed = 1}).sigma;
    const mpi::Communicator& ranks = all_ranks();
    Block<D> rows = sigma.middleRows(ranks.first_row(dim), ranks.own_rows(dim));
    return made<Scalar>(mpi::DenseRows<Scalar, D>(ranks, std::move(rows)), real(sigma));
  }
};

using Makers = ::testing::Types<Features<float, float, 1000, false>, Features<double, double, 1000, true>,
                                Features<double, float, 3, false>, Dense<float, float>, Dense<double, float>,
                                Features<float, float, 1000, false, Where::stream>,
                                Features<double, double, 1000, true, Where::stream>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Spread, Contract, Makers);

}  // namespace
}  // namespace itspace::test
