// SPDX-License-Identifier: Apache-2.0
#include "baselines/partial_eigen.hpp"

#include "baselines/dense_algebra.hpp"
#include "baselines/dense_methods.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"

#include <itspace/random.hpp>
#include <itspace/targets.hpp>

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>

namespace itspace::baselines {
namespace {

// Four columns cost hardly more than one, since the matrix is what has to be read, and separate close eigenvalues.
constexpr Index block_cols = 4;
constexpr double tolerance = 1e-8;
constexpr Index confirming_products = 3;
// Where the spectrum separates so badly that this many products do not do, LAPACK's reduction is no slower.
Index most_products(Index count) {
  return std::max<Index>(150, 3 * count);
}
// Fewer dimensions than this, or a rank that is no small share of them, and LAPACK wins.
constexpr Index fewest_dimensions = 256, fewest_dimensions_per_rank = 6;

using Columns = Eigen::Ref<const Small>;

// c = alpha op(a) b + beta c
void gemm(CBLAS_TRANSPOSE op_a, double alpha, const Columns& a, const Columns& b, double beta, ColumnsRef c) {
  if (c.size() == 0) return;
  const Index k = b.rows();
  cblas_dgemm(CblasColMajor, op_a, CblasNoTrans, blas_int(c.rows()), blas_int(c.cols()), blas_int(k), alpha, a.data(),
              blas_int(std::max<Index>(1, a.outerStride())), b.data(), blas_int(std::max<Index>(1, b.outerStride())),
              beta, c.data(), blas_int(std::max<Index>(1, c.outerStride())));
}

// The growing basis S with AS and S'AS.
class KrylovBasis {
 public:
  KrylovBasis(const SymmetricOperator& apply, Index dim, Index most_cols)
      : apply_(apply), s_(dim, most_cols), as_(dim, most_cols), h_(Small::Zero(most_cols, most_cols)) {}

  Index cols() const { return cols_; }
  Index products() const { return products_; }
  auto last_products() const { return as_.middleCols(cols_ - last_added_, last_added_); }
  double rounding() const { return 1e-13 * scale_; }  // of a product

  // Appends what x adds to the basis, and its product; false where what it adds is not longer than `drop`.
  bool append(Small x, double drop) {
    Index added = x.cols();
    for (int round = 0; round < 2 && added > 0; ++round) {  // once is not enough where x is nearly in the basis
      ColumnsRef rest = x.leftCols(added);
      Small coefficients(cols_, added);
      gemm(CblasTrans, 1.0, s_.leftCols(cols_), rest, 0.0, coefficients);
      gemm(CblasNoTrans, -1.0, s_.leftCols(cols_), coefficients, 1.0, rest);
      added = pivoted_basis(rest, round == 0 ? drop : 0.5);
    }
    added = std::min(added, s_.cols() - cols_);
    if (added == 0) return false;
    s_.middleCols(cols_, added) = x.leftCols(added);
    apply_(s_.middleCols(cols_, added), as_.middleCols(cols_, added));
    ++products_;
    const Index all = cols_ + added;
    gemm(CblasTrans, 1.0, s_.leftCols(all), as_.middleCols(cols_, added), 0.0, h_.block(0, cols_, all, added));
    h_.block(cols_, 0, added, cols_) = h_.block(0, cols_, cols_, added).transpose();
    cols_ = all;
    last_added_ = added;
    scale_ = std::max(scale_, h_.topLeftCorner(all, all).diagonal().cwiseAbs().maxCoeff());
    return true;
  }

  struct Ritz {
    SmallVector values;
    Small vectors, residuals;
    double worst = 0;  // the largest residual of the first `wanted`, relative
  };
  // The leading `count` Ritz pairs and their residuals.
  Ritz ritz(Index count, Index wanted) {
    Small h = h_.topLeftCorner(cols_, cols_), turn;
    Ritz out;
    if (!leading_eigenpairs(h, count, out.values, &turn))
      throw std::runtime_error(text("LAPACK's dsyevr failed on a projected matrix of ", cols_, " dimensions"));
    out.vectors.resize(s_.rows(), turn.cols());
    out.residuals.resize(s_.rows(), turn.cols());
    gemm(CblasNoTrans, 1.0, s_.leftCols(cols_), turn, 0.0, out.vectors);
    gemm(CblasNoTrans, 1.0, as_.leftCols(cols_), turn, 0.0, out.residuals);
    scale_ = std::max(scale_, out.values.cwiseAbs().maxCoeff());
    out.residuals -= out.vectors * out.values.asDiagonal();
    const double longest = out.residuals.leftCols(std::min(wanted, out.residuals.cols())).colwise().norm().maxCoeff();
    out.worst = scale_ > 0 ? longest / scale_ : 0;
    return out;
  }

  // Keeps these Ritz vectors only; their products follow from the residuals.
  void restart(const Ritz& kept) {
    cols_ = kept.values.size();
    s_.leftCols(cols_) = kept.vectors;
    as_.leftCols(cols_) = kept.residuals + kept.vectors * kept.values.asDiagonal();
    h_.setZero();
    h_.diagonal().head(cols_) = kept.values;
  }

