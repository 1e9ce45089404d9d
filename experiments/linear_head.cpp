// SPDX-License-Identifier: Apache-2.0
#include "linear_head.hpp"

#include "covdrift_split.hpp"
#include "metrics.hpp"
#include "sampling.hpp"

#include <itspace/covariance.hpp>

#include <fmt/format.h>
#include <linear.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>

namespace itspace::experiments {
namespace {

constexpr double stopping_tolerance = 0.01;  // LIBLINEAR's own default: relative to the first gradient
constexpr Index held_out_share = 5;          // one in five

std::vector<int> distinct(const std::vector<int>& labels) {
  const std::set<int> classes(labels.begin(), labels.end());
  return {classes.begin(), classes.end()};
}

// Samples in LIBLINEAR's form: a list of (index, value) for each, ended by index -1. The constant feature of the bias
// is part of the list.
class SparseProblem {
 public:
  SparseProblem(const ConstBlockView<double>& samples, const std::vector<int>& labels, const std::vector<Index>& rows) {
    const Index d = samples.cols();
    nodes_.reserve(rows.size() * static_cast<std::size_t>(d + 2));
    for (const Index row : rows) {
      firsts_.push_back(nodes_.data() + nodes_.size());
      for (Index j = 0; j < d; ++j) nodes_.push_back({static_cast<int>(j + 1), samples(row, j)});
      nodes_.push_back({static_cast<int>(d + 1), 1.0});
      nodes_.push_back({-1, 0});
      labels_.push_back(labels[static_cast<std::size_t>(row)]);
    }
    problem_ = {static_cast<int>(rows.size()), static_cast<int>(d + 1), labels_.data(), firsts_.data(), 1.0};
  }
  SparseProblem(const SparseProblem&) = delete;
  SparseProblem& operator=(const SparseProblem&) = delete;

  const problem& get() const { return problem_; }

