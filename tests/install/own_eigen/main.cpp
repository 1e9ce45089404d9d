// SPDX-License-Identifier: Apache-2.0
//
// What a program does that has Eigen matrices of its own: products of all kinds, beside calls of the library that hand
// memory over the boundary in both directions.
#include <itspace/itspace.hpp>

#include "own_products.hpp"

#include <vector>

namespace {

// An operator of the user's, with a matrix of the user's.
struct Operator {
  Eigen::MatrixXd sigma;
  itspace::Index dim() const { return sigma.rows(); }
  double trace() const { return sigma.trace(); }
  void apply(const itspace::ConstBlockView<double>& y, itspace::BlockView<double> out) const { out = sigma * y; }
};

}  // namespace

int main() {
  own_products_of_all_kinds();

  const Eigen::MatrixXd features = Eigen::MatrixXd::Random(400, 61);
  const Operator own{features.transpose() * features / 400};
  itspace::AlignOptions options;
  options.steps = 3;
  options.keep_iterates = true;
  std::vector<itspace::Block<double>> kept;
  for (int round = 0; round < 3; ++round) {
    auto by_operator = itspace::align<double>(own, 5, options, [&](const itspace::Step&, const auto& y) {
      kept.emplace_back(y);
      return itspace::StepAction::proceed;
    });
    expect(by_operator.trace.certified(), "a run on an operator is certified");
    kept.push_back(std::move(by_operator.factor));
    kept.insert(kept.end(), by_operator.iterates.begin(), by_operator.iterates.end());

    const itspace::FeaturesTarget<double> target(features);
    const auto start = itspace::start_from_features<double>(features.topRows(100), 5);
    const auto by_features = itspace::align<double>(target, start, options);
    expect(by_features.trace.certified(), "a run on features is certified");
    Eigen::MatrixXd product = by_features.factor * by_features.factor.transpose();  // a Block in the user's products
    product = product * own.sigma;
    expect(product.allFinite(), "a product with a factor");
    Eigen::VectorXd mean = target.mean();
    mean = itspace::mean<double>(features) - mean;
    expect(mean.norm() < 1e-12, "a mean");
    const auto model = itspace::model_of<double>(target, by_features.factor, target.mean());
    itspace::TransportMap map(model, model);
    itspace::Block<double> samples = features;
    map.apply<double>(samples);
    expect((samples - features).norm() < 1e-9 * features.norm(), "the map of a model to itself");
    itspace::Block<double> moved = std::move(samples);
    samples = moved.topRows(3);
    kept.push_back(moved);
  }
  own_products<Eigen::MatrixXd>("a product after all that");
  std::printf("own_eigen: fine, %zu blocks\n", kept.size());
  return EXIT_SUCCESS;
}
