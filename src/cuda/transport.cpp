// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/checks.hpp>
#include <itspace/cuda/transport.hpp>

#include "core/map_models.hpp"
#include "core/require.hpp"
#include "cuda/launch_product.hpp"

#include <algorithm>

namespace itspace::cuda {
namespace {

// Rows whose part inside the basis is held at a time.
constexpr Index rows_at_a_time = Index(1) << 16;

template <Storage Scalar>
std::shared_ptr<const Block<Scalar>> sent(const Device& device, const itspace::Block<double>& values) {
  const itspace::Block<Scalar> rounded = values.template cast<Scalar>();
  return std::make_shared<const Block<Scalar>>(to_device<Scalar>(device, rounded));
}

}  // namespace

template <Storage Scalar>
MapOnDevice<Scalar>::MapOnDevice(Device device, const TransportMap& map) : device_(std::move(device)), dim_(map.dim()) {
  const TransportMap::Parts& parts = map.parts();
  moves_nothing_ = itspace::moves_nothing(parts);
  basis_ = sent<Scalar>(device_, rows_basis(parts));
  update_ = sent<Scalar>(device_, rows_update(parts));
  mean_from_ = held(device_, parts.mean_from);
  minus_mean_to_ = held(device_, -parts.mean_to);
  factors_ = held(device_, rows_factors(parts));
}

// u = F (x - mu), and then u + mu_to + (u'D_to^(-1) Q) update: as the host's, sweep by sweep.
template <Storage Scalar>
void MapOnDevice<Scalar>::apply(const View<Scalar>& samples) const {
  require(samples.cols() == dim_, "the samples have ", samples.cols(), " columns and the map has dimension ", dim_,
          "; rows are samples of the map's dimension");
  check_finite<Scalar>(device_, samples, "samples");
  if (moves_nothing_) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  const Index m = basis_->cols();
  for (Index first = 0; first < samples.rows; first += rows_at_a_time) {
    const Index count = std::min(rows_at_a_time, samples.rows - first);
    const View<Scalar> rows(samples.data + first * samples.stride, count, dim_, samples.stride);
    kernels::subtract_row<Scalar>(state.stream(), mean_from_->data(), nullptr, 1, out(rows));
    kernels::scale_columns<Scalar>(state.stream(), factors_->data(), out(rows));
    if (m > 0) {
      const View<Scalar> inner = scratch_block<Scalar>(state, Scratch::inner, count, m);
      launch_product<Scalar>(state, Op::plain, rows, nullptr, *basis_, inner);
      kernels::subtract_row<Scalar>(state.stream(), minus_mean_to_->data(), nullptr, 1, out(rows));
      launch_product<Scalar>(state, Op::plain, inner, nullptr, *update_, rows, {}, true);
    } else {
      kernels::subtract_row<Scalar>(state.stream(), minus_mean_to_->data(), nullptr, 1, out(rows));
    }
  }
}

template class MapOnDevice<float>;
template class MapOnDevice<double>;

}  // namespace itspace::cuda