 private:
  std::vector<feature_node> nodes_;
  std::vector<feature_node*> firsts_;
  std::vector<double> labels_;
  problem problem_;
};

struct FreeModel {
  void operator()(model* trained) const { free_and_destroy_model(&trained); }
};
using Model = std::unique_ptr<model, FreeModel>;

// `from` is a model of the same problem with a nearby cost, or none: the solver begins at its weights.
Model trained(const SparseProblem& samples, double cost, const model* from) {
  parameter settings{};
  settings.solver_type = L2R_LR;
  settings.eps = stopping_tolerance;
  settings.C = cost;
  settings.init_sol = from != nullptr ? from->w : nullptr;
  if (const char* complaint = check_parameter(&samples.get(), &settings))
    throw std::invalid_argument(fmt::format("LIBLINEAR refuses C = {}: {}", cost, complaint));
  Model solved(train(&samples.get(), &settings));
  solved->param.init_sol = nullptr;  // `from` keeps its weights
  return solved;
}

// LIBLINEAR keeps weight j of column c at w[j*columns + c], its classes in the order of their first sample; of two
// classes it has one column, which scores the first.
LinearHead head_of(const model& solved) {
  const std::vector<int> order(solved.label, solved.label + solved.nr_class);
  const std::vector<int> classes = distinct(order);
  const Index d = solved.nr_feature, columns = solved.nr_class == 2 ? 1 : solved.nr_class;
  const Eigen::Map<const RowMajorMatrix<double>> w(solved.w, d + 1, columns);
  Block<double> weights(columns, d);
  SmallVector bias(columns);
  for (Index row = 0; row < columns; ++row) {
    const int scored = columns == 1 ? classes[1] : classes[static_cast<std::size_t>(row)];
    const Index column = std::find(order.begin(), order.end(), scored) - order.begin();
    const double sign = columns == 1 && column == 1 ? -1 : 1;
    const Index from = columns == 1 ? 0 : column;
    weights.row(row) = sign * w.col(from).head(d).transpose();
    bias[row] = sign * w(d, from);
  }
  return {classes, std::move(weights), std::move(bias)};
}

}  // namespace

LinearHead::LinearHead(std::vector<int> classes, Block<double> weights, SmallVector bias)
    : classes_(std::move(classes)), weights_(std::move(weights)), bias_(std::move(bias)) {}

Block<double> LinearHead::scores(const ConstBlockView<double>& samples) const {
  if (samples.cols() != weights_.cols())
    throw std::invalid_argument(fmt::format("samples of {} features for a head of {}; pass those it was trained on",
                                            samples.cols(), weights_.cols()));
  return (samples * weights_.transpose()).rowwise() + bias_.transpose();
}

std::vector<int> LinearHead::predict(const Block<double>& scores) const {
  std::vector<int> predicted;
  predicted.reserve(static_cast<std::size_t>(scores.rows()));
  for (Index i = 0; i < scores.rows(); ++i) {
    Index best = scores(i, 0) > 0 ? 1 : 0;
    if (scores.cols() > 1) scores.row(i).maxCoeff(&best);
    predicted.push_back(classes_[static_cast<std::size_t>(best)]);
  }
  return predicted;
}

LinearHead LinearHead::after(const TransportMap& map) const {
  // w'T(x) = w'm_to + w'A (x - m_from), A = D_to (c I + Q (K - c I) Q') D_from^(-1).
  const TransportMap::Parts& parts = map.parts();
  Block<double> core = parts.core;
  core.diagonal().array() -= parts.scalar;
  const bool scaled = parts.scale_to.size() > 0;
  const Block<double> outer = scaled ? Block<double>(weights_ * parts.scale_to.asDiagonal()) : weights_;
  Block<double> weights = parts.scalar * outer;
  weights.noalias() += Block<double>(outer * parts.basis * core) * parts.basis.transpose();
  if (scaled) weights = weights * parts.scale_from.cwiseInverse().asDiagonal();
  const SmallVector bias = bias_ + weights_ * parts.mean_to - weights * parts.mean_from;
  return {classes_, std::move(weights), bias};
}

LinearHead LinearHead::after_shift(const Eigen::VectorXd& shift) const {
  return {classes_, weights_, bias_ + weights_ * shift};
}

TrainedHead train_head(const ConstBlockView<double>& samples, const std::vector<int>& labels, std::uint64_t seed) {
  if (static_cast<std::size_t>(samples.rows()) != labels.size())
    throw std::invalid_argument(fmt::format("{} samples and {} labels to train a head on; pass one label per sample",
                                            samples.rows(), labels.size()));
  const std::vector<int> classes = distinct(labels);
  if (classes.size() < 2)
    throw std::invalid_argument(fmt::format("{} samples to train a head on, all of class {}; it needs two classes",
                                            labels.size(), classes.empty() ? 0 : classes[0]));
  if (samples.cols() >= std::numeric_limits<int>::max() || samples.rows() >= std::numeric_limits<int>::max())
    throw std::invalid_argument(
        fmt::format("{} x {} samples; LIBLINEAR counts them with an int: pass fewer", samples.rows(), samples.cols()));
  check_finite<double>(samples, "training samples");
  set_print_string_function([](const char*) {});

  const std::vector<Index> rows = shuffled(samples.rows(), seed, stream::held_out_rows);
  const auto kept_count = samples.rows() - samples.rows() / held_out_share;
  const std::vector<Index> kept(rows.begin(), rows.begin() + kept_count),
      held_out(rows.begin() + kept_count, rows.end());
  std::vector<int> held_out_labels;
  std::set<int> kept_classes;
  for (const Index row : kept) kept_classes.insert(labels[static_cast<std::size_t>(row)]);
  for (const Index row : held_out) held_out_labels.push_back(labels[static_cast<std::size_t>(row)]);

  double best_cost = head_cost_grid[0], best_accuracy = -1;
  Model best;
  // With too few samples to hold any out the smallest cost stands.
  if (!held_out.empty() && kept_classes.size() > 1) {
    const SparseProblem seen(samples, labels, kept);
    const Block<double> unseen = samples(held_out, Eigen::indexing::all);
    for (const double cost : head_cost_grid) {
      Model next = trained(seen, cost, best.get());
      const LinearHead head = head_of(*next);
      const double right = accuracy(head.predict(head.scores(unseen)), held_out_labels);
      if (right < best_accuracy) break;
      // Of equals the first, though the last is the better place to go on from.
      if (right > best_accuracy) best_cost = cost;
      best_accuracy = right;
      best = std::move(next);
    }
  }
  // The kept rows come first again, so the classes have the same order, unless one was seen among the held-out only.
  const bool same_classes = kept_classes.size() == classes.size();
  return {head_of(*trained(SparseProblem(samples, labels, rows), best_cost, same_classes ? best.get() : nullptr)),
          best_cost};
}

}  // namespace itspace::experiments
