// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/online_target.hpp>
#include <itspace/random.hpp>

#include "core/dense.hpp"
#include "core/lapack.hpp"
#include "core/require.hpp"
#include "kernels/stacked_rows.hpp"
#include "targets/stream_classes.hpp"
#include "targets/stream_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace itspace {

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
  if (options.balance) check_balance(*options.balance);
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

// @pre a weight above 0. Rows without weight are left out; the others are scaled by the largest, so that no weight
// takes a value out of the range of its type.
template <Storage Scalar>
Group<Scalar> group_of(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights) {
  const double largest = weights.size() > 0 ? weights.maxCoeff() : 1.0;
  Group<Scalar> group;
  group.discount = largest;
  group.weight = weights.size() > 0 ? weights.sum() : static_cast<double>(batch.rows());
  group.weight_squares = weights.size() > 0 ? weights.squaredNorm() : static_cast<double>(batch.rows());
  require(std::isfinite(group.weight_squares), "the weights are too large for their squares to be summed, up to ",
          largest, "; scale them all down, which changes nothing");
  CentredRows<Scalar> centred = centred_about_mean<Scalar>(batch, weights / largest);
  group.mean = std::move(centred.mean);
  group.variances = std::move(centred.squares);
  group.rows = std::make_shared<const Block<Scalar>>(std::move(centred.rows));
  return group;
}

template <Storage Scalar>
Block<Scalar> triangle_of(const Block<Scalar>& rows) {
  Dense copy = rows.template cast<double>();
  return qr_triangle(copy).template cast<Scalar>();
}

// The rows by which k directions are kept: some more where they are few, because one step of iteration for each batch
// finds the leading ones the better the more go with them. Up to 64 columns are one pass of the kernels.
Index held_rows(Index kept) {
  constexpr Index more = 16, most = 64;
  return std::max(kept, std::min(kept + more, most));
}

// The two groups as one. Scatters add up, with one more row for the distance of the means:
// S = S_a + S_b + (ab/(a + b)) (m_b - m_a)(m_b - m_a)'.
template <Storage Scalar>
Group<Scalar> merged(const Group<Scalar>& a, const Group<Scalar>& b, Index held, const Random& random) {
  const bool both = a.mean.size() > 0;
  if (!both && b.rows->rows() <= held) return b;
  Group<Scalar> sum;
  sum.label = b.label;
  sum.batch = b.batch;
  // In units of b's discount, or of a's: the larger one, so that neither overflows.
  sum.discount = both ? std::max(a.discount, b.discount) : b.discount;
  const Index known = both ? a.rows->rows() : 0, d = b.rows->cols();
  std::vector<ScaledRows<Scalar>> pieces;
  Block<Scalar> apart_row(both ? 1 : 0, d);
  sum.weight = b.weight + (both ? a.weight : 0);
  sum.weight_squares = b.weight_squares + (both ? a.weight_squares : 0);
  const double of_b = b.discount / sum.discount;
  if (both) {
    const double of_a = a.discount / sum.discount;
    const double length = std::sqrt(a.weight / sum.weight * (b.weight / sum.discount));
    const double share = b.weight / sum.weight;
    sum.mean.resize(d);
    sum.variances.resize(d);
    for_columns(1, d, [&](Index begin, Index end) {
      for (Index j = begin; j < end; ++j) {
        const double apart = b.mean(j) - a.mean(j), row = apart * length;
        sum.mean(j) = a.mean(j) + share * apart;
        sum.variances(j) = of_b * b.variances(j) + (of_a * a.variances(j) + row * row);
        apart_row(0, j) = static_cast<Scalar>(row);
      }
    });
    pieces.push_back({*a.rows, std::sqrt(of_a)});
  } else {
    sum.mean = b.mean;
    sum.variances = of_b * b.variances;
  }
  pieces.push_back({*b.rows, std::sqrt(of_b)});
  pieces.push_back({apart_row, 1.0});
  const Index count = known + b.rows->rows() + apart_row.rows();
  const double size = std::sqrt(sum.variances.sum());
  Block<Scalar> rows;
  if (size == 0) {
    rows.setZero(std::min(count, held), d);
  } else if (std::min(count, d) > held) {
    rows = leading_rows<Scalar>(pieces, known, held, size, sum.variances, random);
  } else {
    rows = stacked<Scalar>(pieces);
    if (count > d) rows = triangle_of(rows);
    keep_within<Scalar>(sum.variances, rows);
  }
  sum.rows = std::make_shared<const Block<Scalar>>(std::move(rows));
  return sum;
}

