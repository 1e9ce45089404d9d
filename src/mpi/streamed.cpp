// SPDX-License-Identifier: Apache-2.0
#include <itspace/mpi/streamed.hpp>

#include "core/require.hpp"
#include "mpi/rank_means.hpp"

#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace itspace::mpi {

template <Storage Scalar, Storage Data>
struct StreamedRows<Scalar, Data>::State {
  State(Communicator given, std::shared_ptr<RowSource<Data>> rows) : ranks(std::move(given)), source(std::move(rows)) {}

  Communicator ranks;
  std::shared_ptr<RowSource<Data>> source;
  Index dim = 0;
  std::optional<StreamedFeatures<Scalar, Data>> own;  // of two rows or more
  // Known once all have made a sweep.
  std::optional<RankMean> mean;
  Index samples = 0;
  double trace = 0;

  void gather();
  itspace::Block<double> only_row() const;
};

template <Storage Scalar, Storage Data>
StreamedRows<Scalar, Data>::StreamedRows(Communicator ranks, std::shared_ptr<RowSource<Data>> own_rows,
                                         std::uint64_t memory)
    : state_(std::make_shared<State>(std::move(ranks), std::move(own_rows))) {
  State& state = *state_;
  state.ranks.agree([&] {
    require(state.source != nullptr,
            "there is no source of rows; give one on every rank, of no rows where it has none");
    state.dim = state.source->cols();
    if (state.source->rows().value_or(2) >= 2) state.own.emplace(state.source, memory);
  });
  check_same(state.ranks, state.dim, "features of dimension");
}

template <Storage Scalar, Storage Data>
const Communicator& StreamedRows<Scalar, Data>::ranks() const {
  return state_->ranks;
}

template <Storage Scalar, Storage Data>
Index StreamedRows<Scalar, Data>::dim() const {
  return state_->dim;
}

template <Storage Scalar, Storage Data>
double StreamedRows<Scalar, Data>::trace() const {
  state_->gather();
  return state_->trace;
}

template <Storage Scalar, Storage Data>
Index StreamedRows<Scalar, Data>::samples() const {
  state_->gather();
  return state_->samples;
}

template <Storage Scalar, Storage Data>
Index StreamedRows<Scalar, Data>::sweeps() const {
  return state_->own ? state_->own->sweeps() : 0;
}

template <Storage Scalar, Storage Data>
void StreamedRows<Scalar, Data>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  State& state = *state_;
  state.ranks.agree([&] {
    if (state.own) {
      state.own->apply(y, out);
    } else {
      out.setZero();
    }
  });
  state.gather();
  state.mean->template join<Scalar>(y, out);
  state.ranks.template sum_rows<Scalar>(out, fingerprint<Scalar>(y));
}

// A stream of one row has no covariance, and yet a mean.
template <Storage Scalar, Storage Data>
itspace::Block<double> StreamedRows<Scalar, Data>::State::only_row() const {
  itspace::Block<Data> row(1, dim);
  source->restart();
  if (source->read(row) != 1) throw std::runtime_error("the stream of this rank has no row, where it said it had one");
  for (Index j = 0; j < dim; ++j)
    require(std::isfinite(row(0, j)), source->place_of(0), ", column ", j, " is ", static_cast<double>(row(0, j)),
            "; all values must be finite. Remove or replace such rows first");
  return row.template cast<double>().transpose();
}

template <Storage Scalar, Storage Data>
void StreamedRows<Scalar, Data>::State::gather() {
  if (mean) return;
  itspace::Block<double> own_mean = itspace::Block<double>::Zero(dim, 1);
  Index count = 0;
  ranks.agree([&] {
    count = own ? own->samples() : *source->rows();
    if (count > 0) own_mean = own ? itspace::Block<double>(own->mean()) : only_row();
  });
  const std::vector<double> rows = rows_on_ranks(ranks, count);
  samples = static_cast<Index>(std::accumulate(rows.begin(), rows.end(), 0.0));
  const Vector origin = of_first_with_rows(ranks, rows, own_mean);
  itspace::Block<double> sum = own_mean;
  if (count > 0) sum = static_cast<double>(count) * (own ? own->mean_less(origin) : Vector(own_mean - origin));
  mean = mean_of_rank(ranks, rows, std::move(sum));
  trace = mean->trace() + (own ? mean->own_share * own->trace() : 0);
  ranks.sum({&trace, 1});
}

template class StreamedRows<float>;
template class StreamedRows<double>;
template class StreamedRows<double, float>;

}  // namespace itspace::mpi
