// SPDX-License-Identifier: Apache-2.0
#include "baselines/dense_algebra.hpp"

#include "core/lapack.hpp"
#include "core/require.hpp"

#include <itspace/covariance.hpp>

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace::baselines {
namespace {

int leading(const Small& a) {
  return blas_int(std::max<Index>(1, a.rows()));
}

CBLAS_TRANSPOSE cblas_op(Op op) {
  return op == Op::plain ? CblasNoTrans : CblasTrans;
}

void require_success(lapack_int info, const char* routine, Index n) {
  if (info != 0)
    throw std::runtime_error(text("LAPACK's ", routine, " failed on a ", n, " x ", n, " matrix (info = ", info,
                                  "); look for values that overflow, or scale the data"));
}

// Visits (i, j), i >= j, in tiles whose mirror images stay in cache too.
template <class Visit>
void for_lower_tiles(Index n, Visit visit) {
  constexpr Index tile = 32;
  for (Index column = 0; column < n; column += tile)
    for (Index row = column; row < n; row += tile)
      for (Index j = column; j < std::min(n, column + tile); ++j)
        for (Index i = std::max(row, j); i < std::min(n, row + tile); ++i) visit(i, j);
}

void mirror_lower(Small& a) {
  for_lower_tiles(a.rows(), [&](Index i, Index j) { a(j, i) = a(i, j); });
}

}  // namespace

Small product(const Small& a, const Small& b, Op op_a, Op op_b) {
  const Index m = op_a == Op::plain ? a.rows() : a.cols(), k = op_a == Op::plain ? a.cols() : a.rows();
  const Index n = op_b == Op::plain ? b.cols() : b.rows();
  Small c(m, n);
  cblas_dgemm(CblasColMajor, cblas_op(op_a), cblas_op(op_b), blas_int(m), blas_int(n), blas_int(k), 1.0, a.data(),
              leading(a), b.data(), leading(b), 0.0, c.data(), leading(c));
  return c;
}

Small weighted_square(const Small& w, const SmallVector& weights) {
  // dsyrk knows one sign at a time: columns of negative weight first, then the others.
  const Index negative = (weights.array() < 0).count();
  Small scaled(w.rows(), w.cols());
  Index next_negative = 0, next_other = negative;
  for (Index j = 0; j < w.cols(); ++j)
    scaled.col(weights(j) < 0 ? next_negative++ : next_other++) = std::sqrt(std::abs(weights(j))) * w.col(j);
  Small out = Small::Zero(w.rows(), w.rows());
  const auto add = [&](double sign, Index first, Index count) {
    if (count == 0) return;
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, blas_int(w.rows()), blas_int(count), sign,
                scaled.data() + first * w.rows(), leading(scaled), 1.0, out.data(), leading(out));
  };
  add(-1.0, 0, negative);
  add(1.0, negative, w.cols() - negative);
  mirror_lower(out);
  return out;
}

Small congruence(const Small& r, const Small& x) {
  Small out = product(r, product(x, r), Op::transposed);
  mirror_lower(out);
  return out;
}

Small plus_transpose(const Small& a) {
  Small out(a.rows(), a.cols());
  for_lower_tiles(a.rows(), [&](Index i, Index j) { out(i, j) = out(j, i) = a(i, j) + a(j, i); });
  return out;
}

SymmetricEigen::SymmetricEigen(Small a)
    : reduced_(std::move(a)),
      diagonal_(reduced_.rows()),
      off_diagonal_(std::max<Index>(1, reduced_.rows() - 1)),
      reflectors_(std::max<Index>(1, reduced_.rows() - 1)) {
  const Index n = reduced_.rows();
  require_success(LAPACKE_dsytrd(LAPACK_COL_MAJOR, 'L', blas_int(n), reduced_.data(), leading(reduced_),
                                 diagonal_.data(), off_diagonal_.data(), reflectors_.data()),
                  "dsytrd", n);
  values_ = diagonal_;
  SmallVector off_diagonal = off_diagonal_;
  require_success(LAPACKE_dsterf(blas_int(n), values_.data(), off_diagonal.data()), "dsterf", n);
}

Small SymmetricEigen::vectors() const {
  const Index n = reduced_.rows();
  SmallVector diagonal = diagonal_, off_diagonal = off_diagonal_;
  Small vectors(n, n);
  require_success(LAPACKE_dstedc(LAPACK_COL_MAJOR, 'I', blas_int(n), diagonal.data(), off_diagonal.data(),
                                 vectors.data(), leading(vectors)),
                  "dstedc", n);
  require_success(LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', blas_int(n), blas_int(n), reduced_.data(),
                                 leading(reduced_), reflectors_.data(), vectors.data(), leading(vectors)),
                  "dormtr", n);
  return vectors;
}

Index pivoted_basis(Eigen::Ref<Small> x, double drop) {
  const Index width = std::min(x.rows(), x.cols());
  std::vector<lapack_int> pivots(static_cast<std::size_t>(x.cols()), 0);
  SmallVector tau(width);
  require_success(LAPACKE_dgeqp3(LAPACK_COL_MAJOR, blas_int(x.rows()), blas_int(x.cols()), x.data(),
                                 blas_int(x.outerStride()), pivots.data(), tau.data()),
                  "dgeqp3", x.rows());
  Index rank = 0;
  while (rank < width && std::abs(x(rank, rank)) > drop) ++rank;
  if (rank > 0)
    require_success(LAPACKE_dorgqr(LAPACK_COL_MAJOR, blas_int(x.rows()), blas_int(rank), blas_int(rank), x.data(),
                                   blas_int(x.outerStride()), tau.data()),
                    "dorgqr", x.rows());
  return rank;
}

double positive_definite_shift(const SmallVector& ascending_values) {
  const double smallest = ascending_values(0), largest = ascending_values(ascending_values.size() - 1);
  const double rounding =
      double(ascending_values.size()) * Eigen::NumTraits<double>::epsilon() * std::max(0.0, largest);
  return smallest > rounding ? 0.0 : std::max(0.0, -smallest) + 1e-8;
}

Small positive_definite(Small x) {
  // lambda_min > d eps lambda_max implies that x - d eps max_i x_ii I has a Cholesky factor.
  Small trial = x;
  trial.diagonal().array() -=
      double(x.rows()) * Eigen::NumTraits<double>::epsilon() * std::max(0.0, x.diagonal().maxCoeff());
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', blas_int(x.rows()), trial.data(), leading(trial)) == 0) return x;
  x.diagonal().array() += positive_definite_shift(SymmetricEigen(x).values());
  return x;
}

void check_symmetric(const ConstBlockView<double>& matrix, Index dim, const char* what) {
  require(matrix.rows() == dim && matrix.cols() == dim && dim >= 1, what, " is ", matrix.rows(), " x ", matrix.cols(),
          "; it must be ", dim, " x ", dim, ", and not empty");
  itspace::check_symmetric<double>(matrix, Eigen::NumTraits<double>::epsilon(), what);
}

}  // namespace itspace::baselines