template <Storage Scalar>
void check_group(const Group<Scalar>& group, Index dim, Index classes, const char* what) {
  require(group.label >= 0 && group.label < classes, "the ", what, " is of class ", group.label, " of ", classes,
          "; it must be below that number");
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
  if (parts_.old.empty() && parts_.recent.empty()) return;
  const Index d = (parts_.old.empty() ? parts_.recent : parts_.old).front().mean.size();
  require(d >= 1, "the stream has features of dimension 0; it needs at least 1");
  const Index classes = parts_.options.balance ? parts_.options.balance->shares.size() : 1;
  for (const Group& group : parts_.old) check_group<Scalar>(group, d, classes, "old part of the stream");
  for (const Group& group : parts_.recent) check_group<Scalar>(group, d, classes, "batch of the stream");
  prepare();
}

template <Storage Scalar>
bool OnlineTarget<Scalar>::update(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights,
                                  const Predicted& predicted) {
  std::optional<OnlineTarget> next = updated(batch, weights, predicted);
  if (next) *this = std::move(*next);
  return next.has_value();
}

template <Storage Scalar>
std::optional<OnlineTarget<Scalar>> OnlineTarget<Scalar>::updated(const ConstBlockView<Scalar>& batch,
                                                                  const Eigen::VectorXd& weights,
                                                                  const Predicted& predicted) const {
  require(batch.cols() >= 1 || batch.rows() == 0, "the batch has no columns; each row must hold at least one value");
  require(dim() == 0 || batch.rows() == 0 || batch.cols() == dim(), "the batch has ", batch.cols(),
          " columns and the stream has dimension ", dim(),
          "; rows are samples of that dimension. Use another stream for other features");
  check_weights(weights, batch.rows());
  check_predicted(parts_.options.balance, predicted, batch.rows());
  const std::vector<Eigen::VectorXd> by_class =
      weights_by_class(parts_.options.balance, predicted, batch.rows(), weights);
  // Where every row counts, a value that is not finite shows in the mean: one sweep less.
  const bool all_count = by_class.size() == 1 && by_class.front().size() == 0;
  if (!all_count) check_finite<Scalar>(batch, "batch");
  const auto is_nothing = [](const Eigen::VectorXd& some) { return some.size() > 0 && some.maxCoeff() == 0; };
  if (batch.rows() == 0 || std::all_of(by_class.begin(), by_class.end(), is_nothing)) return {};

  OnlineTarget next(parts_.options);
  Parts& parts = next.parts_;
  parts = parts_;
  const OnlineOptions& options = parts.options;
  ++parts.version;
  const double discount = discount_of(options, batch.rows());
  for (std::vector<Group>* groups : {&parts.old, &parts.recent}) {
    if (discount == 1) break;
    for (Group& group : *groups) grow_older<Scalar>(group, discount);
    std::erase_if(*groups, [](const Group& group) { return !has_weight<Scalar>(group); });
  }
  for (std::size_t c = 0; c < by_class.size(); ++c) {
    if (is_nothing(by_class[c])) continue;
    Group group = group_of<Scalar>(batch, by_class[c]);
    if (all_count && !group.mean.allFinite()) check_finite<Scalar>(batch, "batch");
    group.label = static_cast<Index>(c);
    group.batch = parts.version;
    parts.recent.push_back(std::move(group));
  }
  next.let_grow_old();
  next.prepare();
  return next;
}

// The batches that are no longer kept as they came are merged with what is older of their class, or dropped where there
// is a window.
template <Storage Scalar>
void OnlineTarget<Scalar>::let_grow_old() {
  const OnlineOptions& options = parts_.options;
  const auto exact = static_cast<std::uint64_t>(options.window > 0 ? options.window : options.exact_batches);
  const auto classes = static_cast<std::uint64_t>(options.balance ? options.balance->shares.size() : 1);
  std::vector<Group>& recent = parts_.recent;
  while (recent.front().batch + exact <= parts_.version) {
    if (options.window == 0) {
      const Group& grown = recent.front();
      const auto at = std::lower_bound(parts_.old.begin(), parts_.old.end(), grown.label,
                                       [](const Group& group, Index label) { return group.label < label; });
      const bool known = at != parts_.old.end() && at->label == grown.label;
      Group sum =
          merged<Scalar>(known ? *at : Group(), grown, held_rows(*options.kept_rank),
                         Random(options.seed, parts_.version * classes + static_cast<std::uint64_t>(grown.label)));
      if (known)
        *at = std::move(sum);
      else
        parts_.old.insert(at, std::move(sum));
    }
    recent.erase(recent.begin());
  }
}

