// SPDX-License-Identifier: Apache-2.0
#include "map_inputs.hpp"

#include "text.hpp"

#include <itspace/covariance.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace itspace::cli {
namespace {

template <Storage Scalar>
bool has_mean(const Input<Scalar>& input) {
  if (input.kind == Kind::features) return true;
  const auto keys = io::array_keys(input.request.path);
  return std::find(keys.begin(), keys.end(), "mu") != keys.end();
}

}  // namespace

template <Storage Scalar>
Means means_of(const Input<Scalar>& source, const Input<Scalar>& target, bool quiet) {
  for (const auto* input : {&source, &target})
    if (!has_mean(*input)) {
      if (!quiet)
        print_note(
            fmt::format("{} {} is a covariance without a mean (no key mu), so both means are taken for 0: feed "
                        "`itspace transform` with centred samples",
                        input->request.role, quoted(input->request.path)));
      const Eigen::VectorXd zero = Eigen::VectorXd::Zero(source.dim());
      return {zero, zero, false};
    }
  return {mean_of(source), mean_of(target)};
}

template <Storage Scalar>
double samples_of(const Input<Scalar>& input, std::optional<Index> told) {
  if (input.kind == Kind::features) {
    if (told)
      misuse(fmt::format("--{}-samples is {}, but {} has features, which are counted", input.request.role, *told,
                         quoted(input.request.path)),
             "leave it out: it is for a covariance, which does not tell");
    return static_cast<double>(input.values.rows());
  }
  return told ? static_cast<double>(*told) : 0.0;
}

template <Storage Scalar>
LowRankGaussian moments_of(const Input<Scalar>& input, const Eigen::VectorXd& mean, double samples) {
  LowRankGaussian model;
  if (input.kind == Kind::features)
    model.deviations = deviations<Scalar>(input.values.view());
  else
    model.deviations = input.values.view().diagonal().template cast<double>().cwiseMax(0.0).cwiseSqrt();
  const double variance = model.deviations.squaredNorm() / static_cast<double>(input.dim());
  model.factor.resize(input.dim(), 0);
  model.mean = mean;
  model.remainder = variance > 0 ? variance : 1.0;
  model.samples = samples;
  return model;
}

template <Storage Scalar>
Input<Scalar> standardised(const Input<Scalar>& input, const LowRankGaussian& moments) {
  Block<Scalar> values = input.values.view();
  if (input.kind == Kind::features)
    standardise_features<Scalar>(mean<Scalar>(input.values.view()), moments.deviations, values);
  else
    standardise_covariance<Scalar>(moments.deviations, values);
  Input<Scalar> out = input;
  out.values = HeldBlock<Scalar>(std::move(values));
  return out;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                  \
  template Means means_of<Scalar>(const Input<Scalar>&, const Input<Scalar>&, bool);                 \
  template double samples_of<Scalar>(const Input<Scalar>&, std::optional<Index>);                    \
  template LowRankGaussian moments_of<Scalar>(const Input<Scalar>&, const Eigen::VectorXd&, double); \
  template Input<Scalar> standardised<Scalar>(const Input<Scalar>&, const LowRankGaussian&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cli
