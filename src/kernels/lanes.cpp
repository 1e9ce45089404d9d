// SPDX-License-Identifier: Apache-2.0
#include "kernels/lanes.hpp"

#include "kernels/instruction_sets.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lanes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

constexpr Index lanes = static_cast<Index>(HWY_LANES(double));

HWY_INLINE Vector load(const double* from) {
  return hn::Load(Tag(), from);
}
HWY_INLINE void store(Vector value, double* to) {
  hn::Store(value, Tag(), to);
}
HWY_INLINE Vector number(double value) {
  return hn::Set(Tag(), value);
}

// One n x n matrix of each lane.
template <class Double>
struct Matrix {
  Double* data;
  Index n;

  HWY_INLINE Double* at(Index i, Index j) const { return data + (i * n + j) * lanes; }
  HWY_INLINE Vector get(Index i, Index j) const { return load(at(i, j)); }
  HWY_INLINE void set(Index i, Index j, Vector value) const { store(value, at(i, j)); }
};
using In = Matrix<const double>;
using Out = Matrix<double>;
HWY_INLINE In in(const Out& matrix) {
  return {matrix.data, matrix.n};
}

// Where the entries of a factor lie: op(a)(i, k) at i `row` + k `step`.
struct Strides {
  Index row, step;
};

// Rows x Cols entries of op(a) b, in registers; k from `first` to `last`.
template <int Rows, int Cols>
HWY_INLINE void tile(const double* a, Strides s, In b, Index i, Index j, Index first, Index last, Out out) {
  std::array<Vector, static_cast<std::size_t>(Rows * Cols)> sums;
  for (auto& sum : sums) sum = hn::Zero(Tag());
  for (Index k = first; k < last; ++k) {
    std::array<Vector, Cols> right;
    for (int c = 0; c < Cols; ++c) right[static_cast<std::size_t>(c)] = b.get(k, j + c);
    for (int r = 0; r < Rows; ++r) {
      const Vector left = load(a + (i + r) * s.row + k * s.step);
      for (int c = 0; c < Cols; ++c) {
        Vector& sum = sums[static_cast<std::size_t>(r * Cols + c)];
        sum = hn::MulAdd(left, right[static_cast<std::size_t>(c)], sum);
      }
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Cols; ++c) out.set(i + r, j + c, sums[static_cast<std::size_t>(r * Cols + c)]);
}

enum class Shape { full, upper_left };  // of op(a): upper_left has zeros below its diagonal

template <int Rows>
HWY_INLINE void rows_of_product(const double* a, Strides s, In b, Index i, Index first, Out out) {
  const Index n = b.n;
  Index j = 0;
  for (; j + 4 <= n; j += 4) tile<Rows, 4>(a, s, b, i, j, first, n, out);
  for (; j < n; ++j) tile<Rows, 1>(a, s, b, i, j, first, n, out);
}

HWY_INLINE void product(const double* a, Strides s, In b, Out out, Shape shape) {
  const Index n = b.n;
  const auto first = [&](Index i) { return shape == Shape::upper_left ? i : 0; };
  Index i = 0;
  for (; i + 2 <= n; i += 2) rows_of_product<2>(a, s, b, i, first(i), out);
  for (; i < n; ++i) rows_of_product<1>(a, s, b, i, first(i), out);
}

// out = a b and a'b; out is neither.
HWY_INLINE void times(In a, In b, Out out, Shape shape = Shape::full) {
  product(a.data, {a.n * lanes, lanes}, b, out, shape);
}
HWY_INLINE void transposed_times(In a, In b, Out out) {
  product(a.data, {lanes, a.n * lanes}, b, out, Shape::full);
}

// The upper triangular U with U'U = a, of which the upper triangle is read. NaN where there is none.
HWY_INLINE void cholesky(In a, Out u) {
  const Index n = a.n;
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i <= j; ++i) {
      Vector sum = a.get(i, j);
      for (Index k = 0; k < i; ++k) sum = hn::NegMulAdd(u.get(k, i), u.get(k, j), sum);
      u.set(i, j, i == j ? hn::Sqrt(sum) : hn::Div(sum, u.get(i, i)));
    }
    for (Index i = j + 1; i < n; ++i) u.set(i, j, hn::Zero(Tag()));
  }
}

