// SPDX-License-Identifier: Apache-2.0
#include "mpi/rank_means.hpp"

#include "core/require.hpp"

#include <algorithm>
#include <numeric>

namespace itspace::mpi {

void check_same(const Communicator& ranks, Index value, const char* what) {
  std::vector<double> values(static_cast<std::size_t>(ranks.size()), 0.0);
  values[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(value);
  ranks.sum(values);
  for (std::size_t p = 0; p < values.size(); ++p)
    if (values[p] != values[0])
      throw AgreedMisuse(text("rank ", p, " has ", what, " ", static_cast<Index>(values[p]), " and rank 0 has ",
                              static_cast<Index>(values[0]), "; all ranks must have the same"));
}

std::vector<double> rows_on_ranks(const Communicator& ranks, Index own) {
  std::vector<double> rows(static_cast<std::size_t>(ranks.size()), 0.0);
  rows[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(own);
  ranks.sum(rows);
  const auto total = static_cast<Index>(std::accumulate(rows.begin(), rows.end(), 0.0));
  if (total < 2)
    throw AgreedMisuse(
        text("there are ", total, " row(s) of features on all ranks together; a covariance needs at least 2 samples"));
  return rows;
}

itspace::Block<double> of_first_with_rows(const Communicator& ranks, const std::vector<double>& rows,
                                          const itspace::Block<double>& own) {
  const auto first = std::find_if(rows.begin(), rows.end(), [](double n) { return n > 0; }) - rows.begin();
  itspace::Block<double> origin = itspace::Block<double>::Zero(own.rows(), 1);
  if (ranks.rank() == first) origin = own;
  ranks.sum_rows<double>(origin);
  return origin;
}

RankMean mean_of_rank(const Communicator& ranks, const std::vector<double>& rows, itspace::Block<double> sum) {
  const double own = rows[static_cast<std::size_t>(ranks.rank())],
               total = std::accumulate(rows.begin(), rows.end(), 0.0);
  RankMean mean;
  if (own > 0) mean.difference = sum / own;
  ranks.sum_rows<double>(sum);
  if (own > 0) mean.difference -= sum / total;
  mean.own_share = std::max(0.0, own - 1) / (total - 1);
  mean.mean_share = own / (total - 1);
  return mean;
}

template <Storage Scalar>
void RankMean::join(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (difference.size() == 0) return;
  Eigen::RowVectorXd along = Eigen::RowVectorXd::Zero(y.cols());  // difference'y
  for (Index i = 0; i < y.rows(); ++i) along += difference(i) * y.row(i).template cast<double>();
  along *= mean_share;
  for (Index i = 0; i < y.rows(); ++i)
    out.row(i) = (own_share * out.row(i).template cast<double>() + difference(i) * along).template cast<Scalar>();
}
template void RankMean::join<float>(const ConstBlockView<float>&, BlockView<float>) const;
template void RankMean::join<double>(const ConstBlockView<double>&, BlockView<double>) const;

}  // namespace itspace::mpi
