// SPDX-License-Identifier: Apache-2.0
#include "core/leading_pairs.hpp"

#include <itspace/random.hpp>
#include <itspace/space.hpp>

#include "core/lapack.hpp"
#include "core/subspace.hpp"
#include "kernels/block_ops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

constexpr double eps64 = std::numeric_limits<double>::epsilon();
constexpr std::uint64_t start_stream = 3, probe_stream = 4;

// Counted, not measured: a block of fewer columns costs nearly as much as one of eight; below twelve blocks of a
// quarter of the dimension few spectra converge.
constexpr Index least_block = 8, least_blocks = 12, probe_cols = 4, first_check = 6;
constexpr double longest_wait = 4;  // blocks between two looks at the residuals

Index block_of(Index count) {
  // As many columns as pairs: a block of fewer finds no eigenvalue more often than it has columns.
  return std::max(count, least_block);
}
Index most_cols(Index dim) {
  return dim / 4;
}

// x <- an orthonormal basis of what x has beyond the orthonormal q. Twice: the second round takes out what scaling to
// length one has brought up from rounding, and drops what was nothing else.
void orthonormalise_beyond(HostSpace<double>& space, const ConstBlockView<double>& q, Block<double>& x) {
  constexpr double dependent = 1e-12, mostly_rounding = 0.25;
  for (int round = 0; round < 2 && x.cols() > 0; ++round) {
    if (q.cols() > 0) space.multiply(q, -gram(space, q, x), x, Write::add);
    const Small inner = gram(space, x, x);
    const Small turn = round == 0 ? orthonormalising_coefficients(inner, dependent, Drop::relative)
                                  : orthonormalising_coefficients(inner, mostly_rounding, Drop::absolute);
    Block<double> turned(x.rows(), turn.cols());
    multiply(space, x, turn, BlockView<double>(turned));
    x = std::move(turned);
  }
}

Block<double> gaussian(Index rows, Index cols, std::uint64_t stream) {
  Block<double> out(rows, cols);
  Random(0, stream).fill_normal<double>(out);
  return out;
}

class Krylov {
 public:
  Krylov(Index dim, Index count, const BlockProduct& product)
      : dim_(dim), count_(count), product_(product), q_(dim, most_cols(dim)), s_(dim, most_cols(dim)) {
    h_.setZero(most_cols(dim), most_cols(dim));
  }

  std::optional<LeadingPairs> find() {
    Block<double> next = gaussian(dim_, block_of(count_), start_stream);
    orthonormalise_beyond(space_, q_.leftCols(0), next);
    Index blocks = 0, check_at = first_check, checked_at = 0;
    double before = 0;
    while (next.cols() > 0 && cols_ + next.cols() <= q_.cols()) {
      if (!append(next)) return std::nullopt;
      ++blocks;
      // All of the Gram matrix is kept, so that nothing rests on its being banded.
      next = s_.middleCols(cols_ - next.cols(), next.cols());
      orthonormalise_beyond(space_, q_.leftCols(cols_), next);
      if ((blocks < check_at && next.cols() > 0) || cols_ <= count_) continue;
      if (!project()) return std::nullopt;
      if (excess_ <= 1) return nothing_was_missed() ? std::optional(std::move(pairs_)) : std::nullopt;
      // How many blocks are left at the pace so far; Krylov spaces get faster.
      double left = longest_wait;
      if (before > 0) {
        const double pace = std::log(before / excess_) / static_cast<double>(blocks - checked_at);
        const auto room = static_cast<double>((q_.cols() - cols_) / block_of(count_));
        left = pace > 0 ? std::log(excess_) / pace : std::numeric_limits<double>::infinity();
        if (left > 2 * room && cols_ > q_.cols() / 2) return std::nullopt;
      }
      before = excess_;
      checked_at = blocks;
      check_at = blocks + static_cast<Index>(std::clamp(0.7 * left, 1.0, longest_wait));
    }
    return std::nullopt;
  }

 private:
  // Takes x into the space, with its product. False where that is not finite, or there is nothing.
  bool append(const Block<double>& x) {
    const Index first = cols_;
    q_.middleCols(first, x.cols()) = x;
    product_(x, s_.middleCols(first, x.cols()));
    cols_ += x.cols();
    auto fresh = s_.middleCols(first, x.cols());
    if (first == 0) {
      // By an exact power of two to order one: squares stay in range.
      const double size = fresh.cwiseAbs().maxCoeff();
      if (!(size > 0) || !std::isfinite(size)) return false;
      scale_ = std::ldexp(1.0, -std::ilogb(size));
      if (!std::isfinite(scale_) || scale_ == 0) return false;
    }
    fresh *= scale_;
    const Small column = gram(space_, q_.leftCols(cols_), fresh);
    h_.block(0, first, cols_, x.cols()) = column;
    h_.block(first, 0, x.cols(), cols_) = column.transpose();
    norm_ = std::max(norm_, space_.column_norms(fresh).maxCoeff());
    return column.allFinite();
  }

