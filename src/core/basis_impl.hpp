// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/basis.hpp"
#include "kernels/small_sweeps.hpp"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace itspace {
namespace basis_detail {

// Each rotation resolves about eight more digits of the spectrum of Y; double has sixteen.
inline constexpr int most_rotations = 6;

// Columns are scaled to length one before a rotation. What is shorter than this after it is rounding.
inline double shortest_column(Index cols) {
  return 32 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(cols));
}

// The columns worth keeping: longer than `shortest`.
inline std::vector<Index> long_columns(const Small& gram, double shortest) {
  std::vector<Index> kept;
  for (Index j = 0; j < gram.cols(); ++j)
    if (gram(j, j) > shortest * shortest) kept.push_back(j);
  return kept;
}

// Y'Y and ||Y||^2; false where they are not finite.
template <Space S>
bool gather_gram(S& space, const typename S::ConstView& y, Basis& basis) {
  const GramRequest<typename S::ConstView> request(y, basis.y_gram);
  space.grams({&request, 1});
  // F is known no finer than this sum, and many columns of one length would round it to one side.
  basis.y_squared = static_cast<double>(basis.y_gram.diagonal().template cast<long double>().sum());
  basis.finite = kernels::all_finite(basis.y_gram);
  return basis.finite;
}

}  // namespace basis_detail

template <Space S>
void make_basis(S& space, const typename S::ConstView& y, typename S::View q, Basis& basis) {
  const Index r = y.cols();
  basis.orthonormal = basis.direct = basis.exact = true;
  basis.cols = 0;
  if (!basis_detail::gather_gram(space, y, basis)) {
    basis.r.setIdentity(r, r);
    basis.inverse.setIdentity(r, r);
    return;
  }
  Small inner_gram;  // of a later stage

  // Each stage starts from the block of the one before, so that Y = Q R holds to rounding whatever the condition
  // number: a rotation makes graded columns, which storage keeps to their own relative accuracy.
  double shortest = 0;
  for (int stage = 0; stage <= basis_detail::most_rotations; ++stage) {
    const Small& of_columns = stage == 0 ? basis.y_gram : inner_gram;
    const std::vector<Index> kept = basis_detail::long_columns(of_columns, shortest);
    const bool keeps_all = std::ssize(kept) == of_columns.cols();
    BasisStage step = keeps_all ? make_basis_stage(of_columns) : make_basis_stage(of_columns(kept, kept));
    basis.finite = step.found;
    if (!step.found) return;
    Small with_dropped;
    if (!keeps_all) {  // zero rows for the columns that are dropped
      with_dropped.setZero(of_columns.cols(), step.inverse.cols());
      with_dropped(kept, Eigen::indexing::all) = step.inverse;
    }
    const Small& from_all = keeps_all ? step.inverse : with_dropped;
    basis.cols = step.inverse.cols();
    const auto made = space.columns(q, 0, basis.cols);
    if (stage == 0) {
      multiply(space, y, from_all, made);
    } else {
      multiply(space, space.columns(q, 0, of_columns.cols()), from_all, made);
    }
    if (stage == 0 && keeps_all) {
      basis.r = std::move(step.step);
      basis.inverse = std::move(step.inverse);
    } else if (stage == 0) {
      basis.r = step.step * Small::Identity(r, r)(kept, Eigen::indexing::all);
      basis.inverse = from_all;
    } else {
      basis.r = step.step * basis.r(kept, Eigen::indexing::all);
      basis.inverse = basis.inverse * from_all;
    }
    if (step.trusted && stage == 0 && step.accurate) return;
    if (step.trusted) break;
    basis.direct = false;
    shortest = basis_detail::shortest_column(r);
    inner_gram = gram(space, made);
  }
  // R <- R + Q'(Y - QR), in r x r data.
  Small inner;
  const typename S::ConstView made = space.columns(q, 0, basis.cols);
  const GramRequest<typename S::ConstView> requests[] = {{made, inner_gram}, {made, y, inner}};
  space.grams(requests);
  correct_coordinates(inner, inner_gram, basis);
}

template <Space S>
void make_scaled_basis(S& space, const typename S::ConstView& y, typename S::View q, Basis& basis) {
  const Index r = y.cols();
  basis.orthonormal = false;
  basis.direct = basis.exact = true;
  basis.cols = 0;
  if (!basis_detail::gather_gram(space, y, basis)) return;
  basis.cols = r;
  int exponent = 0;
  std::frexp(std::sqrt(basis.y_squared), &exponent);
  basis.r = std::ldexp(1.0, exponent) * Small::Identity(r, r);
  basis.inverse = std::ldexp(1.0, -exponent) * Small::Identity(r, r);
  const auto scaled = space.columns(q, 0, r);
  space.copy(y, scaled);
  space.scale_columns(scaled, basis.inverse.diagonal());
}

}  // namespace itspace
