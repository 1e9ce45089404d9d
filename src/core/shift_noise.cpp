// SPDX-License-Identifier: Apache-2.0
#include <itspace/covariance.hpp>
#include <itspace/distance.hpp>
#include <itspace/random.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include "core/feature_moments.hpp"
#include "core/lapack.hpp"
#include "core/map_models.hpp"
#include "core/require.hpp"
#include "core/shuffle.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

void check_counts(const LowRankGaussian& from, const LowRankGaussian& to) {
  for (const LowRankGaussian* model : {&from, &to})
    require(model->samples >= 2 && std::isfinite(model->samples), "the ", model == &from ? "from" : "to", " model has ",
            model->samples,
            " samples; noise is known from the sample counts of both sides, at least 2 each: set them, ",
            "or do not shrink the map");
  require(from.mean.size() == to.mean.size(), "the two models have dimensions ", from.mean.size(), " and ",
          to.mean.size(), "; a map needs them equal");
}

// E||dmu||^2 = tr S_1/n_1 + tr S_2/n_2, whatever the distribution.
Seen mean_shift(const LowRankGaussian& from, const LowRankGaussian& to) {
  return {(to.mean - from.mean).squaredNorm(), trace_of(from) / from.samples + trace_of(to) / to.samples};
}

// Var s_j = s_j^2/(2 n) for normal samples.
Eigen::VectorXd normal_variances(const LowRankGaussian& model) {
  return model.deviations.cwiseAbs2() / (2 * model.samples);
}

// Var s_j = (m4_j - s_j^4)/(4 n s_j^2) for any, with the fourth central moment; not below 0.
template <Storage Scalar>
Eigen::VectorXd fourth_moment_variances(const ConstBlockView<Scalar>& features, const LowRankGaussian& model) {
  const Eigen::RowVectorXd mean = mean_about<Scalar>(features, 0, {}).transpose();
  Eigen::ArrayXd second = Eigen::ArrayXd::Zero(features.cols()), fourth = second;
  for (Index i = 0; i < features.rows(); ++i) {
    const Eigen::ArrayXd square = (features.row(i).template cast<double>() - mean).array().square().transpose();
    second += square;
    fourth += square.square();
  }
  const double n = static_cast<double>(features.rows());
  second /= n;
  fourth /= n;
  // Kurtosis does not depend on the scale, so that the features may be standardised.
  const Eigen::ArrayXd excess = (second > 0).select(fourth / (second * second) - 1, 0.0);
  return (model.deviations.array().square() * excess.max(0.0) / (4 * n)).matrix();
}

void add_deviations(const LowRankGaussian& from, const LowRankGaussian& to, const Eigen::VectorXd& noise,
                    SeenShift& seen) {
  seen.deviations_observed = (to.deviations - from.deviations).cwiseAbs2();
  seen.deviations_noise = noise;
}

bool asks_for_deviations(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind) {
  if (!has_scales(kind)) return false;
  for (const LowRankGaussian* model : {&from, &to})
    require(model->deviations.size() == model->mean.size(), "the ", model == &from ? "from" : "to", " model has ",
            model->deviations.size(), " deviations for ", model->mean.size(), " features; a map of kind ", name(kind),
            " needs all of them");
  return true;
}

// (n_1 S_1 + n_2 S_2)/(n_1 + n_2).
template <Storage Scalar>
class Pooled {
 public:
  Pooled(TargetRef<Scalar> a, double weight_a, TargetRef<Scalar> b, double weight_b)
      : a_(a), b_(b), share_a_(weight_a / (weight_a + weight_b)), share_b_(weight_b / (weight_a + weight_b)) {}

  Index dim() const { return a_.dim(); }
  double trace() const { return share_a_ * a_.trace() + share_b_ * b_.trace(); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
    Block<Scalar> other(out.rows(), out.cols());
    a_.apply(y, out);
    b_.apply(y, other);
    out = static_cast<Scalar>(share_a_) * out + static_cast<Scalar>(share_b_) * other;
  }

 private:
  TargetRef<Scalar> a_, b_;
  double share_a_, share_b_;
};

