// SPDX-License-Identifier: Apache-2.0
//
// What joins the rows of one rank to those of all: with n_p rows, mean mu_p and covariance Sigma_p on rank p,
//     (n - 1) Sigma = sum_p (n_p - 1) Sigma_p + n_p (mu_p - mu)(mu_p - mu)'.
#pragma once

#include <itspace/mpi/communicator.hpp>

#include <vector>

namespace itspace::mpi {

// All of these are called by all ranks.

// One number that all ranks must have alike. @throws AgreedMisuse that names both.
void check_same(const Communicator& ranks, Index value, const char* what);

// How many rows each rank has. @throws AgreedMisuse where all together are less than two.
std::vector<double> rows_on_ranks(const Communicator& ranks, Index own);

// What the first rank that has rows has, d x 1: the common origin that means are taken about.
itspace::Block<double> of_first_with_rows(const Communicator& ranks, const std::vector<double>& rows,
                                          const itspace::Block<double>& own);

struct RankMean {
  double own_share = 0;   // (n_p - 1)/(n - 1)
  double mean_share = 0;  // n_p/(n - 1)
  Vector difference;      // mu_p - mu; empty without rows

  double trace() const { return mean_share * difference.squaredNorm(); }
  // out = own_share out + mean_share difference difference'y, where out was Sigma_p y.
  template <Storage Scalar>
  void join(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;
};
// `sum`: of the rows of this rank about the common origin, d x 1.
RankMean mean_of_rank(const Communicator& ranks, const std::vector<double>& rows, itspace::Block<double> sum);

}  // namespace itspace::mpi