  // The Ritz pairs and how far the worst of them is from its limit, in units of it.
  bool project() {
    Small h = h_.topLeftCorner(cols_, cols_);
    SmallVector theta;
    Small c;
    if (!leading_eigenpairs(h, count_ + 1, theta, &c)) return false;
    Block<double> v(dim_, c.cols());
    multiply(space_, q_.leftCols(cols_), c, BlockView<double>(v));
    Block<double> residual = v * (-theta).asDiagonal();
    space_.multiply(s_.leftCols(cols_), c, residual, Write::add);
    const SmallVector lengths = space_.column_norms(residual);
    norm_ = std::max(norm_, std::abs(theta(0)));
    const double limit = static_cast<double>(dim_) * eps64 * norm_;
    excess_ = lengths.head(count_).maxCoeff() / limit;
    // An eigenvalue lies within `lengths` of the next Ritz value: where it may be among the leading ones, it has to
    // converge as well.
    if (theta(count_) + lengths(count_) > theta(count_ - 1)) excess_ = std::max(excess_, lengths(count_) / limit);
    pairs_ = {theta.head(count_) / scale_, v.leftCols(count_)};
    return std::isfinite(excess_);
  }

  bool nothing_was_missed() {
    Block<double> x = gaussian(dim_, probe_cols, probe_stream), image;
    const Block<double> found(pairs_.vectors);
    for (int power = 0; power < 2; ++power) {
      orthonormalise_beyond(space_, found, x);
      if (x.cols() == 0) return true;
      image = Block<double>(dim_, x.cols());
      product_(x, image);
      if (power == 0) x = scale_ * image;
    }
    SmallVector values;
    if (!symmetric_eigenvalues(scale_ * gram(space_, x, image), values)) return false;
    return values(values.size() - 1) <= scale_ * pairs_.values(count_ - 1) + static_cast<double>(dim_) * eps64 * norm_;
  }

  Index dim_, count_, cols_ = 0;
  const BlockProduct& product_;
  HostSpace<double> space_;
  Block<double> q_, s_;  // the Krylov space and its product
  Small h_;              // q' s
  double scale_ = 1;     // of s
  double norm_ = 0;      // the largest lower bound of ||Sigma|| seen, scaled
  double excess_ = 0;
  LeadingPairs pairs_;
};

}  // namespace

bool worth_iterating(Index dim, Index count) {
  return count >= 1 && least_blocks * block_of(count) <= most_cols(dim);
}

std::optional<LeadingPairs> leading_pairs(Index dim, Index count, const BlockProduct& product) {
  if (!worth_iterating(dim, count)) return std::nullopt;
  return Krylov(dim, count, product).find();
}

template <Storage Scalar>
std::optional<LeadingPairs> leading_pairs_of(const ConstBlockView<Scalar>& sigma, Index count) {
  const Index dim = sigma.rows();
  if (!worth_iterating(dim, count)) return std::nullopt;
  return leading_pairs(dim, count, [&](const ConstBlockView<double>& in, BlockView<double> out) {
    kernels::symmetric_gemm<double, Scalar>(sigma, in, out);
  });
}

std::optional<LeadingPart> leading_part_of(const Dense& factor, Index count) {
  constexpr double least_share = 1e-6;
  const bool wide = factor.cols() > factor.rows();
  const Index dim = std::min(factor.rows(), factor.cols());
  // The same memory read by rows is F'.
  const ConstBlockView<double> transposed(factor.data(), factor.cols(), factor.rows(), factor.rows());
  const double one = 1;
  auto found = leading_pairs(dim, count, [&](const ConstBlockView<double>& in, BlockView<double> out) {
    if (wide) {
      kernels::squared_gemm<double>(transposed, nullptr, {&one, false}, in, out);  // F F'in
    } else {
      Block<double> inner(factor.rows(), in.cols());
      kernels::gemm<double>(kernels::Op::transposed, 1, transposed, in, 0, inner);
      kernels::gemm<double>(kernels::Op::plain, 1, transposed, inner, 0, out);
    }
  });
  if (!found || !(found->values(count - 1) >= least_share * found->values(0))) return std::nullopt;
  // F'F v = lambda v: F v is the column of length lambda^(1/2).
  Dense part = wide ? Dense(found->vectors * found->values.cwiseSqrt().asDiagonal()) : Dense(factor * found->vectors);
  return LeadingPart{std::move(found->values), std::move(part)};
}

template std::optional<LeadingPairs> leading_pairs_of<float>(const ConstBlockView<float>&, Index);
template std::optional<LeadingPairs> leading_pairs_of<double>(const ConstBlockView<double>&, Index);

}  // namespace itspace