template <Storage Scalar>
Small inside(const TargetRef<Scalar>& target, const Block<double>& basis) {
  const Block<Scalar> stored = basis.cast<Scalar>();
  Block<Scalar> image(stored.rows(), stored.cols());
  target.apply(stored, image);
  const Small seen = basis.transpose() * image.template cast<double>();
  return 0.5 * (seen + seen.transpose());
}

template <Storage Scalar>
Seen covariance_shift(const TargetRef<Scalar>& a, const LowRankGaussian& from, const TargetRef<Scalar>& b,
                      const LowRankGaussian& to, std::uint64_t seed) {
  require(a.dim() == from.mean.size() && b.dim() == to.mean.size(), "the targets have dimensions ", a.dim(), " and ",
          b.dim(), ", their models ", from.mean.size(), " and ", to.mean.size(), "; they must agree");
  const Pooled<Scalar> pooled(a, from.samples, b, to.samples);
  const Index rank = std::min(a.dim(), from.factor.cols() + to.factor.cols());
  // From a random start: after two Ritz steps it is the leading subspace or, where the spectrum is flat, another that
  // knows as little of which sample was on which side.
  const Block<Scalar> start = random_start<Scalar>(pooled, rank, seed);
  const auto leading =
      align<Scalar>(pooled, start, {.steps = 2, .solver = Solver::ritz, .evaluate_last = false, .seed = seed});
  const Eigen::MatrixXd factor = leading.factor.template cast<double>();
  Svd parts;
  require(svd(factor, SvdSize::thin, parts), "the product of a target with a block is not finite");
  const Block<double> basis = parts.u;
  const Small c1 = inside<Scalar>(a, basis), c2 = inside<Scalar>(b, basis);
  const double total = from.samples + to.samples;
  SmallVector spectrum;
  require(symmetric_eigenvalues(from.samples / total * c1 + to.samples / total * c2, spectrum),
          "the product of a target with a block is not finite");
  const double c = 1 / from.samples + 1 / to.samples;
  return {dense_distance_squared<double>(c1, c2), covariance_noise(spectrum.cwiseMax(0.0), c).mean};
}

// The displacement between the two models without what the means add.
double covariance_displacement(LowRankGaussian from, const LowRankGaussian& to) {
  from.mean = to.mean;
  LowRankGaussian other = to;
  from.standardised = other.standardised = false;  // in the frame
  return TransportMap(from, other).displacement();
}

template <Storage Scalar>
double between_halves(const ConstBlockView<Scalar>& features, Index rank, const AlignOptions& options, double floor) {
  const Index n = features.rows(), half = n / 2;
  const std::vector<Index> order = shuffled(n, options.seed, 0);
  Block<Scalar> first(half, features.cols()), second(n - half, features.cols());
  for (Index i = 0; i < n; ++i)
    (i < half ? first.row(i) : second.row(i - half)) = features.row(order[static_cast<std::size_t>(i)]);
  const FeaturesTarget<Scalar> one(std::move(first)), other(std::move(second));
  const Block<Scalar> start = start_from_target<Scalar>(one, rank);
  const Block<Scalar> aligned = align<Scalar>(other, start, options).factor;
  const auto from = model_of<Scalar>(other, aligned, other.mean(), floor);
  const auto to = model_of<Scalar>(one, start, one.mean(), floor);
  return covariance_displacement(from, to);
}

}  // namespace

NoiseMoments covariance_noise(const Eigen::VectorXd& eigenvalues, double c) {
  require(c > 0 && std::isfinite(c), "c is ", c, "; 1/n1 + 1/n2 must be positive");
  const auto& l = eigenvalues;
  double mean = 0, variance = 0;
  for (Index i = 0; i < l.size(); ++i) {
    require(l(i) >= 0 && std::isfinite(l(i)), "eigenvalues[", i, "] is ", l(i), "; it must be 0 or more and finite");
    for (Index j = 0; j < i; ++j) {
      const double sum = l(i) + l(j), pair = sum > 0 ? l(i) * (l(j) / sum) : 0;
      mean += 2 * pair;
      variance += pair * pair;
    }
    mean += l(i);  // l_i^2/(2 l_i) of the double sum, and l_i/2
    variance += l(i) * l(i) / 4;
  }
  return {c / 2 * mean, 2 * c * c * variance};
}

