// SPDX-License-Identifier: Apache-2.0
#include <itspace/mpi/space.hpp>

#include "core/stable_length.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace itspace::mpi {

// Every rank makes its part of all the matrices, and one sum is made of all their entries.
template <Storage Scalar>
void Space<Scalar>::grams(std::span<const GramRequest<ConstView>> requests) {
  using Request = GramRequest<ConstBlockView<Scalar>>;
  std::vector<Request> local;
  local.reserve(requests.size());
  for (const auto& request : requests)
    local.emplace_back(request.a.local(), request.b.local(), *request.out, request.symmetry);
  here_.grams(local);
  std::vector<double> entries;
  for (const auto& request : requests)
    entries.insert(entries.end(), request.out->data(), request.out->data() + request.out->size());
  ranks_.sum(entries);
  const double* next = entries.data();
  for (const auto& request : requests) {
    std::copy(next, next + request.out->size(), request.out->data());
    next += request.out->size();
  }
}

// Lengths are known to each rank even where squares overflow or vanish; those of the largest make a unit in which
// their squares can be added. It costs a second exchange, and only there.
template <Storage Scalar>
SmallVector Space<Scalar>::column_norms(const ConstView& a) {
  const SmallVector own = here_.column_norms(a.local());
  SmallVector squares = own.cwiseAbs2();
  ranks_.sum({squares.data(), static_cast<std::size_t>(squares.size())});
  constexpr double smallest = std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon();
  const bool in_range = (squares.array() >= smallest && squares.array() <= std::numeric_limits<double>::max()).all();
  if (in_range) return squares.cwiseSqrt();
  const auto size = static_cast<Index>(ranks_.size());
  Small of_all = Small::Zero(a.cols(), size);
  of_all.col(ranks_.rank()) = own;
  ranks_.sum({of_all.data(), static_cast<std::size_t>(of_all.size())});
  SmallVector norms(a.cols());
  for (Index j = 0; j < a.cols(); ++j) norms(j) = size == 1 ? of_all(j, 0) : stable_length(of_all.row(j).transpose());
  return norms;
}

template <Storage Scalar>
BlendNorms Space<Scalar>::blend_norms(const ConstView& y, const ConstView& b) {
  const BlendNorms own = here_.blend_norms(y.local(), b.local());
  double both[] = {own.b_squared, own.difference_squared};
  ranks_.sum(both);
  return {both[0], both[1]};
}

template <Storage Scalar>
void Space<Scalar>::multiply(const ConstView& a, const Small& m, const View& out, Write write) {
  here_.multiply(a.local(), m, out.local(), write);
}

template <Storage Scalar>
void Space<Scalar>::multiply_roughly(const ConstView& a, const Small& m, const View& out) {
  here_.multiply_roughly(a.local(), m, out.local());
}

template <Storage Scalar>
void Space<Scalar>::blend(const ConstView& y, const ConstView& b, double alpha, const View& out) {
  here_.blend(y.local(), b.local(), alpha, out.local());
}

template <Storage Scalar>
void Space<Scalar>::scale_columns(const View& block, const SmallVector& factors) {
  here_.scale_columns(block.local(), factors);
}

template <Storage Scalar>
void Space<Scalar>::subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors,
                                    const View& out) {
  here_.subtract_scaled(a.local(), b.local(), factors, out.local());
}

template <Storage Scalar>
void Space<Scalar>::copy(const ConstView& from, const View& to) {
  here_.copy(from.local(), to.local());
}

template <Storage Scalar>
void Space<Scalar>::set_zero(const View& block) {
  here_.set_zero(block.local());
}

template <Storage Scalar>
void Space<Scalar>::fill_normal(const Random& random, const View& out) {
  BlockView<Scalar> local = out.local();
  auto counter = static_cast<std::uint64_t>(out.first) * static_cast<std::uint64_t>(out.cols());
  for (Index i = 0; i < local.rows(); ++i)
    for (Index j = 0; j < local.cols(); ++j) local(i, j) = static_cast<Scalar>(random.normal(counter++));
}

// Row 0 is with the first rank that has rows; the others poison nothing.
template <Storage Scalar>
void Space<Scalar>::poison(const View& block) {
  if (block.first == 0) here_.poison(block.local());
}

template <Storage Scalar>
bool Space<Scalar>::is_poisoned(const ConstView& block) {
  const ConstBlockView<Scalar> local = block.local();
  const bool has_first = block.first == 0 && block.local_rows > 0;
  // Whether row 0 is finite, and whether another row is not.
  double found[] = {0, 0};
  if (has_first && !local.row(0).allFinite()) found[0] = 1;
  if (!local.bottomRows(local.rows() - (has_first ? 1 : 0)).allFinite()) found[1] = 1;
  ranks_.sum(found);
  return block.rows > 1 && found[0] > 0 && found[1] == 0;
}

template class Space<float>;
template class Space<double>;

}  // namespace itspace::mpi