HWY_INLINE void invert_upper(In u, Out inverse) {
  const Index n = u.n;
  for (Index j = 0; j < n; ++j) {
    inverse.set(j, j, hn::Div(number(1), u.get(j, j)));
    for (Index i = j + 1; i < n; ++i) inverse.set(i, j, hn::Zero(Tag()));
  }
  for (Index j = 1; j < n; ++j)
    for (Index i = j - 1; i >= 0; --i) {
      Vector sum = hn::Zero(Tag());
      for (Index k = i + 1; k <= j; ++k) sum = hn::NegMulAdd(u.get(i, k), inverse.get(k, j), sum);
      inverse.set(i, j, hn::Mul(sum, inverse.get(i, i)));
    }
}

// sum_ij f(i, j).
template <class Of>
HWY_INLINE Vector sum_of_entries(Index n, const Of& of) {
  Vector sum = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) sum = hn::Add(sum, of(i, j));
  return sum;
}
HWY_INLINE Vector squared_norm(In a) {
  return sum_of_entries(a.n, [&](Index i, Index j) { return hn::Mul(a.get(i, j), a.get(i, j)); });
}
HWY_INLINE Vector norm(In a) {
  return hn::Sqrt(squared_norm(a));
}

// The matrices that the work needs room for.
class Room {
 public:
  Room(Index n, Index count) : n_(n), next_(thread_scratch<double, Scratch::lane_matrices>(count * n * n * lanes)) {}
  Out matrix() {
    const Out made{next_, n_};
    next_ += n_ * n_ * lanes;
    return made;
  }

 private:
  Index n_;
  double* next_;
};

void basis(Index n, const double* gram_data, double* r_data, double* inverse_data, double* inverse_length) {
  const In gram{gram_data, n};
  const Out r{r_data, n}, inverse{inverse_data, n};
  Room room(n, 2);
  const Out scaled = room.matrix(), upper = room.matrix();
  std::array<Vector, most_lane_columns> lengths, scale;
  for (Index j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    lengths[at] = hn::Sqrt(gram.get(j, j));
    scale[at] = hn::Div(number(1), lengths[at]);
  }
  for (Index i = 0; i < n; ++i)
    for (Index j = i; j < n; ++j)
      scaled.set(
          i, j,
          hn::Mul(hn::Mul(scale[static_cast<std::size_t>(i)], gram.get(i, j)), scale[static_cast<std::size_t>(j)]));
  cholesky(in(scaled), upper);
  invert_upper(in(upper), inverse);
  const Vector size = number(static_cast<double>(n));
  store(hn::Sqrt(hn::Div(squared_norm(in(inverse)), size)), inverse_length);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      r.set(i, j, hn::Mul(upper.get(i, j), lengths[static_cast<std::size_t>(j)]));
      inverse.set(i, j, hn::Mul(scale[static_cast<std::size_t>(i)], inverse.get(i, j)));
    }
}

// Coefficients of one round, by lanes; a lane whose schedule begins later has none, and stays as it is.
struct RoundCoefficients {
  alignas(64) std::array<double, 16> a, b, c, active;
};

