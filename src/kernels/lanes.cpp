// SPDX-License-Identifier: Apache-2.0
#include "kernels/lanes.hpp"

#include "kernels/instruction_sets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lane_matrices-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

template <class P>
void basis(Index n, const double* gram_data, double* r_data, double* inverse_data, double* inverse_length) {
  const In<P> gram{gram_data, n};
  const Out<P> r{r_data, n}, inverse{inverse_data, n};
  Room<P> room(n, 2);
  const Out<P> scaled = room.matrix(), upper = room.matrix();
  const Index chunks = gram.chunks();
  Row<P> lengths(n), scale(n);
  for (Index j = 0; j < n; ++j) {
    lengths.set(j, hn::Sqrt(gram.get(j, j)));
    scale.set(j, hn::Div(number(1), lengths.get(j)));
  }
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < chunks; ++c)
      scaled.set_chunk(i, c, hn::Mul(hn::Mul(scale.get(i), gram.chunk(i, c)), scale.chunk(c)));
  cholesky<P>(scaled, upper);
  invert_upper<P>(upper, inverse);
  P::put_numbers(hn::Sqrt(hn::Div(squared_norm<P>(inverse), number(static_cast<double>(n)))), inverse_length);
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < chunks; ++c) {
      r.set_chunk(i, c, hn::Mul(upper.chunk(i, c), lengths.chunk(c)));
      inverse.set_chunk(i, c, hn::Mul(scale.get(i), inverse.chunk(i, c)));
    }
}

// By problems.
using Numbers = std::array<double, most_lanes>;

// x <- its polar factor, as polar_by_products in core/polar.cpp makes it. NaN where the schedule does not reach.
template <class P>
HWY_INLINE void make_polar(std::span<const LanePolynomial> polynomials, const Numbers& smallest, Room<P>& room,
                           Out<P> x) {
  const Index n = x.n, chunks = x.chunks();
  const Out<P> squared = room.matrix(), fourth = room.matrix(), next = room.matrix();
  constexpr auto problems = static_cast<std::size_t>(P::problems);
  std::array<std::size_t, most_lanes> begin{};
  Numbers scale{};
  std::size_t round = 0;
  for (bool first = true; first || round < polynomials.size(); ++round, first = false) {
    // XX' and its square.
    transpose<P>(x, next);
    times<P>(x, next, squared);
    times<P>(squared, squared, fourth);
    if (first) {
      alignas(64) Numbers bound;
      P::put_numbers(hn::Sqrt(norm<P>(fourth)), bound.data());  // ||X||_2 <= ||(XX')^2||_F^(1/4)
      round = polynomials.size() - 1;
      for (std::size_t p = 0; p < problems; ++p) {
        scale[p] = 1 / std::sqrt(bound[p]);
        const double lowest = smallest[p] * scale[p];
        begin[p] = 0;
        while (begin[p] + 1 < polynomials.size() && polynomials[begin[p] + 1].lowest <= lowest) ++begin[p];
        if (!(polynomials[0].lowest <= lowest)) scale[p] = std::numeric_limits<double>::quiet_NaN();
        round = std::min(round, begin[p]);
      }
    }
    alignas(64) Numbers a{}, b{}, c{}, active{};
    for (std::size_t p = 0; p < problems; ++p) {
      const LanePolynomial& polynomial = polynomials[round];
      const double s = round == begin[p] ? scale[p] : 1;  // of X/bound in the first round
      active[p] = round >= begin[p] ? 1 : 0;              // a schedule that begins later leaves X as it is
      a[p] = polynomial.a * s;
      b[p] = polynomial.b * (s * s * s);
      c[p] = polynomial.c * (s * s * s * s * s);
    }
    const Vector of_one = P::numbers(a.data()), of_squared = P::numbers(b.data()), of_fourth = P::numbers(c.data());
    for (Index i = 0; i < n; ++i) {
      for (Index k = 0; k < chunks; ++k)
        fourth.set_chunk(i, k, hn::MulAdd(of_fourth, fourth.chunk(i, k), hn::Mul(of_squared, squared.chunk(i, k))));
      fourth.set(i, i, hn::Add(fourth.get(i, i), of_one));
    }
    times<P>(fourth, x, next);
    const auto moves = hn::Gt(P::numbers(active.data()), hn::Zero(Tag()));
    for (Index i = 0; i < n; ++i)
      for (Index k = 0; k < chunks; ++k) x.set_chunk(i, k, hn::IfThenElse(moves, next.chunk(i, k), x.chunk(i, k)));
  }
}

