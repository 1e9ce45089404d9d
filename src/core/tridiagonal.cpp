// SPDX-License-Identifier: Apache-2.0
#include "core/tridiagonal.hpp"

#include <itspace/threads.hpp>

#include "kernels/blas_int.hpp"
#include "kernels/pool.hpp"
#include "kernels/symmetric_vector.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <stdexcept>
#include <vector>

namespace itspace {
namespace {

// Columns of a panel, whose reflections are applied to the rest together, and of what a part updates at a time.
constexpr Index panel_cols = 32, update_cols = 64;

// Some columns of the lower triangle of an n x n matrix, as much of it as any other part has.
kernels::Range share_of(Index n, Index parts, Index part) {
  const auto cut = [&](Index p) {
    const double left = 1 - static_cast<double>(p) / static_cast<double>(parts);
    return p == parts ? n : static_cast<Index>(static_cast<double>(n) * (1 - std::sqrt(left)));
  };
  return {cut(part), cut(part + 1)};
}

// A column-major matrix, from some entry on.
struct Corner {
  double* data;
  Index stride;
  double* at(Index i, Index j) const { return data + i + j * stride; }
};

int to_int(Index n) {
  return static_cast<int>(n);
}

// y += scale a x.
void add_times(Index rows, Index cols, const double* a, Index stride, const double* x, Index x_stride, double scale,
               double* y) {
  if (rows > 0 && cols > 0)
    cblas_dgemv(CblasColMajor, CblasNoTrans, to_int(rows), to_int(cols), scale, a, to_int(stride), x, to_int(x_stride),
                1, y, 1);
}
// y = a'x.
void transposed_times(Index rows, Index cols, const double* a, Index stride, const double* x, double* y) {
  if (cols > 0) cblas_dgemv(CblasColMajor, CblasTrans, to_int(rows), to_int(cols), 1, a, to_int(stride), x, 1, 0, y, 1);
}

// a -= v w' + w v' in the lower triangle, for columns `columns` of an n x n matrix; wvw: w, v, and w again, side by
// side, so that what is below a block on the diagonal is read and written once.
void update_share(const Corner& a, Index n, const kernels::Range& columns, const Corner& wvw) {
  const Corner w = wvw, v{wvw.at(0, panel_cols), wvw.stride};
  for (Index c = columns.begin; c < columns.end; c += update_cols) {
    const Index width = std::min(update_cols, columns.end - c), below = n - c - width;
    cblas_dsyr2k(CblasColMajor, CblasLower, CblasNoTrans, to_int(width), to_int(panel_cols), -1, v.at(c, 0),
                 to_int(v.stride), w.at(c, 0), to_int(w.stride), 1, a.at(c, c), to_int(a.stride));
    if (below > 0)
      cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, to_int(below), to_int(width), to_int(2 * panel_cols), -1,
                  v.at(c + width, 0), to_int(v.stride), w.at(c, 0), to_int(w.stride), 1, a.at(c + width, c),
                  to_int(a.stride));
  }
}

// What is needed beside the matrix.
struct Work {
  explicit Work(Index n) : wvw(n, 3 * panel_cols), inner(2 * panel_cols) {}