// x <- its polar factor, as polar_by_products in core/polar.cpp makes it. NaN where the schedule does not reach.
HWY_INLINE void make_polar(std::span<const LanePolynomial> polynomials, const double* smallest, Room& room, Out x) {
  const Index n = x.n;
  const Out squared = room.matrix(), fourth = room.matrix(), next = room.matrix();
  const In x_in = in(x);
  std::array<std::size_t, 16> begin{};
  alignas(64) std::array<double, 16> scale{};
  std::size_t round = 0;
  for (bool first = true; first || round < polynomials.size(); ++round, first = false) {
    // XX' and its square, of which the rows are the columns: both are symmetric.
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j <= i; ++j) {
        Vector sum = hn::Zero(Tag());
        for (Index k = 0; k < n; ++k) sum = hn::MulAdd(x_in.get(i, k), x_in.get(j, k), sum);
        squared.set(i, j, sum);
        squared.set(j, i, sum);
      }
    times(in(squared), in(squared), fourth);
    if (first) {
      alignas(64) std::array<double, 16> bound;
      store(hn::Sqrt(norm(in(fourth))), bound.data());  // ||X||_2 <= ||(XX')^2||_F^(1/4)
      round = polynomials.size() - 1;
      for (Index lane = 0; lane < lanes; ++lane) {
        const auto l = static_cast<std::size_t>(lane);
        scale[l] = 1 / std::sqrt(bound[l]);
        const double lowest = smallest[lane] * scale[l];
        begin[l] = 0;
        while (begin[l] + 1 < polynomials.size() && polynomials[begin[l] + 1].lowest <= lowest) ++begin[l];
        if (!(polynomials[0].lowest <= lowest)) scale[l] = std::numeric_limits<double>::quiet_NaN();
        round = std::min(round, begin[l]);
      }
    }
    RoundCoefficients now;
    for (std::size_t l = 0; l < static_cast<std::size_t>(lanes); ++l) {
      const LanePolynomial& p = polynomials[round];
      const double s = round == begin[l] ? scale[l] : 1;  // of X/bound in the first round
      now.active[l] = round >= begin[l] ? 1 : 0;
      now.a[l] = p.a * s;
      now.b[l] = p.b * (s * s * s);
      now.c[l] = p.c * (s * s * s * s * s);
    }
    const Vector a = load(now.a.data()), b = load(now.b.data()), c = load(now.c.data());
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < n; ++j) {
        const Vector value = hn::MulAdd(c, fourth.get(i, j), hn::Mul(b, squared.get(i, j)));
        fourth.set(i, j, i == j ? hn::Add(value, a) : value);
      }
    times(in(fourth), x_in, next);
    const auto active = hn::Gt(load(now.active.data()), hn::Zero(Tag()));
    for (Index e = 0; e < n * n * lanes; e += lanes)
      store(hn::IfThenElse(active, load(next.data + e), load(x.data + e)), x.data + e);
  }
}

void certificate(Index n, const LaneCertificateIn& given, std::span<const LanePolynomial> polynomials,
                 const LaneCertificateOut& out) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  Room room(n, 10);
  const In theta_given{given.theta, n}, w_gram{given.w_gram, n}, r{given.r, n}, inverse{given.inverse, n};
  const Out theta = room.matrix(), c = room.matrix(), c_inverse = room.matrix(), k = room.matrix();
  const Out polar = room.matrix(), work = room.matrix(), columns = room.matrix();
  Vector asymmetry = hn::Zero(Tag()), size = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      const Vector one = theta_given.get(i, j), other = theta_given.get(j, i);
      asymmetry = hn::Max(asymmetry, hn::Abs(hn::Sub(one, other)));
      size = hn::Max(size, hn::Abs(one));
      theta.set(i, j, hn::Mul(number(0.5), hn::Add(one, other)));
    }
  store(asymmetry, out.theta_asymmetry);
  store(size, out.theta_size);
  cholesky(in(theta), c);
  invert_upper(in(c), c_inverse);
  times(in(c), r, k, Shape::upper_left);
  times(inverse, in(c_inverse), work, Shape::upper_left);
  const Vector inverse_norm = norm(in(work));  // of K^(-1)
  store(inverse_norm, out.inverse_norm);
  store(norm(in(k)), out.largest);
  std::copy_n(k.data, n * n * lanes, polar.data);
  alignas(64) std::array<double, 16> smallest;
  // 1/||K^(-1)||_F <= s_n; the basis is inverted to a few digits only.
  store(hn::Div(number(0.9), inverse_norm), smallest.data());
  make_polar(polynomials, smallest.data(), room, polar);

  // H = P'K is symmetric, with the singular values of K.
  transposed_times(in(polar), in(k), work);
  Vector trace = hn::Zero(Tag());
  for (Index i = 0; i < n; ++i) trace = hn::Add(trace, work.get(i, i));
  store(trace, out.nuclear_norm);
  store(hn::Mul(number(0.5), hn::Sqrt(sum_of_entries(n,
                                                     [&](Index i, Index j) {
                                                       const Vector skew = hn::Sub(work.get(i, j), work.get(j, i));
                                                       return hn::Mul(skew, skew);
                                                     }))),
        out.asymmetry);

  times(in(c_inverse), in(polar), columns, Shape::upper_left);
  const Out theta_columns = k, a = c;  // neither is needed any more
  times(in(theta), in(columns), theta_columns);
  transposed_times(in(columns), in(theta_columns), a);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j) {
      const Vector mean = hn::Mul(number(0.5), hn::Add(a.get(i, j), a.get(j, i)));
      a.set(i, j, mean);
      a.set(j, i, mean);
    }
  store(hn::Sqrt(sum_of_entries(n,
                                [&](Index i, Index j) {
                                  const Vector e = i == j ? hn::Sub(a.get(i, j), number(1)) : a.get(i, j);
                                  return hn::Mul(e, e);
                                })),
        out.orthogonality);

  const Vector noise = load(given.noise);
  std::array<Vector, most_lane_columns> doubt, roots, inverse_roots, lengths;
  Vector columns_squared = hn::Zero(Tag()), columns_dot_r = hn::Zero(Tag());
  for (Index j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    Vector square = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) {
      square = hn::MulAdd(columns.get(i, j), columns.get(i, j), square);
      columns_dot_r = hn::MulAdd(columns.get(i, j), r.get(i, j), columns_dot_r);
    }
    columns_squared = hn::Add(columns_squared, square);
    doubt[at] = hn::Max(hn::Mul(noise, square), number(eps));
    roots[at] = hn::Sqrt(doubt[at]);
    inverse_roots[at] = hn::Div(number(1), roots[at]);
  }
  store(columns_squared, out.columns_squared);
  store(columns_dot_r, out.columns_dot_r);

  // As in measure_certificate: Gershgorin's bound, scaled so that doubtful directions are shortened and not the others.
  Vector reached = hn::Zero(Tag());
  const Out m{out.m, n};
  for (Index j = 0; j < n; ++j) {
    const auto at = static_cast<std::size_t>(j);
    Vector others = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i)
      if (i != j) others = hn::MulAdd(hn::Abs(a.get(i, j)), inverse_roots[static_cast<std::size_t>(i)], others);
    const Vector bound = hn::MulAdd(roots[at], others, a.get(j, j));
    lengths[at] = hn::Div(number(1), hn::Sqrt(hn::Max(number(1), bound)));
    Vector dot = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) {
      dot = hn::MulAdd(theta_columns.get(i, j), r.get(i, j), dot);
      m.set(i, j, hn::Mul(columns.get(i, j), lengths[at]));
    }
    reached = hn::MulAdd(lengths[at], dot, reached);
  }
  store(hn::Max(hn::Zero(Tag()), hn::Sub(trace, reached)), out.gap);

  // As in promise_doubt.
  times(w_gram, in(m), work);
  Vector sum = hn::Zero(Tag());
  for (Index j = 0; j < n; ++j) {
    Vector image = hn::Zero(Tag()), length = hn::Zero(Tag());
    for (Index i = 0; i < n; ++i) {
      image = hn::MulAdd(m.get(i, j), work.get(i, j), image);
      length = hn::MulAdd(r.get(i, j), r.get(i, j), length);
    }
    image = hn::Sqrt(hn::Max(hn::Zero(Tag()), image));
    const Vector longer = hn::Max(image, hn::Sqrt(length));
    sum = hn::MulAdd(hn::Mul(number(2), doubt[static_cast<std::size_t>(j)]), hn::Mul(image, longer), sum);
  }
  store(sum, out.doubt);
}

Index count() {
  return lanes;
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(basis);
HWY_EXPORT(certificate);
HWY_EXPORT(count);

Index lane_count() {
  return HWY_DYNAMIC_DISPATCH(count)();
}

void lane_basis(Index n, const double* gram, double* r, double* inverse, double* inverse_length) {
  HWY_DYNAMIC_DISPATCH(basis)(n, gram, r, inverse, inverse_length);
}

void lane_certificate(Index n, const LaneCertificateIn& in, std::span<const LanePolynomial> polynomials,
                      const LaneCertificateOut& out) {
  HWY_DYNAMIC_DISPATCH(certificate)(n, in, polynomials, out);
}

}  // namespace itspace::kernels
#endif
