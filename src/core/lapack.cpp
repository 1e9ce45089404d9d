// SPDX-License-Identifier: Apache-2.0
#include "core/lapack.hpp"

#include "kernels/pool.hpp"
#include "kernels/small_eigen.hpp"
#include "kernels/small_products.hpp"
#include "kernels/small_svd.hpp"
#include "kernels/small_sweeps.hpp"
#include "kernels/small_triangles.hpp"

#include "core/require.hpp"
#include "core/tridiagonal.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <limits>
#include <new>
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

bool fits(double work) {
  return work <= static_cast<double>(blas_limit());
}

void require_fits(double work, Index rows, Index cols, const char* routine) {
  require(fits(work), "a ", rows, " x ", cols, " matrix is too large for LAPACK's ", routine,
          ": its work array would have ", work, " values, and LAPACK counts to ", blas_limit(),
          ". Reduce the dimension first, for example by a projection; align needs no decomposition of that size");
}

// Whether LAPACK reached its end. A positive info is an outcome, for the caller to judge; want of memory is not, nor is
// an argument that LAPACK calls wrong.
[[nodiscard]] bool done(lapack_int info, const char* routine) {
  if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR) throw std::bad_alloc();
  if (info < 0) throw std::logic_error(text("LAPACK's ", routine, " refused its argument ", -info));
  return info == 0;
}

// The same for a routine that has no other outcome.
void must_be_done(lapack_int info, const char* routine) {
  if (!done(info, routine)) throw std::logic_error(text("LAPACK's ", routine, " ended with ", info));
}

// Matrices up to this size are Eigen's own, which is as fast as the call, and has no threads: those of BLAS wait for
// each other in every panel, and on a busy machine for a time slice each.
constexpr Index small_enough = 128;

// Cholesky factors and inverses of triangles up to this size are our own, which have our threads.
constexpr Index in_cache = 2048;

// BLAS's threads wait for each other, each time by giving the processor away: on a busy machine a wait may take a time
// slice. LAPACK's reductions make a product with a vector for each column, and wait after each, so that a second turns
// into minutes. They have one thread of BLAS (kernels::OneBlasThread), whatever their size; tridiagonal.hpp has ours.
// Factorisations and inverses of large triangles, which wait once for each panel, keep all of them.

// Whether our own loops are for a matrix with this largest entry: they multiply squares of lengths with each other.
// LAPACK scales what is larger or smaller.
bool has_fourth_powers(double size) {
  constexpr double largest = 1e70, smallest = 1e-70;
  return size > smallest && size < largest;
}

bool small_eigenpairs(const Small& a, SmallVector& values, Small* vectors) {
  const Eigen::SelfAdjointEigenSolver<Small> solver(a, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return false;
  values = solver.eigenvalues();
  if (!vectors) return true;
  // V <- V (3 I - V'V)/2: orthonormal to the last digits, which the iteration alone does not leave.
  const Small& v = solver.eigenvectors();
  Small half = -0.5 * kernels::transposed_times(v, v);
  half.diagonal().array() += 1.5;
  *vectors = kernels::times(v, half);
  values = vectors->cwiseProduct(kernels::times(a.selfadjointView<Eigen::Lower>(), *vectors)).colwise().sum();
  std::sort(values.begin(), values.end());  // by no more than rounding
  return true;
}

// Ascending eigenvalues `from` to `to`, counted from 1, and vectors where `vectors` has room for them, by a reduction
// on our threads. False where that is not worth it or did not converge; `a` is then anything.
bool own_eigenpairs(Small& a, Index from, Index to, SmallVector& values, Small* vectors) {
  const Index n = a.rows(), count = to - from + 1;
  const double size = static_cast<double>(n);
  if (!is_worth_own_reduction(n) || !has_fourth_powers(kernels::largest_entry(a))) return false;
  if (vectors && !fits(size * size + 18 * size)) return false;
  Tridiagonal t;
  make_tridiagonal(a, t);
  const kernels::OneBlasThread blas;
  SmallVector all = t.diagonal;
  if (!vectors) {
    if (!done(LAPACKE_dsterf(blas_int(n), all.data(), t.below.data()), "dsterf")) return false;
    values = all.segment(from - 1, count);
    return true;
  }
  t.below.conservativeResize(n);  // dstemr works there
  if (count == n) {
    if (!done(LAPACKE_dstedc(LAPACK_COL_MAJOR, 'I', blas_int(n), all.data(), t.below.data(), vectors->data(),
                             blas_int(n)),
              "dstedc"))
      return false;
  } else {
    std::vector<lapack_int> support(static_cast<std::size_t>(2 * count));
    lapack_int got = 0;
    lapack_logical accurate = 1;
    if (!done(LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', blas_int(n), t.diagonal.data(), t.below.data(), 0, 0,
                             blas_int(from), blas_int(to), &got, all.data(), vectors->data(), blas_int(n),
                             blas_int(count), support.data(), &accurate),
              "dstemr") ||
        got != blas_int(count))
      return false;
  }
  values = all.head(count);
  apply_reflectors(a, t.tau, *vectors);
  return true;
}