 private:
  const SymmetricOperator& apply_;
  Small s_, as_, h_;
  Index cols_ = 0, products_ = 0, last_added_ = 0;
  double scale_ = 0;  // a lower bound of ||A||
};

bool pays(Index dim, Index count) {
  return dim >= fewest_dimensions && dim >= fewest_dimensions_per_rank * count;
}

}  // namespace

LeadingPairs leading_pairs_by_krylov(const SymmetricOperator& apply, Index dim, Index count) {
  require(pays(dim, count), "the iteration needs ", fewest_dimensions_per_rank,
          " dimensions per eigenpair and at least ", fewest_dimensions, "; there are ", dim, " for ", count);
  // Full at four times the rank, restarted with half of it.
  const Index most_cols = std::max<Index>(96, 4 * count), look_every = std::max<Index>(16, count);
  KrylovBasis basis(apply, dim, most_cols + confirming_products * block_cols);
  std::uint64_t blocks_drawn = 0;
  const auto append_random = [&] {
    Block<double> random(dim, block_cols);
    Random(blocks_drawn++, 5).fill_normal<double>(random);
    return basis.append(random, 1e-8 * random.norm());
  };
  const auto grow_to = [&](Index cols) {
    // An invariant subspace shows nothing of the others; a random block does.
    while (basis.cols() < cols && basis.products() < most_products(count))
      if (!basis.append(basis.last_products(), basis.rounding()) && !append_random()) return;
  };

  LeadingPairs out;
  append_random();
  Index next_look = 3 * look_every;
  for (;;) {
    grow_to(std::min(next_look, most_cols));
    const bool full = basis.cols() >= most_cols;
    KrylovBasis::Ritz ritz = basis.ritz(full ? most_cols / 2 : count, count);
    if (ritz.worst <= tolerance) {
      // A residual cannot tell a leading pair from a lesser one, and one starting block may miss copies of a multiple
      // eigenvalue. A fresh random block brings them in: the leading pairs are then others, and not converged yet.
      append_random();
      grow_to(basis.cols() + (confirming_products - 1) * block_cols);
      const KrylovBasis::Ritz again = basis.ritz(count, count);
      if (again.worst <= tolerance) {
        out = {again.values, again.vectors, basis.products(), again.worst, true};
        return out;
      }
      ritz = basis.ritz(most_cols / 2, count);
      basis.restart(ritz);
      basis.append(ritz.residuals.rightCols(block_cols), basis.rounding());
    } else if (full) {
      basis.restart(ritz);  // all residuals lie in the few directions of the last block
      basis.append(ritz.residuals.rightCols(block_cols), basis.rounding());
    }
    if (basis.products() >= most_products(count)) {
      out.products = basis.products();
      out.residual = ritz.worst;
      return out;
    }
    next_look = basis.cols() + look_every;
  }
}

LeadingPairs leading_pairs(const Small& a, Index count, Index& passes) {
  const Index d = a.rows();
  if (pays(d, count)) {
    // The library's own product, which knows the fastest orientation.
    const DenseTarget<double> target(borrow(a.data(), d, d, d));
    Block<double> rows, products;
    LeadingPairs pairs = leading_pairs_by_krylov(
        [&](const Columns& in, ColumnsRef out) {
          rows = in;
          products.resize(d, in.cols());
          target.apply(rows, products);
          out = products;
        },
        d, count);
    passes += pairs.products;
    if (pairs.converged) return pairs;
  }
  LeadingPairs pairs;
  Small overwritten = a;
  if (!leading_eigenpairs(overwritten, count, pairs.values, &pairs.vectors))
    throw std::runtime_error(text("LAPACK's dsyevr failed on a ", d, " x ", d, " matrix; look for values not finite"));
  pairs.converged = true;
  passes += d;
  return pairs;
}

LeadingPairs leading_pairs_of_product(const Small& w, const SmallVector& weights, Index count, Index& passes) {
  const Index d = w.rows();
  if (pays(d, count)) {
    const Eigen::Map<const RowMajorMatrix<double>> transposed(w.data(), w.cols(), d);  // w' by rows is w by columns
    Block<double> rows, inner, products;
    LeadingPairs pairs = leading_pairs_by_krylov(
        [&](const Columns& in, ColumnsRef out) {
          rows = in;
          inner.resize(w.cols(), in.cols());
          products.resize(d, in.cols());
          kernels::gemm<double>(kernels::Op::plain, 1.0, transposed, rows, 0.0, inner);
          inner = weights.asDiagonal() * inner;
          kernels::gemm<double>(kernels::Op::transposed, 1.0, transposed, inner, 0.0, products);
          out = products;
        },
        d, count);
    passes += 2 * pairs.products;
    if (pairs.converged) return pairs;
  }
  passes += 1;
  return leading_pairs(weighted_square(w, weights), count, passes);
}

Block<double> factor_of(const LeadingPairs& pairs) {
  const SmallVector roots = pairs.values.cwiseMax(0.0).cwiseSqrt();
  return pairs.vectors * roots.asDiagonal();
}

Block<double> leading_factor(const Small& x, Index rank, Index& passes) {
  require(x.rows() == x.cols(), "the matrix is ", x.rows(), " x ", x.cols(), "; it must be square");
  require(rank >= 1 && rank <= x.rows(), "the rank is ", rank, "; it must be from 1 to the dimension, ", x.rows());
  return factor_of(leading_pairs(x, rank, passes));
}

}  // namespace itspace::baselines
