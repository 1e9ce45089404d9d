// SPDX-License-Identifier: Apache-2.0
//
// What a map does to samples.
#include <itspace/covariance.hpp>
#include <itspace/transport_map.hpp>

#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/pool.hpp"

#include <algorithm>
#include <concepts>

namespace itspace {
namespace {

// Values of a chunk of samples that stays in cache between the two products.
constexpr Index chunk_values = Index(1) << 21;

// x <- factors (x - from) + to for the rows x, in parts over the threads.
template <Storage Scalar, class Factors, class Row>
void scale_rows(const Factors& factors, const Row& from, const Row& to, BlockView<Scalar> samples) {
  const Index threads = kernels::parts_for(2 * static_cast<double>(samples.size()));
  kernels::run_parts(threads, [&](Index part) {
    const kernels::Range range = kernels::part_of(samples.rows(), threads, part);
    for (Index i = range.begin; i < range.end; ++i) {
      auto row = samples.row(i).array();
      row = factors * (row - from) + to;
    }
  });
}

}  // namespace

// Rows, with u = F (x - mu), F = c D_to D_from^(-1): T(x)' = (u + mu_to)' + u'D_to^(-1) Q (core/c - I)'Q'D_to. One
// sweep makes u + mu_to in place, u'D_to^(-1)Q is taken from it, and the second product is added to what is there, so
// that BLAS need not sweep over the samples to scale them.
template <Storage Scalar>
void TransportMap::apply(BlockView<Scalar> samples) const {
  require(samples.cols() == dim(), "the samples have ", samples.cols(), " columns and the map has dimension ", dim(),
          "; rows are samples of the map's dimension");
  check_finite<Scalar>(samples, "samples");  // all of them before any is moved
  if (moves_nothing_ || samples.rows() == 0) return;
  const Block<Scalar>* basis;
  const Block<Scalar>* update;
  if constexpr (std::same_as<Scalar, float>) {
    basis = &basis32_;
    update = &update32_;
  } else {
    basis = is_scaled() ? &scaled_basis_ : &parts_.basis;
    update = &update_;
  }
  using Row = Eigen::Array<Scalar, 1, Eigen::Dynamic>;
  const Row from = parts_.mean_from.transpose().template cast<Scalar>();
  const Row to = parts_.mean_to.transpose().template cast<Scalar>();
  const Row factors = factors_.transpose().template cast<Scalar>();
  const Scalar scalar = static_cast<Scalar>(parts_.scalar);
  const auto scaled = [&](BlockView<Scalar> rows, const Row& target) {
    if (is_scaled())
      scale_rows<Scalar>(factors, from, target, rows);
    else
      scale_rows<Scalar>(scalar, from, target, rows);
  };
  const Index m = basis->cols();
  if (m == 0) return scaled(samples, to);
  if (m <= kernels::most_strip_columns && !is_scaled()) {
    kernels::map_rows<Scalar>(scalar, from.data(), to.data(), *basis, *update, samples);
    return;
  }
  // Chunks that stay in cache between the sweep and the products: the samples come from memory once.
  const Index step = std::clamp<Index>(chunk_values / dim(), 16, 4096);
  const Row zero = Row::Zero(dim());
  const auto to_inside = (to.matrix() * *basis).eval();
  Block<Scalar> inner(m <= kernels::most_strip_columns ? 0 : std::min(step, samples.rows()), m);
  for (Index first = 0; first < samples.rows(); first += step) {
    const Index count = std::min(step, samples.rows() - first);
    BlockView<Scalar> rows = samples.middleRows(first, count);
    if (m <= kernels::most_strip_columns) {
      scaled(rows, zero);
      kernels::map_rows<Scalar>(Scalar(1), zero.data(), to.data(), *basis, *update, rows);
      continue;
    }
    BlockView<Scalar> part = inner.topRows(count);
    scaled(rows, to);
    kernels::gemm<Scalar>(kernels::Op::plain, Scalar(1), rows, *basis, Scalar(0), part);
    part.rowwise() -= to_inside;
    kernels::gemm<Scalar>(kernels::Op::plain, Scalar(1), part, *update, Scalar(1), rows);
  }
}

template void TransportMap::apply<float>(BlockView<float>) const;
template void TransportMap::apply<double>(BlockView<double>) const;

}  // namespace itspace