// All eigenpairs, ascending, in place: by our own reduction, else divide and conquer, then the slower QR iteration
// where that gives up, or where its work array is too long. `restore` brings `a` back to what it was.
template <class Restore>
bool all_eigenpairs(char job, Small& a, SmallVector& values, Restore restore) {
  const double size = static_cast<double>(a.rows());
  const lapack_int n = blas_int(a.rows());
  values.resize(a.rows());
  Small vectors(job == 'V' ? a.rows() : 0, job == 'V' ? a.rows() : 0);
  if (own_eigenpairs(a, 1, a.rows(), values, job == 'V' ? &vectors : nullptr)) {
    if (job == 'V') a.swap(vectors);
    return true;
  }
  vectors.resize(0, 0);
  restore();
  const kernels::OneBlasThread blas;
  if (fits(lapack_work::dsyevd(size, job == 'V'))) {
    if (done(LAPACKE_dsyevd(LAPACK_COL_MAJOR, job, 'L', n, a.data(), n, values.data()), "dsyevd")) return true;
    restore();
  }
  require_fits(lapack_work::dsyev(size), a.rows(), a.cols(), "dsyev");
  return done(LAPACKE_dsyev(LAPACK_COL_MAJOR, job, 'L', n, a.data(), n, values.data()), "dsyev");
}

// Ascending eigenvalues `from` to `to`, counted from 1, with vectors where `vectors` has room for them. dsyevr gives up
// on some clusters (an identity that was rounded is one); then all are made and these are taken. `a` is overwritten.
bool some_eigenpairs(Small& a, Index from, Index to, SmallVector& values, Small* vectors) {
  const Index n = a.rows(), count = to - from + 1;
  // LAPACK destroys the lower triangle and the diagonal, and leaves the mirrored upper one alone: a copy for nothing.
  a.triangularView<Eigen::StrictlyUpper>() = a.transpose();
  const SmallVector diagonal = a.diagonal();
  const auto restore = [&] {
    a.triangularView<Eigen::StrictlyLower>() = a.transpose();
    a.diagonal() = diagonal;
  };
  if (own_eigenpairs(a, from, to, values, vectors)) return true;
  restore();
  SmallVector ascending(n);
  double unused = 0;
  const kernels::OneBlasThread blas;
  require_fits(lapack_work::dsyevr(static_cast<double>(n)), n, n, "dsyevr");
  std::vector<lapack_int> support(static_cast<std::size_t>(2 * count));
  lapack_int got = 0;
  const lapack_int info =
      LAPACKE_dsyevr(LAPACK_COL_MAJOR, vectors ? 'V' : 'N', count == n ? 'A' : 'I', 'L', blas_int(n), a.data(),
                     blas_int(n), 0, 0, blas_int(from), blas_int(to), 0, &got, ascending.data(),
                     vectors ? vectors->data() : &unused, vectors ? blas_int(n) : 1, support.data());
  if (done(info, "dsyevr") && got == blas_int(count)) {
    values = ascending.head(count);
    return true;
  }
  restore();
  if (!all_eigenpairs(vectors ? 'V' : 'N', a, ascending, restore)) return false;
  values = ascending.segment(from - 1, count);
  if (vectors) *vectors = a.middleCols(from - 1, count);
  return true;
}

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

bool symmetric_eigen(const Small& a, SmallVector& values, Small& vectors) {
  if (!a.allFinite()) return false;
  values.resize(a.rows());
  if (a.rows() > 0 && a.rows() <= small_enough && small_eigenpairs(a, values, &vectors)) return true;
  vectors = a;
  if (a.rows() == 0) return true;
  return all_eigenpairs('V', vectors, values, [&] { vectors = a; });
}

bool symmetric_eigenvalues(const Small& a, SmallVector& values) {
  if (!a.allFinite()) return false;
  values.resize(a.rows());
  if (a.rows() == 0) return true;
  if (a.rows() <= small_enough && small_eigenpairs(a, values, nullptr)) return true;
  Small copy = a;
  return all_eigenpairs('N', copy, values, [&] { copy = a; });
}

bool leading_eigenpairs(Small& a, Index count, SmallVector& values, Small* vectors) {
  const Index n = a.rows();
  count = std::min(count, n);
  values.resize(count);
  if (vectors) vectors->resize(n, count);
  if (count == 0) return true;
  if (!a.allFinite() || !some_eigenpairs(a, n - count + 1, n, values, vectors)) return false;
  values.reverseInPlace();
  if (vectors) vectors->rowwise().reverseInPlace();
  return true;
}

bool few_leading_eigenpairs(const Small& a, Index count, SmallVector& values, Small& vectors) {
  constexpr Index most = 768;
  const Index n = a.rows();
  count = std::min(count, n);
  const double size = kernels::largest_entry(a);
  if (!std::isfinite(size)) return false;
  if (count > 0 && n <= most && has_fourth_powers(size)) {
    values.resize(count);
    vectors.resize(n, count);
    if (kernels::leading_pairs(n, count, a.data(), values.data(), vectors.data())) return true;
  }
  SmallVector ascending;
  Small all;
  if (!symmetric_eigen(a, ascending, all)) return false;
  values = ascending.tail(count).reverse();
  vectors = all.rightCols(count).rowwise().reverse();
  return true;
}

bool smallest_eigenvalue(Small& a, double& value) {
  SmallVector values;
  if (!a.allFinite() || a.rows() == 0 || !some_eigenpairs(a, 1, 1, values, nullptr)) return false;
  value = values(0);
  return true;
}

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
