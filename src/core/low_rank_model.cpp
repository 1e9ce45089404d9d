// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/transport_map.hpp>

#include "core/feature_moments.hpp"
#include "core/map_models.hpp"
#include "core/require.hpp"

#include <cmath>
#include <string>

namespace itspace {

void check_deviations(const Eigen::VectorXd& deviations, Index d, const std::string& what) {
  require(deviations.size() == d, what, " has deviations of ", deviations.size(), " values for ", d,
          " features; give one for each, or none");
  for (Index j = 0; j < d; ++j)
    require(deviations(j) >= 0 && std::isfinite(deviations(j)), what, "'s deviations[", j, "] is ", deviations(j),
            "; standard deviations are 0 or more and finite");
}

void check_samples(double samples, const std::string& what) {
  require(samples == 0 || (samples >= 1 && std::isfinite(samples)), what, " has ", samples,
          " samples; give how many are behind it, at least 1, or 0 where that is not known");
}

void check_model(const LowRankGaussian& model, const char* which, MapKind kind) {
  const std::string what = text("the ", which, " model");
  require(model.factor.rows() > 0 && (model.factor.cols() > 0 || !has_low_rank_part(kind)), what, " has a factor of ",
          model.factor.rows(), " x ", model.factor.cols(), "; it needs at least one row and one column");
  require(model.mean.size() == model.factor.rows(), what, " has a mean of ", model.mean.size(),
          " values and a factor of ", model.factor.rows(), " rows; they must agree");
  require(model.remainder > 0 && std::isfinite(model.remainder), what, " has remainder ", model.remainder,
          "; it must be positive, since the map divides by it");
  check_finite<double>(model.factor, text(what, "'s factor"));
  require(model.mean.allFinite(), what, "'s mean has a value that is not finite");
  check_samples(model.samples, what);
  if (model.deviations.size() > 0) check_deviations(model.deviations, model.factor.rows(), what);
  require(model.deviations.size() > 0 || !(has_scales(kind) || model.standardised), what, " has no deviations; ",
          has_scales(kind) ? text("a map of kind ", name(kind)) : "a standardised model",
          " needs the standard deviation of every feature");
  require(model.standardised || kind != MapKind::scale_monge, what,
          " is not standardised; a map of kind scale+monge needs factor and remainder of the standardised features");
  require(!model.standardised || has_scales(kind) || !has_low_rank_part(kind), what, " is standardised; a map of kind ",
          name(kind), " needs factor and remainder of the features as they are, or ask for scale+monge");
}

template <Storage Scalar>
LowRankGaussian model_of(const TargetArgument<Scalar>& given,
                         const std::type_identity_t<ConstBlockView<Scalar>>& factor, const Eigen::VectorXd& mean,
                         const ModelOptions& options) {
  const TargetRef<Scalar> target = given;
  check_model_options(options);
  check_finite<Scalar>(factor, "factor");
  require(mean.allFinite(), "the mean has a value that is not finite; remove or replace such samples first");
  check_samples(options.samples, "the model");
  if (options.deviations.size() > 0) check_deviations(options.deviations, target.dim(), "the model");
  require(!options.standardised || options.deviations.size() > 0,
          "the model is standardised and has no deviations; give those that the features were divided by");
  const auto at = evaluate<Scalar>(target, factor);
  require(at.status != Status::not_a_covariance, "the target is not a covariance: ", at.reason);
  require(!failed(at.status), "the product of the target with the factor is not finite");
  const double captured = at.image.template cast<double>().squaredNorm(), rho = options.shrinkage;
  const double remainder = remainder_beyond(at.target_trace, captured, target.dim(), factor.cols(), options);
  return {std::sqrt(1 - rho) * factor.template cast<double>(),
          mean,
          remainder,
          options.deviations,
          options.standardised,
          options.samples};
}

template <Storage Scalar>
LowRankGaussian model_of_features(const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights) {
  LowRankGaussian model;
  model.deviations = deviations<Scalar>(features, weights);
  model.mean = gather_moments<Scalar>(features, weights).mean;
  model.samples = effective_samples(features.rows(), weights);
  model.factor.resize(features.cols(), 0);
  const double variance = model.deviations.squaredNorm() / static_cast<double>(features.cols());
  model.remainder = variance > 0 ? variance : 1;
  return model;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                              \
  template LowRankGaussian model_of<Scalar>(const TargetArgument<Scalar>&,                       \
                                            const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                            const Eigen::VectorXd&, const ModelOptions&);        \
  template LowRankGaussian model_of_features<Scalar>(const ConstBlockView<Scalar>&, const Eigen::VectorXd&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
