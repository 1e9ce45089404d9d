// SPDX-License-Identifier: Apache-2.0
#include "core/lapack.hpp"

#include "kernels/pool.hpp"
#include "kernels/small_svd.hpp"
#include "kernels/small_triangles.hpp"

#include "core/lapack_call.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

namespace itspace {
namespace {

// Of every ilaenv there is; and the triangle that dormqr keeps beside its work.
constexpr double widest_block = 64, block_triangle = 65 * 64;

double blocked(double n) {
  return widest_block * n + block_triangle;
}

// With so many squares beside the vectors. Where the matrix is long it is first cut to a triangle, and only a full
// basis is made of blocks as long as itself.
double of_svd(double m, double n, lapack_work::Vectors vectors, double squares) {
  using lapack_work::Vectors;
  const double least = std::min(m, n), most = std::max(m, n);
  const double cut = vectors == Vectors::full ? most : std::min(most, 2 * least);
  return (vectors == Vectors::none ? 0 : squares * least * least) + 10 * least + most + blocked(least + cut);
}

// The same for a routine that has no other outcome.
void must_be_done(lapack_int info, const char* routine) {
  if (!done(info, routine)) throw std::logic_error(text("LAPACK's ", routine, " ended with ", info));
}

// Cholesky factors and inverses of triangles up to this size are our own, which have our threads.
constexpr Index in_cache = 2048;

// a = u diag(s) v', v' in vt; null pointers for values alone. Divide and conquer, then QR iteration where that gives
// up, or where its work array is too long.
bool any_svd(lapack_work::Vectors vectors, const Small& a, SmallVector& s, Small* u, Small* vt) {
  using lapack_work::Vectors;
  const char job = vectors == Vectors::none ? 'N' : vectors == Vectors::thin ? 'S' : 'A';
  const double rows = static_cast<double>(a.rows()), cols = static_cast<double>(a.cols());
  const lapack_int m = blas_int(a.rows()), n = blas_int(a.cols());
  double unused = 0;
  double *u_data = u ? u->data() : &unused, *vt_data = vt ? vt->data() : &unused;
  const lapack_int u_stride = u ? m : 1, vt_stride = vt ? blas_int(vt->rows()) : 1;
  Small copy = a;
  const kernels::OneBlasThread blas;
  if (fits(lapack_work::dgesdd(rows, cols, vectors))) {
    if (done(
            LAPACKE_dgesdd(LAPACK_COL_MAJOR, job, m, n, copy.data(), m, s.data(), u_data, u_stride, vt_data, vt_stride),
            "dgesdd"))
      return true;
    copy = a;
  }
  require_fits(lapack_work::dgesvd(rows, cols, vectors), a.rows(), a.cols(), "dgesvd");
  SmallVector superdiagonal(std::max<Index>(1, s.size()));
  return done(LAPACKE_dgesvd(LAPACK_COL_MAJOR, job, job, m, n, copy.data(), m, s.data(), u_data, u_stride, vt_data,
                             vt_stride, superdiagonal.data()),
              "dgesvd");
}

// For small matrices, square or tall.
bool small_svd(const Small& a, bool full, Svd& out) {
  const Index m = a.rows(), n = a.cols();
  if (n > m || n > kernels::most_jacobi_columns || (full && m != n)) return false;
  if (!has_fourth_powers(a.cwiseAbs().maxCoeff())) return false;
  out.v.resize(n, n);
  return kernels::jacobi_svd(m, n, a.data(), out.u.data(), out.s.data(), out.v.data());
}

}  // namespace

namespace lapack_work {

double dsyevd(double n, bool vectors) {
  return std::max((vectors ? 2 * n * n + 6 * n : 2 * n) + 1, blocked(n) + 2 * n);
}
double dsyev(double n) {
  return blocked(n) + 3 * n;
}
double dsyevr(double n) {
  return blocked(n) + 26 * n;
}
double dgesdd(double m, double n, Vectors vectors) {
  return of_svd(m, n, vectors, 4);
}
double dgesvd(double m, double n, Vectors vectors) {
  return of_svd(m, n, vectors, 1);
}
double dgeqrf(double n) {
  return blocked(n);
}

}  // namespace lapack_work

bool singular_values(const Small& a, SmallVector& values) {
  if (!a.allFinite()) return false;
  values.resize(std::min(a.rows(), a.cols()));
  return values.size() == 0 || any_svd(lapack_work::Vectors::none, a, values, nullptr, nullptr);
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
  out.u.resize(m, full ? m : k);
  if (small_svd(a, full, out)) return true;
  Small vt(full ? n : k, n);
  const bool converged = any_svd(full ? lapack_work::Vectors::full : lapack_work::Vectors::thin, a, out.s, &out.u, &vt);
  out.v = vt.transpose();
  return converged;
}

bool cholesky(Small& a) {
  const Index n = a.rows();
  if (n == 0) return true;
  if (!a.allFinite()) return false;
  if (n <= in_cache) {
    Small lower;
    const bool definite = kernels::cholesky_factor(a, lower);
    a.swap(lower);
    return definite;
  }
  if (!done(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', blas_int(n), a.data(), blas_int(n)), "dpotrf")) return false;
  a.triangularView<Eigen::StrictlyUpper>().setZero();
  return true;
}

bool lower_cholesky(const Small& a, Small& lower) {
  if (a.rows() <= in_cache) return kernels::cholesky_factor(a, lower);
  lower = a;
  return cholesky(lower);
}

Small lower_inverse(const Small& lower) {
  Small inverse;
  lower_inverse_into(lower, inverse);
  return inverse;
}

void lower_inverse_into(const Small& lower, Small& inverse) {
  const Index n = lower.rows();
  if (n <= in_cache) {
    kernels::invert_triangle(lower, inverse);
    return;
  }
  inverse = lower;
  must_be_done(LAPACKE_dtrtri(LAPACK_COL_MAJOR, 'L', 'N', blas_int(n), inverse.data(), blas_int(n)), "dtrtri");
}

Small pivoted_cholesky(const Small& a, double tolerance) {
  const Index n = a.rows();
  if (n == 0 || !a.allFinite()) return Small(n, 0);
  Small l = a;
  std::vector<lapack_int> pivots(static_cast<std::size_t>(n));
  lapack_int rank = 0;
  const kernels::OneBlasThread blas;
  // Not done means that pivots of the tolerance came before the end: what the rank says.
  if (done(LAPACKE_dpstrf(LAPACK_COL_MAJOR, 'L', blas_int(n), l.data(), blas_int(n), pivots.data(), &rank, tolerance),
           "dpstrf"))
    rank = blas_int(n);
  l.triangularView<Eigen::StrictlyUpper>().setZero();
  Small out(n, Index(rank));
  for (Index i = 0; i < n; ++i) out.row(Index(pivots[static_cast<std::size_t>(i)]) - 1) = l.row(i).head(rank);
  return out;
}

// By parts on our threads, with one of BLAS's each: rows of b l, then columns of l'(b l) from the diagonal on. Small
// ones on one: BLAS takes a buffer for each thread that calls it, of tens of MiB, and where there is none left it
// hangs.
void congruence(const Small& l, Small& b) {
  constexpr Index together = 64, fewest_for_threads = 400;
  const Index n = b.rows();
  if (n == 0) return;
  const kernels::OneBlasThread blas;
  const double work = 0.5 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  const Index parts = n < fewest_for_threads ? 1 : kernels::parts_for(work);
  const int stride = blas_int(n);
  kernels::run_parts(parts, [&](Index part) {
    const kernels::Range rows = kernels::part_of(n, parts, part);
    if (rows.begin < rows.end)
      cblas_dtrmm(CblasColMajor, CblasRight, CblasLower, CblasNoTrans, CblasNonUnit, blas_int(rows.end - rows.begin),
                  stride, 1, l.data(), stride, b.data() + rows.begin, stride);
  });
  kernels::run_parts((n + together - 1) / together, parts, [&](Index part) {
    const Index first = part * together, cols = std::min(together, n - first);
    cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, blas_int(n - first), blas_int(cols), 1,
                &l(first, first), stride, &b(first, first), stride);
  });
}

Small product_transposed(const Small& a, const Small& b) {
  Small out(a.cols(), b.cols());
  if (out.size() == 0) return out;
  if (a.rows() == 0) return out.setZero();
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, blas_int(a.cols()), blas_int(b.cols()), blas_int(a.rows()), 1,
              a.data(), blas_int(a.rows()), b.data(), blas_int(b.rows()), 0, out.data(), blas_int(out.rows()));
  return out;
}

void add_gram(const Small& a, Small& sum) {
  if (a.size() == 0) return;
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, blas_int(a.cols()), blas_int(a.rows()), 1, a.data(),
              blas_int(a.rows()), 1, sum.data(), blas_int(sum.rows()));
}

Small qr_triangle(Small& a) {
  const Index m = a.rows(), n = a.cols(), k = std::min(m, n);
  Small r = Small::Zero(k, n);
  if (k == 0) return r;
  // LAPACKE refuses NaN and would leave `a` as it is, a triangle of something else.
  if (!a.allFinite()) return r.setConstant(std::numeric_limits<double>::quiet_NaN());
  SmallVector tau(k);
  const kernels::OneBlasThread blas;
  require_fits(lapack_work::dgeqrf(static_cast<double>(n)), m, n, "dgeqrf");
  must_be_done(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, blas_int(m), blas_int(n), a.data(), blas_int(m), tau.data()), "dgeqrf");
  r.triangularView<Eigen::Upper>() = a.topRows(k);
  return r;
}

void require_converged(bool converged, const char* what) {
  if (!converged)
    throw std::runtime_error(text("the ", what,
                                  " did not converge by any of LAPACK's methods, or are out of range; scale the input "
                                  "to order one, and if that does not help report it with the input"));
}

}  // namespace itspace