template <Storage Scalar>
Vector OnlineTarget<Scalar>::class_weights() const {
  Vector weights = Vector::Zero(parts_.options.balance ? parts_.options.balance->shares.size() : 1);
  for (const std::vector<Group>* groups : {&parts_.old, &parts_.recent})
    for (const Group& group : *groups) weights(group.label) += group.weight;
  return weights;
}

template <Storage Scalar>
void OnlineTarget<Scalar>::prepare() {
  // With classes, the weights of each are scaled to sum up to its share.
  Eigen::VectorXd scales = class_weights();
  for (Index c = 0; c < scales.size(); ++c)
    if (!parts_.options.balance)
      scales(c) = 1;
    else if (scales(c) > 0)
      scales(c) = parts_.options.balance->shares(c) / scales(c);

  std::vector<PartOfStream<Scalar>> groups;
  weight_ = weight_squares_ = 0;
  for (const std::vector<Group>* some : {&parts_.old, &parts_.recent})
    for (const Group& group : *some) {
      const double scale = scales(group.label);
      groups.push_back({group.mean.data(), group.variances.data(), some == &parts_.old ? group.rows.get() : nullptr,
                        scale * group.weight, scale * group.discount});
      weight_ += scale * group.weight;
      weight_squares_ += scale * scale * group.weight_squares;
    }
  normaliser_ = std::max(0.0, weight_ - weight_squares_ / weight_);
  const double unit = normaliser_ > 0 ? 1 / normaliser_ : 0.0;
  const auto count = static_cast<Index>(groups.size());
  const Index d = (parts_.old.empty() ? parts_.recent : parts_.old).front().mean.size();
  rows_factors_.resize(count);
  means_factors_.resize(count);
  for (Index i = 0; i < count; ++i) {
    const PartOfStream<Scalar>& group = groups[static_cast<std::size_t>(i)];
    rows_factors_(i) = std::sqrt(group.discount * unit);
    means_factors_(i) = std::sqrt(group.weight * unit);
  }
  mean_.resize(d);
  means_.resize(count, d);
  variances_.resize(d);
  diagonal_.resize(parts_.old.empty() ? 0 : d);
  gather_parts<Scalar>(groups, weight_, unit,
                       {mean_.data(), means_, variances_.data(), diagonal_.size() > 0 ? diagonal_.data() : nullptr});
  trace_ = variances_.sum();
}

template <Storage Scalar>
Vector OnlineTarget<Scalar>::class_shares() const {
  Vector shares = class_weights();
  const double sum = shares.sum();
  if (sum > 0) shares /= sum;
  return shares;
}

template <Storage Scalar>
Block<double> OnlineTarget<Scalar>::class_means() const {
  const Vector weights = class_weights();
  Block<double> means = Block<double>::Zero(weights.size(), dim());
  for (const std::vector<Group>* groups : {&parts_.old, &parts_.recent})
    for (const Group& group : *groups)
      means.row(group.label) += (group.weight / weights(group.label)) * group.mean.transpose();
  return means;
}

template <Storage Scalar>
void OnlineTarget<Scalar>::apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
  if (!(trace_ > 0)) {
    out.setZero();
    return;
  }
  std::vector<kernels::RowsPiece<Scalar>> pieces;
  pieces.reserve(static_cast<std::size_t>(rows_factors_.size()) + 1);
  for (const std::vector<Group>* groups : {&parts_.old, &parts_.recent})
    for (const Group& group : *groups) pieces.push_back({*group.rows, {rows_factors_.data() + pieces.size(), false}});
  pieces.push_back({means_, {means_factors_.data(), true}});
  kernels::squared_gemm<Scalar, Scalar>(pieces, diagonal_.size() > 0 ? diagonal_.data() : nullptr, y, out);
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
