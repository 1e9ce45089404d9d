// SPDX-License-Identifier: Apache-2.0
//
// Eigenpairs of symmetric matrices: small ones by Eigen and by our own loops, large ones by a reduction on our threads,
// and by LAPACK where these are not for them.
#include "kernels/pool.hpp"
#include "kernels/small_eigen.hpp"
#include "kernels/small_products.hpp"
#include "kernels/small_sweeps.hpp"

#include "core/lapack_call.hpp"
#include "core/tridiagonal.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace {
namespace {

// Matrices up to this size are Eigen's own, which is as fast as the call, and has no threads: those of BLAS wait for
// each other in every panel, and on a busy machine for a time slice each.
constexpr Index small_enough = 128;

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

}  // namespace

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

}  // namespace itspace