template <class P>
void certificate(Index n, const LaneCertificateIn& given, std::span<const LanePolynomial> polynomials,
                 const LaneCertificateOut& out) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const In<P> theta_given{given.theta, n}, w_gram{given.w_gram, n}, r{given.r, n}, inverse{given.inverse, n};
  Room<P> room(n, 10);
  const Out<P> theta = room.matrix(), c = room.matrix(), c_inverse = room.matrix(), k = room.matrix();
  const Out<P> polar = room.matrix(), work = room.matrix(), columns = room.matrix();
  const Index chunks = theta.chunks();
  transpose<P>(theta_given, work);
  Vector asymmetry = hn::Zero(Tag()), size = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i)
    for (Index h = 0; h < chunks; ++h) {
      const Vector one = theta_given.chunk(i, h), other = work.chunk(i, h);
      asymmetry = hn::Max(asymmetry, hn::Abs(hn::Sub(one, other)));
      size = hn::Max(size, hn::Abs(one));
      theta.set_chunk(i, h, hn::Mul(number(0.5), hn::Add(one, other)));
    }
  P::put_numbers(P::problems == 1 ? hn::MaxOfLanes(Tag(), asymmetry) : asymmetry, out.theta_asymmetry);
  P::put_numbers(P::problems == 1 ? hn::MaxOfLanes(Tag(), size) : size, out.theta_size);
  cholesky<P>(theta, c);
  invert_upper<P>(c, c_inverse);
  times<P>(c, r, k, Left::upper);
  times<P>(inverse, c_inverse, work, Left::upper);
  const Vector inverse_norm = norm<P>(work);  // of K^(-1)
  P::put_numbers(inverse_norm, out.inverse_norm);
  P::put_numbers(norm<P>(k), out.largest);
  polar.copy(k);
  alignas(64) Numbers smallest;
  // 1/||K^(-1)||_F <= s_n; the basis is inverted to a few digits only.
  P::put_numbers(hn::Div(number(0.9), inverse_norm), smallest.data());
  make_polar<P>(polynomials, smallest, room, polar);

  // H = P'K is symmetric, with the singular values of K.
  transposed_times<P>(polar, k, work);
  transpose<P>(work, c);  // not needed any more
  Vector trace = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i) trace = hn::Add(trace, work.get(i, i));
  P::put_numbers(trace, out.nuclear_norm);
  P::put_numbers(hn::Mul(number(0.5), hn::Sqrt(sum_of_entries<P>(n,
                                                                 [&](Index i, Index h) HWY_ATTR {
                                                                   const Vector skew =
                                                                       hn::Sub(work.chunk(i, h), c.chunk(i, h));
                                                                   return hn::Mul(skew, skew);
                                                                 }))),
                 out.asymmetry);

  times<P>(c_inverse, polar, columns, Left::upper);
  const Out<P> theta_columns = k, a = c;
  times<P>(theta, columns, theta_columns);
  transposed_times<P>(columns, theta_columns, work);
  transpose<P>(work, a);
  for (Index i = 0; i < n; ++i)
    for (Index h = 0; h < chunks; ++h)
      a.set_chunk(i, h, hn::Mul(number(0.5), hn::Add(work.chunk(i, h), a.chunk(i, h))));

  // Off the diagonal from here on: the diagonal goes into a row of its own, less one in `a`.
  Row<P> diagonal(n);
  for (Index j = 0; j < n; ++j) {
    diagonal.set(j, a.get(j, j));
    a.set(j, j, hn::Sub(a.get(j, j), number(1)));
  }
  P::put_numbers(norm<P>(a), out.orthogonality);
  for (Index j = 0; j < n; ++j) a.set(j, j, hn::Zero(Tag()));

  const Vector noise = P::numbers(given.noise);
  Row<P> doubt(n), roots(n), inverse_roots(n), squares(n), dots(n), reaches(n);
  for (Index h = 0; h < chunks; ++h) {
    Vector square = hn::Zero(Tag()), dot = hn::Zero(Tag()), reach = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) {
      square = hn::MulAdd(columns.chunk(i, h), columns.chunk(i, h), square);
      dot = hn::MulAdd(columns.chunk(i, h), r.chunk(i, h), dot);
      reach = hn::MulAdd(theta_columns.chunk(i, h), r.chunk(i, h), reach);
    }
    squares.set_chunk(h, square);
    dots.set_chunk(h, dot);
    reaches.set_chunk(h, reach);
    doubt.set_chunk(h, hn::Max(hn::Mul(noise, square), number(eps)));
    roots.set_chunk(h, hn::Sqrt(doubt.chunk(h)));
    inverse_roots.set_chunk(h, hn::Div(number(1), roots.chunk(h)));
  }

  // As in measure_certificate: Gershgorin's bound, scaled so that doubtful directions are shortened and not the others.
  const Out<P> m{out.m, n};
  Row<P> lengths(n);
  for (Index h = 0; h < chunks; ++h) {
    Vector others = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) others = hn::MulAdd(hn::Abs(a.chunk(i, h)), inverse_roots.get(i), others);
    const Vector bound = hn::MulAdd(roots.chunk(h), others, diagonal.chunk(h));
    lengths.set_chunk(h, hn::Div(number(1), hn::Sqrt(hn::Max(number(1), bound))));
    for (Index i = 0; i < n; ++i) m.set_chunk(i, h, hn::Mul(columns.chunk(i, h), lengths.chunk(h)));
  }

  // As in promise_doubt.
  times<P>(w_gram, m, work);
  Row<P> doubts(n);
  for (Index h = 0; h < chunks; ++h) {
    Vector image = hn::Zero(Tag()), length = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) {
      image = hn::MulAdd(m.chunk(i, h), work.chunk(i, h), image);
      length = hn::MulAdd(r.chunk(i, h), r.chunk(i, h), length);
    }
    image = hn::Sqrt(hn::Max(hn::Zero(Tag()), image));
    const Vector longer = hn::Max(image, hn::Sqrt(length));
    doubts.set_chunk(h, hn::Mul(hn::Mul(number(2), doubt.chunk(h)), hn::Mul(image, longer)));
  }
  Vector columns_squared = hn::Zero(Tag()), columns_dot_r = hn::Zero(Tag()), reached = hn::Zero(Tag());
  Vector promise = hn::Zero(Tag());
  for (Index j = 0; j < n; ++j) {
    columns_squared = hn::Add(columns_squared, squares.get(j));
    columns_dot_r = hn::Add(columns_dot_r, dots.get(j));
    reached = hn::MulAdd(lengths.get(j), reaches.get(j), reached);
    promise = hn::Add(promise, doubts.get(j));
  }
  P::put_numbers(columns_squared, out.columns_squared);
  P::put_numbers(columns_dot_r, out.columns_dot_r);
  P::put_numbers(hn::Max(hn::Zero(Tag()), hn::Sub(trace, reached)), out.gap);
  P::put_numbers(promise, out.doubt);
}

