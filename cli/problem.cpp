// SPDX-License-Identifier: Apache-2.0
//
// Targets, starts and spectra of loaded inputs.
#include "problem.hpp"

#include "text.hpp"

#include <itspace/covariance.hpp>
#include <itspace/start.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace itspace::cli {

namespace {

template <Storage Scalar>
Eigen::VectorXd leading_of(const Input<Scalar>& input, const Eigen::VectorXd& weights, Index count) {
  if (input.kind == Kind::covariance) return leading_eigenvalues<Scalar>(input.values.view(), count);
  if (input.kind == Kind::features) {
    if (count >= std::min(input.values.rows(), input.dim()))
      return leading_eigenvalues_of_factor(compact_factor<Scalar>(input.values.view(), weights), count);
    // A few are the squared lengths of a truncation's columns, which mostly needs no decomposition.
    const Block<double> part = start_from_features<double, Scalar>(input.values.view(), count, weights);
    return part.colwise().squaredNorm().transpose();
  }
  return leading_eigenvalues_of_factor(input.array.template as<double>().view(), count);
}

}  // namespace

template <Storage Scalar, Storage Data>
typename ProblemTarget<Scalar, Data>::Base ProblemTarget<Scalar, Data>::make_base(const Input<Data>& input,
                                                                                  const Eigen::VectorXd& weights) {
  switch (input.kind) {
    case Kind::features:
      if (weights.size() == 0) return FeaturesTarget<Scalar, Data>(input.values);
      return FeaturesTarget<Scalar, Data>(input.values, weights);
    case Kind::factor:
      return FactorTarget<Scalar, Data>(input.values);
    default:
      return DenseTarget<Scalar, Data>(input.values);
  }
}

template <Storage Scalar, Storage Data>
ProblemTarget<Scalar, Data>::ProblemTarget(const Input<Data>& input, Eigen::VectorXd weights, double ridge)
    : input_(input), weights_(std::move(weights)), ridge_(ridge), base_(make_base(input, weights_)) {
  if (ridge > 0) std::visit([&](const auto& base) { shifted_.emplace(base, ridge); }, base_);
}

template <Storage Scalar, Storage Data>
TargetRef<Scalar> ProblemTarget<Scalar, Data>::ref() const {
  if (shifted_) return *shifted_;
  return std::visit([](const auto& base) { return TargetRef<Scalar>(base); }, base_);
}

template <Storage Scalar, Storage Data>
Eigen::VectorXd ProblemTarget<Scalar, Data>::leading(Index count) const {
  const Eigen::VectorXd own = leading_of(input_, weights_, count);
  if (ridge_ == 0) return own;
  // Sigma + ridge*I: each eigenvalue moves up, and the zero ones that a thin factor leaves out are the ridge itself.
  Eigen::VectorXd all = Eigen::VectorXd::Constant(std::min(count, input_.dim()), ridge_);
  all.head(own.size()) += own;
  return all;
}

template <Storage Scalar, Storage Data>
double ProblemTarget<Scalar, Data>::floor(Index rank) const {
  // The tail from the trace, unless the difference leaves fewer than ten digits of it.
  constexpr double resolved = 1e-6;
  const double trace = ref().trace(), tail = floor_r(trace, leading(rank), rank);
  return tail >= resolved * trace ? tail : floor_r(leading(input_.dim()), rank);
}

template <Storage Scalar, Storage Data>
Block<Scalar> start_of(const Input<Data>& input, Index rank) {
  if (input.kind == Kind::covariance) return start_from_covariance<Scalar, Data>(input.values.view(), rank);
  if (input.kind == Kind::features) return start_from_features<Scalar, Data>(input.values.view(), rank);
  const Index cols = input.values.cols();
  if (cols < rank)
    misuse(fmt::format("start factor {} has {} columns, fewer than --rank {}", quoted(input.request.path), cols, rank),
           fmt::format("use --rank {}, or give a factor with at least {} columns", cols, rank));
  if (cols > rank) return truncate_factor<Scalar, Data>(input.values.view(), rank);
  return input.values.view().template cast<Scalar>();
}

template <Storage Scalar>
Block<double> factor_of(const Input<Scalar>& input) {
  if (input.kind == Kind::features) return compact_factor<Scalar>(input.values.view());
  const auto values = input.array.template as<double>();
  if (input.kind == Kind::factor) return values.view();
  return truncate<double>(values.view(), values.rows());
}

void check_rank(Index rank, Index dim, const std::filesystem::path& path) {
  if (rank >= 1 && rank <= dim) return;
  misuse(fmt::format("--rank is {}, outside 1 to {}, the dimension of {}", rank, dim, quoted(path)),
         fmt::format("choose a rank from 1 to {}", dim));
}

template class ProblemTarget<float>;
template class ProblemTarget<double>;
template class ProblemTarget<double, float>;
template Block<float> start_of<float>(const Input<float>&, Index);
template Block<float> start_of<float>(const Input<double>&, Index);
template Block<double> start_of<double>(const Input<float>&, Index);
template Block<double> start_of<double>(const Input<double>&, Index);
template Block<double> factor_of(const Input<float>&);
template Block<double> factor_of(const Input<double>&);

}  // namespace itspace::cli