  Small wvw;  // W, V and W: what is left of A becomes A - V W' - W V'
  std::vector<double> partial;
  SmallVector inner;  // W'v, then V'v
};

// w = A v for the trailing m x m matrix, and, of the panel's first `done` columns, W'v and V'v, all by parts.
void multiply_by_reflector(const Corner& a, Index m, const double* v, const Corner& panel_v, const Corner& panel_w,
                           Index done, Work& work, double* w) {
  const Index parts = kernels::parts_for(0.5 * static_cast<double>(m) * static_cast<double>(m));
  const Index shares = parts == 1 ? 1 : 2 * parts;
  work.partial.assign(static_cast<std::size_t>(shares * m), 0.0);
  const Index extra = done > 0 ? 2 : 0;
  kernels::run_parts(shares + extra, parts, [&](Index part) {
    // The two small ones first: who comes last is then done with a share of the matrix like all others.
    if (part < extra) {
      const Corner& of = part == 0 ? panel_w : panel_v;
      transposed_times(m, done, of.data, of.stride, v, work.inner.data() + part * panel_cols);
      return;
    }
    const Index share = part - extra;
    const kernels::Range columns = share_of(m, shares, share);
    kernels::add_symmetric_columns(a.data, a.stride, m, columns.begin, columns.end, v, work.partial.data() + share * m);
  });
  std::fill_n(w, m, 0.0);
  for (Index share = 0; share < shares; ++share) {
    const Index first = share_of(m, shares, share).begin;
    Eigen::Map<SmallVector>(w + first, m - first) +=
        Eigen::Map<const SmallVector>(work.partial.data() + share * m + first, m - first);
  }
}

// `count` columns from `first` on become reflectors, whose first values, below[], are 1 until the panel is done.
void make_panel(Small& matrix, Index first, Index count, Work& work, Tridiagonal& out) {
  const Index n = matrix.rows();
  const Corner a{matrix.data(), n}, w{work.wvw.data(), n};
  for (Index i = 0; i < count; ++i) {
    const Index j = first + i, m = n - j - 1;  // below the diagonal
    double* const column = a.at(j, j);
    add_times(m + 1, i, a.at(j, first), n, w.at(j, 0), n, -1, column);
    add_times(m + 1, i, w.at(j, 0), n, a.at(j, first), n, -1, column);
    out.diagonal(j) = *column;
    double* const v = column + 1;
    LAPACKE_dlarfg_work(to_int(m), v, v + 1, 1, &out.tau(j));
    out.below(j) = *v;
    *v = 1;
    double* const of_w = w.at(j + 1, i);
    const Corner panel_v{a.at(j + 1, first), n}, panel_w{w.at(j + 1, 0), n};
    multiply_by_reflector({a.at(j + 1, j + 1), n}, m, v, panel_v, panel_w, i, work, of_w);
    add_times(m, i, panel_v.data, n, work.inner.data(), 1, -1, of_w);
    add_times(m, i, panel_w.data, n, work.inner.data() + panel_cols, 1, -1, of_w);
    Eigen::Map<SmallVector> made(of_w, m);
    const Eigen::Map<const SmallVector> reflector(v, m);
    made *= out.tau(j);
    made -= 0.5 * out.tau(j) * made.dot(reflector) * reflector;
  }
}

void update_rest(Small& matrix, Index first, Index count, Work& work) {
  const Index n = matrix.rows(), at = first + count, m = n - at;
  if (m == 0) return;
  Small& wvw = work.wvw;
  wvw.middleCols(count, panel_cols - count).setZero();
  wvw.middleCols(panel_cols, count) = matrix.middleCols(first, count);
  wvw.middleCols(panel_cols + count, panel_cols - count).setZero();
  wvw.rightCols(panel_cols) = wvw.leftCols(panel_cols);
  const Corner a{matrix.data(), n}, here{wvw.data(), n};
  const double work_of_all = static_cast<double>(m) * static_cast<double>(m) * static_cast<double>(panel_cols);
  const Index parts = kernels::parts_for(work_of_all), shares = parts == 1 ? 1 : 4 * parts;
  kernels::run_parts(shares, parts, [&](Index share) {
    update_share({a.at(at, at), n}, m, share_of(m, shares, share), {here.at(at, 0), n});
  });
}

}  // namespace

bool is_worth_own_reduction(Index n) {
  constexpr Index least = 768;
  return n >= least && n <= blas_limit() && threads() > 1 && kernels::OneBlasThread::is_to_be_had();
}

void make_tridiagonal(Small& a, Tridiagonal& out) {
  const Index n = a.rows();
  out.diagonal.resize(n);
  out.below.resize(std::max<Index>(0, n - 1));
  out.tau.resize(std::max<Index>(0, n - 1));
  const kernels::OneBlasThread blas;
  Work work(n);
  for (Index first = 0; first < n - 1; first += panel_cols) {
    const Index count = std::min(panel_cols, n - 1 - first);
    make_panel(a, first, count, work, out);
    update_rest(a, first, count, work);
    for (Index j = first; j < first + count; ++j) a(j + 1, j) = out.below(j);
  }
  if (n > 0) out.diagonal(n - 1) = a(n - 1, n - 1);
}

// By blocks of reflectors, I - V T V', whose T are made first: then each part has columns of `vectors` to itself.
// (LAPACK's dormtr writes into the reflectors for a while, so that they cannot be shared.)
void apply_reflectors(const Small& reduced, const SmallVector& tau, Small& vectors) {
  constexpr Index block = 64, fewest_cols = 16;
  const Index n = reduced.rows(), reflectors = n - 1, cols = vectors.cols();
  if (n < 2 || cols == 0) return;
  const kernels::OneBlasThread blas;
  const Index blocks = (reflectors + block - 1) / block;
  Small t = Small::Zero(block, blocks * block);
  const auto size_of = [&](Index number) { return std::min(block, reflectors - number * block); };
  const auto v_of = [&](Index number) { return reduced.data() + number * block * (n + 1) + 1; };
  std::atomic<int> wrong = 0;
  const auto check = [&](lapack_int info) {
    if (info != 0) wrong = to_int(info);
  };
  kernels::run_parts(blocks, threads(), [&](Index number) {
    check(LAPACKE_dlarft_work(LAPACK_COL_MAJOR, 'F', 'C', to_int(reflectors - number * block), to_int(size_of(number)),
                              v_of(number), to_int(n), tau.data() + number * block, t.col(number * block).data(),
                              to_int(block)));
  });
  const Index parts = std::clamp<Index>(cols / fewest_cols, 1, threads());
  kernels::run_parts(parts, [&](Index part) {
    const kernels::Range range = kernels::part_of(cols, parts, part);
    for (Index number = blocks - 1; number >= 0; --number)
      check(LAPACKE_dlarfb(LAPACK_COL_MAJOR, 'L', 'N', 'F', 'C', to_int(reflectors - number * block),
                           to_int(range.end - range.begin), to_int(size_of(number)), v_of(number), to_int(n),
                           t.col(number * block).data(), to_int(block), &vectors(number * block + 1, range.begin),
                           to_int(n)));
  });
  if (wrong == LAPACK_WORK_MEMORY_ERROR) throw std::bad_alloc();
  if (wrong != 0) throw std::logic_error("LAPACK's dlarft or dlarfb refused an argument");
}

}  // namespace itspace