double Seen::kept() const {
  return observed > 0 ? std::max(0.0, 1 - noise / observed) : 0.0;
}

Kept SeenShift::kept() const {
  Kept kept{mean.kept(), covariance.kept()};
  kept.deviations.resize(deviations_observed.size());
  Seen all;  // in units of the noise of each
  for (Index j = 0; j < deviations_observed.size(); ++j) {
    kept.deviations(j) = Seen{deviations_observed(j), deviations_noise(j)}.kept();
    if (!(deviations_noise(j) > 0)) continue;
    all.observed += deviations_observed(j) / deviations_noise(j);
    all.noise += 1;
  }
  if (all.noise > 0) kept.deviations *= all.kept();  // of many that did not move some seem to
  return kept;
}

std::string_view name(Shrink shrink) {
  return shrink == Shrink::none ? "none" : shrink == Shrink::noise ? "noise" : "halves";
}

std::optional<Shrink> shrink_named(std::string_view text) {
  for (const Shrink shrink : {Shrink::none, Shrink::noise, Shrink::halves})
    if (text == name(shrink)) return shrink;
  return std::nullopt;
}

SeenShift seen_shift(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind) {
  check_counts(from, to);
  require(!has_low_rank_part(kind), "a map of kind ", name(kind),
          " has a low-rank part, whose noise is known from the targets: give them too");
  SeenShift seen{.mean = mean_shift(from, to)};
  if (asks_for_deviations(from, to, kind))
    add_deviations(from, to, normal_variances(from) + normal_variances(to), seen);
  return seen;
}

template <Storage Scalar>
SeenShift seen_shift(const TargetArgument<Scalar>& from_target, const LowRankGaussian& from,
                     const TargetArgument<Scalar>& to_target, const LowRankGaussian& to, MapKind kind,
                     std::uint64_t seed) {
  if (!has_low_rank_part(kind)) return seen_shift(from, to, kind);
  check_counts(from, to);
  SeenShift seen{.mean = mean_shift(from, to)};
  if (asks_for_deviations(from, to, kind))
    add_deviations(from, to, normal_variances(from) + normal_variances(to), seen);
  seen.covariance = covariance_shift<Scalar>(from_target.ref(), from, to_target.ref(), to, seed);
  return seen;
}

template <Storage Scalar>
SeenShift seen_shift_by_halves(const ConstBlockView<Scalar>& from_features, const LowRankGaussian& from,
                               const ConstBlockView<Scalar>& to_features, const LowRankGaussian& to, MapKind kind,
                               const AlignOptions& options, double floor) {
  check_counts(from, to);
  for (const auto* side : {&from_features, &to_features}) {
    const char* which = side == &from_features ? "from" : "to";
    require(side->rows() >= 4, "the ", which, " features have ", side->rows(),
            " rows; halves of at least 2 need 4: shrink by noise instead");
    require(side->cols() == from.mean.size(), "the ", which, " features have ", side->cols(),
            " columns and the models dimension ", from.mean.size(), "; they must agree");
    check_finite<Scalar>(*side, text("the ", which, " features"));
  }
  SeenShift seen{.mean = mean_shift(from, to)};
  if (asks_for_deviations(from, to, kind))
    add_deviations(
        from, to,
        fourth_moment_variances<Scalar>(from_features, from) + fourth_moment_variances<Scalar>(to_features, to), seen);
  if (has_low_rank_part(kind)) {
    const double noise = between_halves<Scalar>(from_features, from.factor.cols(), options, floor) +
                         between_halves<Scalar>(to_features, to.factor.cols(), options, floor);
    seen.covariance = {covariance_displacement(from, to), noise / 4};
  }
  return seen;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                               \
  template SeenShift seen_shift<Scalar>(const TargetArgument<Scalar>&, const LowRankGaussian&,                    \
                                        const TargetArgument<Scalar>&, const LowRankGaussian&, MapKind,           \
                                        std::uint64_t);                                                           \
  template SeenShift seen_shift_by_halves<Scalar>(const ConstBlockView<Scalar>&, const LowRankGaussian&,          \
                                                  const ConstBlockView<Scalar>&, const LowRankGaussian&, MapKind, \
                                                  const AlignOptions&, double);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace
