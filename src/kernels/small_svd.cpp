// SPDX-License-Identifier: Apache-2.0
#include "kernels/small_svd.hpp"

#include "kernels/instruction_sets.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/small_svd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

constexpr Index lanes = static_cast<Index>(HWY_LANES(double));
constexpr Index most_pairs = most_jacobi_columns / 2;

constexpr Index padded(Index n) {
  return (n + lanes - 1) / lanes * lanes;
}

// x'x, y'y, x'y and the rotation that makes the last of them zero, for the pairs of one round. (Lengths are kept up to
// date from angle to angle, and measured anew in each sweep.)
struct Round {
  alignas(64) std::array<double, most_pairs + 8> xx, yy, xy, cosine, sine;
};

HWY_INLINE double dot(const double* HWY_RESTRICT x, const double* HWY_RESTRICT y, Index count) {
  const Tag tag;
  Vector sum = hn::Zero(tag);
  for (Index i = 0; i < count; i += lanes) sum = hn::MulAdd(hn::Load(tag, x + i), hn::Load(tag, y + i), sum);
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

// t = tan of the angle: t^2 + 2 z t - 1 = 0, z = (yy - xx)/(2 xy), the smaller root. It leaves xx - t xy and yy + t xy.
// Returns the largest xy^2/(xx yy).
HWY_INLINE double find_rotations(Index pairs, Round& round) {
  const Tag tag;
  // What is below the rounding of the sums themselves is left alone.
  const Vector one = hn::Set(tag, 1.0), rounding = hn::Set(tag, 1e-33);
  Vector largest = hn::Zero(tag);
  for (Index p = 0; p < pairs; p += lanes) {
    const Vector xx = hn::Load(tag, round.xx.data() + p), yy = hn::Load(tag, round.yy.data() + p);
    const Vector xy = hn::Load(tag, round.xy.data() + p);
    const Vector size = hn::Mul(xx, yy), square = hn::Mul(xy, xy);
    const auto turns = hn::Gt(square, hn::Mul(rounding, size));
    const Vector z = hn::Div(hn::Sub(yy, xx), hn::Add(xy, xy));
    const Vector root = hn::Sqrt(hn::MulAdd(z, z, one));
    const Vector t = hn::IfThenElseZero(turns, hn::Div(hn::CopySign(one, z), hn::Add(hn::Abs(z), root)));
    const Vector cosine = hn::Div(one, hn::Sqrt(hn::MulAdd(t, t, one)));
    hn::Store(cosine, tag, round.cosine.data() + p);
    hn::Store(hn::Mul(cosine, t), tag, round.sine.data() + p);
    hn::Store(hn::NegMulAdd(t, xy, xx), tag, round.xx.data() + p);
    hn::Store(hn::MulAdd(t, xy, yy), tag, round.yy.data() + p);
    largest = hn::Max(largest, hn::IfThenElseZero(turns, hn::Div(square, size)));
  }
  return hn::GetLane(hn::MaxOfLanes(tag, largest));
}

// x <- c x - s y = x - s (y + tau x), y <- s x + c y = y + s (x - tau y), tau = s/(1 + c): the rounding is that of the
// change, and small rotations leave none.
HWY_INLINE void rotate(double* HWY_RESTRICT x, double* HWY_RESTRICT y, Index count, double cosine, double sine) {
  const Tag tag;
  const Vector s = hn::Set(tag, sine), tau = hn::Set(tag, sine / (1 + cosine));
  for (Index i = 0; i < count; i += lanes) {
    const Vector xi = hn::Load(tag, x + i), yi = hn::Load(tag, y + i);
    hn::Store(hn::NegMulAdd(s, hn::MulAdd(tau, xi, yi), xi), tag, x + i);
    hn::Store(hn::MulAdd(s, hn::NegMulAdd(tau, yi, xi), yi), tag, y + i);
  }
}

bool svd(Index m, Index n, const double* a, double* u, double* s, double* v) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  // Of the squared cosines of the angles between columns. (Rotations square what they leave, but not where singular
  // values are equal: so the last sweep must find them orthogonal, and not only leave them so.)
  const double converged = (static_cast<double>(m) * eps) * (static_cast<double>(m) * eps);
  constexpr int most_sweeps = 15;
  // Column j of a and of v, one after the other, so that one loop turns both.
  const Index top = padded(m), height = top + padded(n);
  double* columns = thread_scratch<double, Scratch::jacobi_columns>(height * n);
  std::fill_n(columns, height * n, 0.0);
  for (Index j = 0; j < n; ++j) {
    std::copy_n(a + j * m, m, columns + j * height);
    columns[j * height + top + j] = 1;
  }
  // Every column meets every other once in a sweep: a tournament, the last place empty where n is odd.
  const Index players = n + n % 2, pairs = players / 2;
  std::array<Index, most_jacobi_columns> seat;
  for (Index j = 0; j < players; ++j) seat[static_cast<std::size_t>(j)] = j;
  Round round;
  round.xx.fill(1), round.yy.fill(1), round.xy.fill(0);
  std::array<double, most_jacobi_columns> squares;  // of the columns' lengths
  const auto measure = [&] {
    for (Index j = 0; j < n; ++j)
      squares[static_cast<std::size_t>(j)] = dot(columns + j * height, columns + j * height, top);
  };
  bool done = n < 2;
  for (int sweep = 0; !done; ++sweep) {
    if (sweep == most_sweeps) return false;
    double largest = 0;
    measure();
    for (Index game = 0; game < players - 1; ++game) {
      const auto pair_of = [&](Index p) {
        return std::pair(seat[static_cast<std::size_t>(p)], seat[static_cast<std::size_t>(players - 1 - p)]);
      };
      for (Index p = 0; p < pairs; ++p) {
        const auto [i, j] = pair_of(p);
        const auto at = static_cast<std::size_t>(p);
        const bool there = std::max(i, j) < n;
        round.xx[at] = there ? squares[static_cast<std::size_t>(i)] : 1;
        round.yy[at] = there ? squares[static_cast<std::size_t>(j)] : 1;
        round.xy[at] = there ? dot(columns + i * height, columns + j * height, top) : 0;
      }
      largest = std::max(largest, find_rotations(pairs, round));
      for (Index p = 0; p < pairs; ++p) {
        const auto [i, j] = pair_of(p);
        const auto at = static_cast<std::size_t>(p);
        if (round.sine[at] == 0) continue;
        rotate(columns + i * height, columns + j * height, height, round.cosine[at], round.sine[at]);
        squares[static_cast<std::size_t>(i)] = round.xx[at];
        squares[static_cast<std::size_t>(j)] = round.yy[at];
      }
      std::rotate(seat.begin() + 1, seat.begin() + players - 1, seat.begin() + players);
    }
    if (!(largest <= 1.5)) return false;  // not a number
    done = largest <= converged;
  }
  measure();
  std::array<double, most_jacobi_columns> lengths;
  for (Index j = 0; j < n; ++j) {
    lengths[static_cast<std::size_t>(j)] = std::sqrt(squares[static_cast<std::size_t>(j)]);
    seat[static_cast<std::size_t>(j)] = j;
  }
  std::sort(seat.begin(), seat.begin() + n, [&](Index i, Index j) {
    const double li = lengths[static_cast<std::size_t>(i)], lj = lengths[static_cast<std::size_t>(j)];
    return li > lj || (li == lj && i < j);
  });
  const double smallest = n > 0 ? lengths[static_cast<std::size_t>(seat[static_cast<std::size_t>(n) - 1])] : 1;
  const double largest = n > 0 ? lengths[static_cast<std::size_t>(seat[0])] : 1;
  if (!(smallest > static_cast<double>(m) * eps * largest)) return false;
  for (Index k = 0; k < n; ++k) {
    const Index j = seat[static_cast<std::size_t>(k)];
    const double length = lengths[static_cast<std::size_t>(j)];
    s[k] = length;
    const double* column = columns + j * height;
    for (Index i = 0; i < m; ++i) u[k * m + i] = column[i] / length;
    std::copy_n(column + top, n, v + k * n);
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace itspace::kernels {

HWY_EXPORT(svd);

bool jacobi_svd(Index m, Index n, const double* a, double* u, double* s, double* v) {
  return HWY_DYNAMIC_DISPATCH(svd)(m, n, a, u, s, v);
}

}  // namespace itspace::kernels
#endif
