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
constexpr Index least_block = 8, least_blocks = 12, probe_cols = 4, first_check = 8;
constexpr double longest_wait = 4;  // blocks between two looks at the residuals

// Half as many columns as pairs: a fifth more blocks than with as many, of half the work each.
Index narrow_block(Index count) {
  return std::max(least_block, (count + 1) / 2);
}
// A block finds no eigenvalue more often than it has columns: as many as pairs, where one may be so often there.
Index wide_block(Index count) {
  return std::max(count, least_block);
}
Index most_cols(Index dim) {
  return dim / 4;
}

// x <- an orthonormal basis of what x has beyond the orthonormal q, where q'x is known. Twice: the second round takes
// out what scaling to length one has brought up from rounding, and drops what was nothing else.
void orthonormalise_beyond(HostSpace<double>& space, const ConstBlockView<double>& q, const Small& inside,
                           Block<double>& x) {
  constexpr double dependent = 1e-12, mostly_rounding = 0.25;
  for (int round = 0; round < 2 && x.cols() > 0; ++round) {
    if (q.cols() > 0) space.multiply(q, round == 0 ? Small(-inside) : Small(-gram(space, q, x)), x, Write::add);
    const Small inner = gram(space, ConstBlockView<double>(x));
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
  Krylov(Index dim, Index count, Index block, const BlockProduct& product)
      : dim_(dim), count_(count), block_(block), product_(product) {}

  std::optional<LeadingPairs> find() {
    Block<double> next = gaussian(dim_, block_, start_stream);
    orthonormalise_beyond(space_, q_.leftCols(0), {}, next);
    Index blocks = 0, check_at = first_check, checked_at = 0;
    double before = 0;
    while (next.cols() > 0 && cols_ + next.cols() <= most_cols(dim_)) {
      if (!append(next)) return std::nullopt;
      ++blocks;
      // All of the Gram matrix is kept, so that nothing rests on its being banded.
      const Index fresh = cols_ - next.cols();
      next = s_.middleCols(fresh, next.cols());
      orthonormalise_beyond(space_, q_.leftCols(cols_), h_.block(0, fresh, cols_, next.cols()), next);
      exhausted_ = next.cols() == 0;
      if ((blocks < check_at && !exhausted_) || cols_ <= count_) continue;
      if (!project()) return std::nullopt;
      if (excess_ <= 1) return nothing_was_missed() ? std::optional(std::move(pairs_)) : std::nullopt;
      // How many blocks are left at the pace so far; Krylov spaces get faster.
      double left = longest_wait;
      if (before > 0) {
        const double pace = std::log(before / excess_) / static_cast<double>(blocks - checked_at);
        const auto room = static_cast<double>((most_cols(dim_) - cols_) / block_);
        left = pace > 0 ? std::log(excess_) / pace : std::numeric_limits<double>::infinity();
        if (left > 2 * room && cols_ > most_cols(dim_) / 2) return std::nullopt;
      }
      before = excess_;
      checked_at = blocks;
      check_at = blocks + static_cast<Index>(std::clamp(0.7 * left, 1.0, longest_wait));
    }
    return std::nullopt;
  }

  // Whether an eigenvalue may be there more often than a block has columns: as many of those found are alike, or all
  // that the start can reach was found.
  bool may_hide_copies() const { return exhausted_ || alike_; }

 private:
  // Takes x into the space, with its product. False where that is not finite, or there is nothing.
  bool append(const Block<double>& x) {
    const Index first = cols_;
    reserve(first + x.cols());
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

  // Most spectra need a part of most_cols. Rows are an odd number of cache lines apart: at a power of two they would
  // all fall on the same few lines of a cache.
  void reserve(Index cols) {
    constexpr Index in_line = 8;
    if (cols <= q_.cols()) return;
    const Index lines = (std::max(cols, std::min(most_cols(dim_), std::max(20 * block_, 2 * cols_))) + 7) / in_line;
    for (Block<double>* held : {&q_, &s_}) {
      Block<double> larger(dim_, in_line * (lines | 1));
      if (cols_ > 0) larger.leftCols(cols_) = held->leftCols(cols_);
      *held = std::move(larger);
    }
    h_.conservativeResize(q_.cols(), q_.cols());
  }

  // The Ritz pairs and how far the worst of them is from its limit, in units of it.
  bool project() {
    const Small h = h_.topLeftCorner(cols_, cols_);
    SmallVector theta;
    Small c;
    if (!few_leading_eigenpairs(h, count_ + 1, theta, c)) return false;
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
    // With a margin: a bunch of eigenvalues that close passes for one eigenvalue.
    for (Index first = 0; first + block_ <= theta.size(); ++first)
      if (theta(first) - theta(first + block_ - 1) <= 1000 * limit) alike_ = true;
    return std::isfinite(excess_);
  }

  bool nothing_was_missed() {
    Block<double> x = gaussian(dim_, probe_cols, probe_stream), image;
    const Block<double> found(pairs_.vectors);
    for (int power = 0; power < 2; ++power) {
      orthonormalise_beyond(space_, found, gram(space_, found, x), x);
      if (x.cols() == 0) return true;
      image = Block<double>(dim_, x.cols());
      product_(x, image);
      if (power == 0) x = scale_ * image;
    }
    SmallVector values;
    if (!symmetric_eigenvalues(scale_ * gram(space_, x, image), values)) return false;
    return values(values.size() - 1) <= scale_ * pairs_.values(count_ - 1) + static_cast<double>(dim_) * eps64 * norm_;
  }

  Index dim_, count_, block_, cols_ = 0;
  const BlockProduct& product_;
  HostSpace<double> space_;
  Block<double> q_, s_;  // the Krylov space and its product
  Small h_;              // q' s
  double scale_ = 1;     // of s
  double norm_ = 0;      // the largest lower bound of ||Sigma|| seen, scaled
  double excess_ = 0;
  bool exhausted_ = false, alike_ = false;
  LeadingPairs pairs_;
};

}  // namespace

bool worth_iterating(Index dim, Index count) {
  return count >= 1 && least_blocks * wide_block(count) <= most_cols(dim);
}

std::optional<LeadingPairs> leading_pairs(Index dim, Index count, const BlockProduct& product) {
  if (!worth_iterating(dim, count)) return std::nullopt;
  if (narrow_block(count) < wide_block(count)) {
    Krylov narrow(dim, count, narrow_block(count), product);
    auto found = narrow.find();
    if (!narrow.may_hide_copies()) return found;
  }
  return Krylov(dim, count, wide_block(count), product).find();
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
