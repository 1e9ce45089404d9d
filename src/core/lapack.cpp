// SPDX-License-Identifier: Apache-2.0
#include "core/lapack.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <vector>

namespace itspace {
namespace {

lapack_int as_int(Index n) {
  return static_cast<lapack_int>(n);
}

}  // namespace

bool symmetric_eigen(const Small& a, SmallVector& values, Small& vectors) {
  if (!a.allFinite()) return false;
  vectors = a;
  values.resize(a.rows());
  if (a.rows() == 0) return true;
  return LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', as_int(a.rows()), vectors.data(), as_int(a.rows()),
                        values.data()) == 0;
}

bool symmetric_eigenvalues(const Small& a, SmallVector& values) {
  if (!a.allFinite()) return false;
  // For r x r matrices Eigen's tridiagonalisation beats the call into LAPACK.
  constexpr Index small_enough = 48;
  if (a.rows() <= small_enough) {
    Eigen::SelfAdjointEigenSolver<Small> solver(a, Eigen::EigenvaluesOnly);
    values = solver.eigenvalues();
    return solver.info() == Eigen::Success;
  }
  Small copy = a;
  values.resize(a.rows());
  return LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'N', 'L', as_int(a.rows()), copy.data(), as_int(a.rows()), values.data()) ==
         0;
}

bool leading_eigenpairs(Small& a, Index count, SmallVector& values, Small* vectors) {
  const Index n = a.rows();
  count = std::min(count, n);
  values.resize(count);
  if (vectors) vectors->resize(n, count);
  if (count == 0) return true;
  if (!a.allFinite()) return false;
  SmallVector ascending(n);
  Small found(vectors ? n : 1, vectors ? count : 1);
  std::vector<lapack_int> support(static_cast<std::size_t>(2 * std::max<Index>(1, count)));
  lapack_int got = 0;
  const bool all = count == n;
  const lapack_int info =
      LAPACKE_dsyevr(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', all ? 'A' : 'I', 'L', as_int(n), a.data(), as_int(n), 0, 0,
                     as_int(n - count + 1), as_int(n), 0, &got, ascending.data(), found.data(),
                     as_int(std::max<Index>(1, found.rows())), support.data());
  if (info != 0 || got != as_int(count)) return false;
  values = ascending.head(count).reverse();
  if (vectors) *vectors = found.rowwise().reverse();
  return true;
}

bool smallest_eigenvalue(Small& a, double& value) {
  if (!a.allFinite()) return false;
  SmallVector ascending(a.rows());
  lapack_int got = 0;
  lapack_int support[2] = {};
  double unused = 0;
  const lapack_int info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'N', 'I', 'L', as_int(a.rows()), a.data(), as_int(a.rows()),
                                         0, 0, 1, 1, 0, &got, ascending.data(), &unused, 1, support);
  if (info != 0 || got != 1) return false;
  value = ascending(0);
  return true;
}

bool singular_values(const Small& a, SmallVector& values) {
  const Index m = a.rows(), n = a.cols();
  if (!a.allFinite()) return false;
  values.resize(std::min(m, n));
  if (values.size() == 0) return true;
  Small copy = a;
  double unused = 0;
  return LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'N', as_int(m), as_int(n), copy.data(), as_int(m), values.data(), &unused, 1,
                        &unused, 1) == 0;
}

bool svd(const Small& a, SvdSize size, Svd& out) {
  const Index m = a.rows(), n = a.cols(), k = std::min(m, n);
  if (!a.allFinite()) return false;
  const bool full = size == SvdSize::full;
  out.s.resize(k);
  if (k == 0) {
    out.u.setIdentity(m, full ? m : 0);
    out.v.setIdentity(n, full ? n : 0);
    return true;
  }
  Small copy = a, vt(full ? n : k, n);
  out.u.resize(m, full ? m : k);
  const lapack_int info =
      LAPACKE_dgesdd(LAPACK_COL_MAJOR, full ? 'A' : 'S', as_int(m), as_int(n), copy.data(), as_int(m), out.s.data(),
                     out.u.data(), as_int(m), vt.data(), as_int(vt.rows()));
  out.v = vt.transpose();
  return info == 0;
}

bool cholesky(Small& a) {
  const Index n = a.rows();
  if (n == 0) return true;
  if (!a.allFinite()) return false;
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', as_int(n), a.data(), as_int(n)) != 0) return false;
  a.triangularView<Eigen::StrictlyUpper>().setZero();
  return true;
}

Small pivoted_cholesky(const Small& a, double tolerance) {
  const Index n = a.rows();
  if (n == 0 || !a.allFinite()) return Small(n, 0);
  Small l = a;
  std::vector<lapack_int> pivots(static_cast<std::size_t>(n));
  lapack_int rank = 0;
  LAPACKE_dpstrf(LAPACK_COL_MAJOR, 'L', as_int(n), l.data(), as_int(n), pivots.data(), &rank, tolerance);
  l.triangularView<Eigen::StrictlyUpper>().setZero();
  Small out(n, Index(rank));
  for (Index i = 0; i < n; ++i) out.row(Index(pivots[static_cast<std::size_t>(i)]) - 1) = l.row(i).head(rank);
  return out;
}

void congruence(const Small& l, Small& b) {
  const Index n = b.rows();
  if (n > 0) LAPACKE_dsygst(LAPACK_COL_MAJOR, 2, 'L', as_int(n), b.data(), as_int(n), l.data(), as_int(n));
}

Small product_transposed(const Small& a, const Small& b) {
  Small out(a.cols(), b.cols());
  if (out.size() == 0) return out;
  if (a.rows() == 0) return out.setZero();
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, as_int(a.cols()), as_int(b.cols()), as_int(a.rows()), 1,
              a.data(), as_int(a.rows()), b.data(), as_int(b.rows()), 0, out.data(), as_int(out.rows()));
  return out;
}

void add_gram(const Small& a, Small& sum) {
  if (a.size() == 0) return;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, as_int(a.cols()), as_int(a.rows()), 1, a.data(), as_int(a.rows()),
              1, sum.data(), as_int(sum.rows()));
}

Small qr_triangle(Small& a) {
  const Index m = a.rows(), n = a.cols(), k = std::min(m, n);
  Small r = Small::Zero(k, n);
  if (k == 0) return r;
  SmallVector tau(k);
  LAPACKE_dgeqrf(LAPACK_COL_MAJOR, as_int(m), as_int(n), a.data(), as_int(m), tau.data());
  r.triangularView<Eigen::Upper>() = a.topRows(k);
  return r;
}

}  // namespace itspace
