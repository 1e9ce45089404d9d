// SPDX-License-Identifier: Apache-2.0
#include "core/leading_pairs.hpp"

#include <itspace/random.hpp>
#include <itspace/space.hpp>

#include "core/lapack.hpp"
#include "core/rounding.hpp"
#include "core/subspace.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/scratch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace itspace {
namespace {

constexpr std::uint64_t start_stream = 3, probe_stream = 4;

// A block of fewer columns costs nearly as much as one of eight; below twelve blocks of a quarter of the dimension few
// spectra converge.
constexpr Index least_block = 8, least_blocks = 12, probe_cols = 4, first_look = 8;
// Blocks between two looks, which cost more the larger the space is.
double longest_wait(Index blocks) {
  return std::max(6.0, 0.25 * static_cast<double>(blocks));
}

// Half as many columns as pairs: a fifth more blocks than with as many, of half the work each.
Index narrow_block(Index count) {
  return std::max(least_block, (count + 1) / 2);
}
// A block finds no eigenvalue more often than it has columns: as many as pairs, where one may be so often there.
Index wide_block(Index count) {
  return std::max(count, least_block);
}
// Spectra without a fall, such as noise has, need a little more than a quarter of the dimension.
Index most_cols(Index dim) {
  return dim / 3;
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

// Independent entries of any sign; whether they are normal does not matter, and uniform ones are made in a tenth of the
// time.
Block<double> scattered(Index rows, Index cols, std::uint64_t stream) {
  Block<double> out(rows, cols);
  const Random random(0, stream);
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = 2 * random.uniform(static_cast<std::uint64_t>(i)) - 1;
  return out;
}

// For an x with orthonormal columns but for what `all` = [q, x]'x shows, q orthonormal: the coefficients on [q, x] of
// an orthonormal basis of x beyond q, and what takes the basis back to that, x = q c + basis `back`. `least`: a lower
// bound of the squared share of a column of length one that is neither q's nor the other columns'.
struct Beyond {
  Small turn, back;
  double least = 0;
};
bool beyond(const Small& all, Beyond& out) {
  const Index cols = all.cols(), inside = all.rows() - cols;
  const Small c = all.topRows(inside);
  Small left = all.bottomRows(cols);
  const SmallVector lengths = left.diagonal().cwiseMax(0.0).cwiseSqrt();
  if (!(lengths.minCoeff() > 0) || !all.allFinite()) return false;
  const SmallVector scale = lengths.cwiseInverse();
  left -= c.transpose() * c;
  left = scale.asDiagonal() * left * scale.asDiagonal();
  Small lower;
  if (!lower_cholesky(left, lower)) return false;
  const Small inverse = lower_inverse(lower);
  out.least = 1 / inverse.squaredNorm();
  out.turn.resize(all.rows(), cols);
  out.turn.bottomRows(cols) = scale.asDiagonal() * inverse.transpose();
  out.turn.topRows(inside) = -c * out.turn.bottomRows(cols);
  out.back = lower.transpose() * lengths.asDiagonal();
  return std::isfinite(out.least);
}

class Krylov {
 public:
  Krylov(Index dim, Index count, Index block, const BlockProduct& product)
      : dim_(dim), count_(count), block_(block), product_(product) {}

  std::optional<LeadingPairs> find() {
    Block<double> start = scattered(dim_, block_, start_stream);
    orthonormalise_beyond(space_, start.leftCols(0), {}, start);
    put_next(start);
    Index blocks = 0, look_at = first_look, looked_at = 0;
    double before = 0;
    while (next_ > 0 && cols_ + next_ <= most_cols(dim_)) {
      if (!extend()) return std::nullopt;
      ++blocks;
      exhausted_ = next_ == 0;
      if ((blocks < look_at && !exhausted_) || cols_ <= count_) continue;
      if (!look()) return std::nullopt;
      if (excess_ <= 1) {
        if (!measure()) return std::nullopt;
        if (excess_ <= 1) return nothing_was_missed() ? std::optional(found()) : std::nullopt;
      }
      // How many blocks are left at the pace so far; Krylov spaces get faster.
      double left = longest_wait(blocks);
      if (before > 0) {
        const double pace = std::log(before / excess_) / static_cast<double>(blocks - looked_at);
        const auto room = static_cast<double>((most_cols(dim_) - cols_) / block_);
        left = pace > 0 ? std::log(excess_) / pace : std::numeric_limits<double>::infinity();
        if (left > 2 * room && cols_ > most_cols(dim_) / 2) return std::nullopt;
      }
      before = excess_;
      looked_at = blocks;
      look_at = blocks + static_cast<Index>(std::clamp(0.7 * left, 1.0, longest_wait(blocks)));
    }
    return std::nullopt;
  }

  // Whether an eigenvalue may be there more often than a block has columns: as many of those found are alike, or all
  // that the start can reach was found.
  bool may_hide_copies() const { return exhausted_ || alike_; }

 private:
  // The Krylov space, with the next block after it, and its product: columns [first, first + count).
  BlockView<double> q(Index first, Index count) { return {held_ + first, dim_, count, room_}; }
  BlockView<double> s(Index first, Index count) { return {held_ + dim_ * room_ + first, dim_, count, room_}; }

  // x as the next block.
  void put_next(const Block<double>& x) {
    reserve(cols_ + x.cols());
    next_ = x.cols();
    q(cols_, next_) = x;
  }

  // Takes the next block into the space, with its product, and makes the one after it: what of the product is beyond
  // the space. False where that is not finite, or there is nothing.
  bool extend() {
    const Index first = cols_, width = next_;
    reserve(first + 2 * width);
    BlockView<double> fresh = s(first, width);
    product_(q(first, width), fresh);
    cols_ += width;
    if (first == 0 && !choose_scale(fresh)) return false;
    if (scale_ != 1) fresh *= scale_;
    // In exact arithmetic the product is made of the space's last two blocks and the next. Once these two are taken
    // off, what lies along the space is rounding, and is taken off by a second round, which is over all of the space:
    // nothing rests on the projected matrix being banded.
    const Index local = std::max<Index>(0, first - last_);
    Small inside, own;
    const GramRequest<ConstBlockView<double>> requests[] = {{q(local, cols_ - local), fresh, inside}, {fresh, own}};
    space_.grams(requests);
    if (!inside.allFinite() || !own.allFinite()) return false;
    norm_ = std::max(norm_, std::sqrt(own.diagonal().maxCoeff()));
    h_.block(0, first, local, width).setZero();
    h_.block(local, first, cols_ - local, width) = inside;
    BlockView<double> x = q(cols_, width);
    space_.copy(fresh, x);
    space_.multiply(q(local, cols_ - local), -inside, x, Write::add);
    if (!orthonormalise_next(width)) {
      const Small whole = gram(space_, q(0, cols_), fresh);
      Block<double> careful = fresh;
      orthonormalise_beyond(space_, q(0, cols_), whole, careful);
      put_next(careful);
      h_.block(0, first, cols_, width) = whole;
      back_ = gram(space_, q(cols_, next_), s(first, width));
    }
    h_.block(first, 0, width, first) = h_.block(0, first, first, width).transpose();
    const Small between = h_.block(first, first, width, width);
    h_.block(first, first, width, width) = 0.5 * (between + between.transpose());
    last_ = width;
    return true;
  }

  // The columns after the space, to an orthonormal basis of what they are beyond it. False where some are close to
  // being of it, or of the others.
  bool orthonormalise_next(Index width) {
    constexpr double least = 1e-8;
    const double well_apart = 0.05 / static_cast<double>(width);
    const BlockView<double> x = q(cols_, width);
    const Index first = cols_ - width;
    Beyond made;
    for (int round = 0; round < 2; ++round) {
      const Small all = gram(space_, q(0, cols_ + width), x);
      if (!beyond(all, made) || !(made.least > least)) return false;
      space_.multiply(q(0, cols_ + width), made.turn, x, Write::assign);
      if (round == 0) {
        h_.block(0, first, cols_, width) += all.topRows(cols_);
        back_ = made.back;
      } else {
        back_ = made.back * back_;
      }
      if (made.least > well_apart) break;
    }
    next_ = width;
    return true;
  }

  // To order one by an exact power of two, where squares might not stay in range.
  bool choose_scale(const BlockView<double>& fresh) {
    constexpr int in_range = 200;
    const double size = fresh.cwiseAbs().maxCoeff();
    if (!(size > 0) || !std::isfinite(size)) return false;
    if (std::abs(std::ilogb(size)) > in_range) scale_ = std::ldexp(1.0, -std::ilogb(size));
    return std::isfinite(scale_) && scale_ != 0;
  }

  // Most spectra need a part of most_cols. Rows are an odd number of cache lines apart: at a power of two they would
  // all fall on the same few lines of a cache. A space of usual size lies in memory that the thread keeps: blank memory
  // of the system's costs as much as two products.
  void reserve(Index cols) {
    constexpr Index in_line = 8, most_kept = Index(1) << 21;
    if (cols <= room_) return;
    const Index most = most_cols(dim_) + 2 * block_;
    const Index lines = (std::max(cols, std::min(most, std::max(20 * block_, 2 * cols_))) + 7) / in_line;
    const Index room = in_line * (lines | 1);
    Block<double> larger;
    double* to = nullptr;
    if (room_ == 0 && 2 * dim_ * room <= most_kept) {
      to = kernels::thread_scratch<double, kernels::Scratch::krylov>(2 * dim_ * room);
    } else {
      larger = Block<double>(2 * dim_, room);
      to = larger.data();
    }
    if (room_ > 0) {
      space_.copy(q(0, cols_ + next_), BlockView<double>(to, dim_, cols_ + next_, room));
      space_.copy(s(0, cols_), BlockView<double>(to + dim_ * room, dim_, cols_, room));
    }
    held_ = to;
    room_ = room;
    own_ = std::move(larger);
    h_.conservativeResize(room_, room_);
  }

  // The Ritz pairs in coordinates, and how far the worst of them is from its limit, in units of it: Sigma q = q h +
  // next [0, back], so that the last coordinates tell.
  bool look() {
    if (!few_leading_eigenpairs(h_.topLeftCorner(cols_, cols_), count_ + 1, theta_, c_)) return false;
    const Small beside = back_ * c_.bottomRows(last_);
    judge(exhausted_ ? SmallVector(SmallVector::Zero(theta_.size())) : SmallVector(beside.colwise().norm()));
    return std::isfinite(excess_);
  }

  // The same of the vectors themselves, by the products that were kept.
  bool measure() {
    v_ = Block<double>(dim_, c_.cols());
    multiply(space_, q(0, cols_), c_, BlockView<double>(v_));
    Block<double> residual = v_ * (-theta_).asDiagonal();
    space_.multiply(s(0, cols_), c_, residual, Write::add);
    judge(space_.column_norms(residual));
    const double limit = residual_limit();
    // With a margin: a bunch of eigenvalues that close passes for one eigenvalue.
    for (Index first = 0; first + block_ <= theta_.size(); ++first)
      if (theta_(first) - theta_(first + block_ - 1) <= 1000 * limit) alike_ = true;
    return std::isfinite(excess_);
  }

  double residual_limit() const { return static_cast<double>(dim_) * eps64 * norm_; }

  void judge(const SmallVector& lengths) {
    norm_ = std::max(norm_, std::abs(theta_(0)));
    const double limit = residual_limit();
    excess_ = lengths.head(count_).maxCoeff() / limit;
    // An eigenvalue lies within `lengths` of the next Ritz value: where it may be among the leading ones, it has to
    // converge as well.
    if (theta_(count_) + lengths(count_) > theta_(count_ - 1)) excess_ = std::max(excess_, lengths(count_) / limit);
  }

  bool nothing_was_missed() {
    Block<double> x = scattered(dim_, probe_cols, probe_stream), image;
    const ConstBlockView<double> found = v_.leftCols(count_);
    for (int power = 0; power < 2; ++power) {
      orthonormalise_beyond(space_, found, gram(space_, found, x), x);
      if (x.cols() == 0) return true;
      image = Block<double>(dim_, x.cols());
      product_(x, image);
      if (power == 0) x = scale_ * image;
    }
    SmallVector values;
    if (!symmetric_eigenvalues(scale_ * gram(space_, x, image), values)) return false;
    return values(values.size() - 1) <= theta_(count_ - 1) + residual_limit();
  }

  LeadingPairs found() const { return {theta_.head(count_) / scale_, v_.leftCols(count_)}; }

  Index dim_, count_, block_;
  const BlockProduct& product_;
  HostSpace<double> space_;
  double* held_ = nullptr;  // q over s, in rows of room_ values
  Block<double> own_;       // where they are not in scratch
  Index room_ = 0;
  Index cols_ = 0;    // of the space
  Index last_ = 0;    // of its last block
  Index next_ = 0;    // of the next block
  Small h_;           // q' s
  Small back_;        // next' s for the last block: all that s has beyond the space
  double scale_ = 1;  // of s
  double norm_ = 0;   // the largest lower bound of ||Sigma|| seen, scaled
  double excess_ = 0;
  bool exhausted_ = false, alike_ = false;
  SmallVector theta_;  // Ritz values, scaled
  Small c_;            // their vectors on q
  Block<double> v_;    // the vectors
};

}  // namespace

bool worth_iterating(Index dim, Index count) {
  return count >= 1 && least_blocks * wide_block(count) <= dim / 4;
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

namespace {

bool known_as_squares(const LeadingPairs& found) {
  constexpr double least_share = 1e-6;
  const Eigen::VectorXd& values = found.values;
  return values(values.size() - 1) >= least_share * values(0);
}

}  // namespace

std::optional<LeadingPart> leading_part_of(const Dense& factor, Index count) {
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
  if (!found || !known_as_squares(*found)) return std::nullopt;
  // F'F v = lambda v: F v is the column of length lambda^(1/2).
  Dense part = wide ? Dense(found->vectors * found->values.cwiseSqrt().asDiagonal()) : Dense(factor * found->vectors);
  return LeadingPart{std::move(found->values), std::move(part)};
}

template <Storage Scalar>
std::optional<LeadingPart> leading_part_of_features(const ConstBlockView<Scalar>& features, const Moments& moments,
                                                    Index count) {
  const Index n = features.rows(), d = features.cols();
  const double* mean = moments.mean.data();
  if (n > d) {
    const kernels::RowFactors factors{moments.root_scale.data(), moments.root_scale.size() > 1};
    auto found = leading_pairs(d, count, [&](const ConstBlockView<double>& in, BlockView<double> out) {
      kernels::squared_gemm<double, Scalar>(features, mean, factors, in, out);  // T T'in
    });
    if (!found || !known_as_squares(*found)) return std::nullopt;
    Dense part = found->vectors * found->values.cwiseSqrt().asDiagonal();
    return LeadingPart{std::move(found->values), std::move(part)};
  }
  const auto scale_rows = [&](BlockView<double> block) {
    for (Index i = 0; i < n; ++i) block.row(i) *= moments.scale_of(i);
  };
  // T = (Z - 1 mu')' diag(root_scale)
  const auto times = [&](const ConstBlockView<double>& in, BlockView<double> out) {
    Block<double> scaled = in;
    scale_rows(scaled);
    kernels::shifted_gemm<double, Scalar>(kernels::Op::transposed, 1, features, mean, scaled, 0, out);
  };
  auto found = leading_pairs(n, count, [&](const ConstBlockView<double>& in, BlockView<double> out) {
    Block<double> inner(d, in.cols());
    times(in, inner);
    kernels::shifted_gemm<double, Scalar>(kernels::Op::plain, 1, features, mean, inner, 0, out);  // T'T in
    scale_rows(out);
  });
  if (!found || !known_as_squares(*found)) return std::nullopt;
  Block<double> part(d, count);
  times(Block<double>(found->vectors), part);
  return LeadingPart{std::move(found->values), Dense(part)};
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                   \
  template std::optional<LeadingPart> leading_part_of_features<Scalar>(const ConstBlockView<Scalar>&, const Moments&, \
                                                                       Index);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE
template std::optional<LeadingPairs> leading_pairs_of<float>(const ConstBlockView<float>&, Index);
template std::optional<LeadingPairs> leading_pairs_of<double>(const ConstBlockView<double>&, Index);

}  // namespace itspace
