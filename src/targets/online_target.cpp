// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/online_target.hpp>
#include <itspace/random.hpp>

#include "core/dense.hpp"
#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"
#include "kernels/block_ops.hpp"
#include "kernels/scratch.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <utility>

namespace itspace {

using kernels::Op;

namespace {

template <Storage Scalar>
using Group = typename OnlineTarget<Scalar>::Group;

void check_options(const OnlineOptions& options) {
  require(options.half_life > 0, "half_life is ", options.half_life,
          "; it must be above 0 (infinity: nothing is forgotten)");
  require(options.window >= 0, "window is ", options.window, "; it must be a number of batches, or 0 for none");
  require(options.window == 0 || std::isinf(options.half_life), "there is a window of ", options.window,
          " batches and a half-life of ", options.half_life, "; give one of the two");
  require(options.exact_batches >= 1, "exact_batches is ", options.exact_batches, "; it must be at least 1");
  require(!options.kept_rank || *options.kept_rank >= 1, "kept_rank is ", options.kept_rank.value_or(0),
          "; it must be at least 1");
}

// Of all weights before a batch of `samples` rows.
double discount_of(const OnlineOptions& options, Index samples) {
  const double age = options.unit == HalfLifeUnit::samples ? static_cast<double>(samples) : 1.0;
  return std::exp2(-age / options.half_life);
}

template <Storage Scalar>
void grow_older(Group<Scalar>& group, double discount) {
  group.weight *= discount;
  group.weight_squares *= discount * discount;
  group.discount *= discount;
}

// Weights so small that they have lost digits count for nothing.
template <Storage Scalar>
bool has_weight(const Group<Scalar>& group) {
  return std::min({group.weight, group.weight_squares, group.discount}) >= std::numeric_limits<double>::min();
}

void check_weights(const Eigen::VectorXd& weights, Index rows) {
  if (weights.size() == 0) return;
  require(weights.size() == rows, "there are ", weights.size(), " weights for ", rows, " samples; give one for each");
  for (Index i = 0; i < rows; ++i)
    require(weights(i) >= 0 && std::isfinite(weights(i)), "weights[", i, "] is ", weights(i),
            "; a weight is 0 or more and finite");
}

template <Storage Scalar>
Vector column_squares_of(const Block<Scalar>& rows) {
  SmallVector squares;
  kernels::column_squares<Scalar>(rows, squares);
  return squares;
}

// @pre a weight above 0. Rows without weight are left out; the others are scaled by the largest, so that no weight
// takes a value out of the range of its type.
template <Storage Scalar>
Group<Scalar> group_of(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights) {
  const auto weight = [&](Index i) { return weights.size() > 0 ? weights(i) : 1.0; };
  const double largest = weights.size() > 0 ? weights.maxCoeff() : 1.0;
  Group<Scalar> group;
  group.discount = largest;
  Index count = 0, first = -1;
  for (Index i = 0; i < batch.rows(); ++i) {
    if (weight(i) == 0) continue;
    if (first < 0) first = i;
    ++count;
    group.weight += weight(i);
    group.weight_squares += weight(i) * weight(i);
  }
  require(std::isfinite(group.weight_squares), "the weights are too large for their squares to be summed, up to ",
          largest, "; scale them all down, which changes nothing");
  group.mean = mean_about<Scalar>(batch, first, weights);
  Block<Scalar> rows(count, batch.cols());
  for (Index i = 0, row = 0; i < batch.rows(); ++i) {
    if (weight(i) == 0) continue;
    rows.row(row++) = ((batch.row(i).template cast<double>() - group.mean.transpose()) * std::sqrt(weight(i) / largest))
                          .template cast<Scalar>();
  }
  group.variances = column_squares_of(rows);
  group.rows = std::make_shared<const Block<Scalar>>(std::move(rows));
  return group;
}

// A factor R of k' <= k rows with R'R nearly that of the given rows, R'R <= rows'rows, by Nystroem's formula in the
// space of the rows: for V with orthonormal columns R = V'rows splits rows'rows into R'R and what V leaves, without a
// cross term. V = orth(rows Q') of the `known` first rows, which led before, and of random combinations of the others
// is one step of subspace iteration; the k leading directions of what it finds are kept.
template <Storage Scalar>
Block<Scalar> leading_rows(const Block<Scalar>& rows, Index known, Index kept, double size, const Random& random) {
  const Index m = rows.rows(), d = rows.cols();
  const Index count = std::min({kept + std::max<Index>(8, kept / 2), m, d});
  const Index drawn = std::max<Index>(count - known, 0);
  // Q', d x count, of size one: products with it do not overflow.
  Block<Scalar> directions(d, count);
  directions.leftCols(count - drawn) = rows.topRows(count - drawn).transpose() * static_cast<Scalar>(1 / size);
  if (drawn > 0) {
    Block<Scalar> combinations(m - known, drawn);
    for (Index i = 0; i < combinations.size(); ++i)
      combinations.data()[i] = (random.bits(static_cast<std::uint64_t>(i)) & 1) != 0 ? Scalar(1) : Scalar(-1);
    kernels::gemm<Scalar>(Op::transposed, static_cast<Scalar>(1 / size), rows.bottomRows(m - known), combinations,
                          Scalar(0), directions.rightCols(drawn));
  }
  Block<Scalar> products(m, count), found(d, count);
  kernels::gemm<Scalar>(Op::plain, static_cast<Scalar>(1 / size), rows, directions, Scalar(0), products);
  const Eigen::HouseholderQR<Dense> qr(products.template cast<double>());
  const Dense orthonormal = qr.householderQ() * Dense::Identity(m, count);
  kernels::gemm<Scalar>(Op::transposed, static_cast<Scalar>(1 / size), rows,
                        Block<Scalar>(orthonormal.template cast<Scalar>()), Scalar(0), found);
  Small gram(count, count);
  const GramRequest<ConstBlockView<Scalar>> request(found, gram);
  kernels::grams<Scalar>({&request, 1});
  SmallVector values;
  Small vectors;
  require_converged(symmetric_eigen(gram, values, vectors), "the leading directions of a batch");
  const Index left = std::min(kept, count);
  Block<Scalar> leading(d, left);
  kernels::multiply<Scalar>(found, size * vectors.rightCols(left).rowwise().reverse(), leading);
  return leading.transpose();
}

template <Storage Scalar>
Block<Scalar> triangle_of(const Block<Scalar>& rows) {
  Dense copy = rows.template cast<double>();
  return qr_triangle(copy).template cast<Scalar>();
}

// Rounding may have given a coordinate more than it has; it is scaled back, which keeps rows'rows positive semidefinite
// and the variances exact, however often it happens.
template <Storage Scalar>
void keep_within(const Vector& variances, Block<Scalar>& rows) {
  const Vector taken = column_squares_of(rows);
  for (Index j = 0; j < taken.size(); ++j)
    if (taken(j) > variances(j)) rows.col(j) *= static_cast<Scalar>(std::sqrt(variances(j) / taken(j)));
}

// The two groups as one. Scatters add up, with one more row for the distance of the means:
// S = S_a + S_b + (ab/(a + b)) (m_b - m_a)(m_b - m_a)'.
template <Storage Scalar>
Group<Scalar> merged(const Group<Scalar>& a, const Group<Scalar>& b, Index kept, const Random& random) {
  if (a.mean.size() == 0 && b.rows->rows() <= kept) return b;
  const bool both = a.mean.size() > 0;
  Group<Scalar> sum;
  // In units of b's discount, or of a's: the larger one, so that neither overflows.
  sum.discount = both ? std::max(a.discount, b.discount) : b.discount;
  const Index known = both ? a.rows->rows() : 0, d = b.rows->cols();
  Block<Scalar> rows(known + b.rows->rows() + (both ? 1 : 0), d);
  rows.middleRows(known, b.rows->rows()) = *b.rows * static_cast<Scalar>(std::sqrt(b.discount / sum.discount));
  sum.variances = b.discount / sum.discount * b.variances;
  sum.mean = b.mean;
  sum.weight = b.weight;
  sum.weight_squares = b.weight_squares;
  if (both) {
    sum.weight += a.weight;
    sum.weight_squares += a.weight_squares;
    const Eigen::VectorXd apart = b.mean - a.mean;
    sum.mean = a.mean + b.weight / sum.weight * apart;
    const Eigen::VectorXd row = apart * std::sqrt(a.weight / sum.weight * (b.weight / sum.discount));
    rows.topRows(known) = *a.rows * static_cast<Scalar>(std::sqrt(a.discount / sum.discount));
    rows.bottomRows(1) = row.transpose().cast<Scalar>();
    sum.variances += a.discount / sum.discount * a.variances + row.cwiseAbs2();
  }
  const double size = std::sqrt(sum.variances.sum());
  if (size == 0)
    rows = Block<Scalar>(rows.topRows(std::min(rows.rows(), kept)));
  else if (d <= kept && rows.rows() > d)
    rows = triangle_of(rows);
  else if (rows.rows() > kept)
    rows = leading_rows<Scalar>(rows, known, kept, size, random);
  keep_within<Scalar>(sum.variances, rows);
  sum.rows = std::make_shared<const Block<Scalar>>(std::move(rows));
  return sum;
}

// What the rows of an old group leave of its variances.
template <Storage Scalar>
Vector diagonal_beside(const Group<Scalar>& old) {
  return (old.variances - column_squares_of(*old.rows)).cwiseMax(0.0);
}

template <Storage Scalar>
void check_group(const Group<Scalar>& group, Index dim, const char* what) {
  require(group.rows != nullptr, "the ", what, " has no rows");
  require(group.mean.size() == dim && group.variances.size() == dim && group.rows->cols() == dim, "the ", what,
          " has rows of ", group.rows->cols(), ", a mean of ", group.mean.size(), " and variances of ",
          group.variances.size(), " values for features of dimension ", dim, "; they must agree");
  check_finite<Scalar>(*group.rows, what);
  check_finite<double>(group.mean.transpose(), what);
  check_finite<double>(group.variances.transpose(), what);
  require(group.variances.minCoeff() >= 0, "the ", what, " has a variance of ", group.variances.minCoeff(),
          "; it must be 0 or more");
  require(has_weight<Scalar>(group) && std::isfinite(group.weight) && std::isfinite(group.weight_squares) &&
              std::isfinite(group.discount),
          "the ", what, " has the weight ", group.weight, ", squares ", group.weight_squares, " and discount ",
          group.discount, "; they must be positive and finite");
}

}  // namespace

std::string_view name(HalfLifeUnit unit) {
  return unit == HalfLifeUnit::samples ? "samples" : "batches";
}

template <Storage Scalar>
OnlineTarget<Scalar>::OnlineTarget(const OnlineOptions& options) : OnlineTarget(Parts{.options = options}) {}

template <Storage Scalar>
OnlineTarget<Scalar>::OnlineTarget(Parts parts) : parts_(std::move(parts)) {
  constexpr Index default_kept_rank = 64;
  check_options(parts_.options);
  if (!parts_.options.kept_rank) parts_.options.kept_rank = default_kept_rank;
  const bool has_old = parts_.old.mean.size() > 0;
  if (!has_old && parts_.recent.empty()) return;
  const Index d = has_old ? parts_.old.mean.size() : parts_.recent.front().mean.size();
  require(d >= 1, "the stream has features of dimension 0; it needs at least 1");
  if (has_old) check_group<Scalar>(parts_.old, d, "old part of the stream");
  for (const Group& batch : parts_.recent) check_group<Scalar>(batch, d, "batch of the stream");
  prepare();
}

template <Storage Scalar>
bool OnlineTarget<Scalar>::update(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights) {
  require(batch.cols() >= 1 || batch.rows() == 0, "the batch has no columns; each row must hold at least one value");
  require(dim() == 0 || batch.rows() == 0 || batch.cols() == dim(), "the batch has ", batch.cols(),
          " columns and the stream has dimension ", dim(),
          "; rows are samples of that dimension. Use another stream for other features");
  check_weights(weights, batch.rows());
  check_finite<Scalar>(batch, "batch");
  if (batch.rows() == 0 || (weights.size() > 0 && weights.maxCoeff() == 0)) return false;

  OnlineTarget next(parts_.options);
  Parts& parts = next.parts_;
  parts = parts_;
  const OnlineOptions& options = parts.options;
  ++parts.version;
  const double discount = discount_of(options, batch.rows());
  if (discount != 1) {
    grow_older<Scalar>(parts.old, discount);
    if (!has_weight<Scalar>(parts.old)) parts.old = {};
    for (Group& group : parts.recent) grow_older<Scalar>(group, discount);
    std::erase_if(parts.recent, [](const Group& group) { return !has_weight<Scalar>(group); });
  }
  parts.recent.push_back(group_of<Scalar>(batch, weights));
  const Index exact = options.window > 0 ? options.window : options.exact_batches;
  while (static_cast<Index>(parts.recent.size()) > exact) {
    if (options.window == 0)
      parts.old =
          merged<Scalar>(parts.old, parts.recent.front(), *options.kept_rank, Random(options.seed, parts.version));
    parts.recent.erase(parts.recent.begin());
  }
  next.prepare();
  *this = std::move(next);
  return true;
}

template <Storage Scalar>
void OnlineTarget<Scalar>::prepare() {
  const bool has_old = parts_.old.mean.size() > 0;
  std::vector<const Group*> groups;
  if (has_old) groups.push_back(&parts_.old);
  for (const Group& batch : parts_.recent) groups.push_back(&batch);
  const auto count = static_cast<Index>(groups.size());
  const Index d = groups.front()->mean.size();

  weight_ = weight_squares_ = 0;
  for (const Group* group : groups) {
    weight_ += group->weight;
    weight_squares_ += group->weight_squares;
  }
  normaliser_ = std::max(0.0, weight_ - weight_squares_ / weight_);
  // About the first of them: where the mean is large, its digits are not spent on the differences.
  Eigen::VectorXd beyond = Eigen::VectorXd::Zero(d);
  for (const Group* group : groups) beyond += group->weight / weight_ * (group->mean - groups.front()->mean);
  mean_ = groups.front()->mean + beyond;

  diagonal_ = has_old ? diagonal_beside<Scalar>(parts_.old) : Vector();
  const Index old_rows = has_old ? parts_.old.rows->rows() : 0;
  const bool known = normaliser_ > 0;
  const double unit = known ? 1 / normaliser_ : 0.0;
  head_.resize(old_rows + count, d);
  head_factors_.resize(old_rows + count);
  if (has_old) {
    head_.topRows(old_rows) = *parts_.old.rows;
    head_factors_.head(old_rows).setConstant(std::sqrt(parts_.old.discount * unit));
    diagonal_ *= parts_.old.discount * unit;
  }
  recent_factors_.resize(static_cast<Index>(parts_.recent.size()));
  for (Index i = 0; i < recent_factors_.size(); ++i)
    recent_factors_(i) = std::sqrt(parts_.recent[static_cast<std::size_t>(i)].discount * unit);
  Eigen::VectorXd variances = Eigen::VectorXd::Zero(d);
  for (Index i = 0; i < count; ++i) {
    const Group& group = *groups[static_cast<std::size_t>(i)];
    const Eigen::VectorXd apart = group.mean - groups.front()->mean - beyond;
    head_.row(old_rows + i) = apart.transpose().cast<Scalar>();
    head_factors_(old_rows + i) = std::sqrt(group.weight * unit);
    variances += (group.discount * unit) * group.variances + (group.weight * unit) * apart.cwiseAbs2();
  }
  variances_ = variances;
  trace_ = variances_.sum();
}

template <Storage Scalar>
void OnlineTarget<Scalar>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (!(trace_ > 0)) {
    out.setZero();
    return;
  }
  kernels::squared_gemm<Scalar>(head_, nullptr, {head_factors_.data(), true}, y, out);
  BlockView<Scalar> product = kernels::scratch_block<Scalar, kernels::Scratch::feature_chunk>(y.rows(), y.cols());
  for (Index i = 0; i < recent_factors_.size(); ++i) {
    kernels::squared_gemm<Scalar>(*parts_.recent[static_cast<std::size_t>(i)].rows, nullptr,
                                  {recent_factors_.data() + i, false}, y, product);
    out += product;
  }
  for (Index i = 0; i < diagonal_.size(); ++i) out.row(i) += static_cast<Scalar>(diagonal_(i)) * y.row(i);
}

template <Storage Scalar>
Vector OnlineTarget<Scalar>::deviations() const {
  return variances_.cwiseSqrt();
}

template <Storage Scalar>
double OnlineTarget<Scalar>::effective_samples() const {
  return weight_squares_ > 0 ? weight_ * (weight_ / weight_squares_) : 0.0;
}

template class OnlineTarget<float>;
template class OnlineTarget<double>;

}  // namespace itspace
