// SPDX-License-Identifier: Apache-2.0
#include "targets/stream_classes.hpp"

#include <itspace/covariance.hpp>

#include "core/require.hpp"

#include <cmath>
#include <string>

namespace itspace {
namespace {

std::string class_name(const ClassBalance& balance, Index label) {
  return balance.classes.empty() ? text(label) : balance.classes[static_cast<std::size_t>(label)];
}

}  // namespace

void check_balance(const ClassBalance& balance) {
  require(balance.shares.size() >= 1, "there are no shares of the source's classes; give one for each class");
  require(balance.classes.empty() || std::ssize(balance.classes) == balance.shares.size(), "there are ",
          balance.classes.size(), " names for ", balance.shares.size(), " classes; give one for each, or none");
  for (const std::string& one : balance.classes)
    require(!one.empty() && one.find('\n') == std::string::npos, "a class is named '", one,
            "'; a name is not empty and of one line");
  for (Index i = 0; i < balance.shares.size(); ++i)
    require(balance.shares(i) > 0 && std::isfinite(balance.shares(i)), "the share of class ", class_name(balance, i),
            " is ", balance.shares(i), "; it must be above 0 and finite: leave out classes that the source lacks");
}

void check_predicted(const std::optional<ClassBalance>& given, const Predicted& predicted, Index rows) {
  if (!given) {
    require(!predicted.given(), "there are predicted classes, and the stream knows no classes of a source; ",
            "give their shares (balance) when the stream begins, or leave the predictions out");
    return;
  }
  const ClassBalance& balance = *given;
  const Index classes = balance.shares.size();
  require(predicted.given() || rows == 0, "the batch has no predicted classes, and the stream is balanced over ",
          classes, " of them; give one for each sample");
  require(predicted.labels.empty() || predicted.probabilities.size() == 0,
          "there are both classes and probabilities of them; give one of the two");
  if (!predicted.labels.empty()) {
    require(std::ssize(predicted.labels) == rows, "there are ", predicted.labels.size(), " predicted classes for ",
            rows, " samples; give one for each");
    for (Index i = 0; i < rows; ++i) {
      const Index label = predicted.labels[static_cast<std::size_t>(i)];
      require(label >= 0 && label < classes, "predicted[", i, "] is the class ", label,
              ", which the source does not have: its classes are ", class_name(balance, 0), " to ",
              class_name(balance, classes - 1), "; leave such samples out");
    }
    return;
  }
  const Block<double>& shares = predicted.probabilities;
  require(shares.rows() == rows && (rows == 0 || shares.cols() == classes), "the class probabilities are ",
          shares.rows(), " x ", shares.cols(), " for ", rows, " samples and ", classes,
          " classes of the source; give a row for each sample and a column for each class");
  check_finite<double>(shares, "predicted");
  for (Index i = 0; i < shares.size(); ++i)
    require(shares.data()[i] >= 0, "predicted[", i / shares.cols(), ", ", i % shares.cols(), "] is ", shares.data()[i],
            "; a probability is 0 or more");
}

std::vector<Eigen::VectorXd> weights_by_class(const std::optional<ClassBalance>& balance, const Predicted& predicted,
                                              Index rows, const Eigen::VectorXd& weights) {
  if (!balance) return {weights};
  std::vector<Eigen::VectorXd> out(static_cast<std::size_t>(balance->shares.size()), Eigen::VectorXd::Zero(rows));
  for (Index i = 0; i < rows; ++i) {
    const double weight = weights.size() > 0 ? weights(i) : 1.0;
    if (!predicted.labels.empty())
      out[static_cast<std::size_t>(predicted.labels[static_cast<std::size_t>(i)])](i) = weight;
    else
      for (std::size_t c = 0; c < out.size(); ++c)
        out[c](i) = weight * predicted.probabilities(i, static_cast<Index>(c));
  }
  return out;
}

}  // namespace itspace
