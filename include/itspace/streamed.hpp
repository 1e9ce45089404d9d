// SPDX-License-Identifier: Apache-2.0
//
// The covariance of rows that are never held together: features larger than memory.
//
// A product is one sweep over a RowSource. Where rows can be read anywhere (files), each thread reads a piece of them
// and multiplies it at once; else they come in chunks, two of them in memory: a reader thread fills one while the other
// is computed with. Each is centred at its own mean, and chunks are put together by
//
//     sum_c [ P_c + n n_c/(n + n_c) (m_c - m)(m_c - m)' ] Y,    P_c = sum_{i in c} (z_i - m_c)(z_i - m_c)' Y,
//
// n and m being the number and the mean of the rows before chunk c: sums of positive semidefinite terms, in double, so
// that nothing cancels however large the mean is and in whatever order the rows come. The first sweep gathers mean and
// trace as well. Where they end depends on the dimension, the columns, the memory and the number of threads alone, so
// the same rows give the same bits.
//
//     io::RowFiles files({"part-*.npy"});
//     StreamedFeatures<float> target(files.source<float>());
//     auto result = align<float>(target, 16, {.steps = 5});      // six or seven sweeps
#pragma once

#include <itspace/export.hpp>
#include <itspace/row_source.hpp>
#include <itspace/target.hpp>

#include <cstdint>
#include <memory>

namespace itspace {

// Of the chunks of a stream, in bytes, where nobody says otherwise. More is not faster.
inline constexpr std::uint64_t default_stream_memory = std::uint64_t(64) << 20;

// As FeaturesTarget, without weights and without a factor. Copies share the source. Products from several threads are
// made one after the other.
template <Storage Scalar, Storage Data = Scalar>
class ITSPACE_API StreamedFeatures {
 public:
  // `memory`: bytes for the two chunks and their means. Beside them a product takes d x r values in double and in
  // Scalar. Throws std::invalid_argument where it does not hold two chunks of eight rows.
  explicit StreamedFeatures(std::shared_ptr<RowSource<Data>> rows, std::uint64_t memory = default_stream_memory);

  // The least `memory` for rows of that many values.
  static std::uint64_t least_memory(Index dim);

  Index dim() const;
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;

  // What the first sweep gathers; each makes a sweep of its own where there was none.
  double trace() const;
  Vector mean() const;
  Vector mean_less(const Vector& origin) const;  // mean() - origin, less the rounding of a large mean
  Index samples() const;

  Index chunk_rows() const;
  Index sweeps() const;  // made so far

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace itspace