void basis_of(Arrangement arrangement, Index n, const double* gram, double* r, double* inverse,
              double* inverse_length) {
  (arrangement == Arrangement::alone ? basis<Alone> : basis<SideBySide>)(n, gram, r, inverse, inverse_length);
}

void certificate_of(Arrangement arrangement, Index n, const LaneCertificateIn& in,
                    std::span<const LanePolynomial> polynomials, const LaneCertificateOut& out) {
  (arrangement == Arrangement::alone ? certificate<Alone> : certificate<SideBySide>)(n, in, polynomials, out);
}

Index count() {
  return lanes;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(basis_of);
HWY_EXPORT(certificate_of);
HWY_EXPORT(count);

Index lane_count() {
  return HWY_DYNAMIC_DISPATCH(count)();
}

Index LanePlaces::row_stride() const {
  const Index lanes = lane_count();
  return arrangement == Arrangement::alone ? (n + lanes - 1) / lanes * lanes : n * lanes;
}

void lane_basis(Arrangement arrangement, Index n, const double* gram, double* r, double* inverse,
                double* inverse_length) {
  HWY_DYNAMIC_DISPATCH(basis_of)(arrangement, n, gram, r, inverse, inverse_length);
}

void lane_certificate(Arrangement arrangement, Index n, const LaneCertificateIn& in,
                      std::span<const LanePolynomial> polynomials, const LaneCertificateOut& out) {
  HWY_DYNAMIC_DISPATCH(certificate_of)(arrangement, n, in, polynomials, out);
}

}  // namespace itspace::kernels
#endif
