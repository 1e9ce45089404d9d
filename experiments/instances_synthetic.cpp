// SPDX-License-Identifier: Apache-2.0
#include "instances_synthetic.hpp"

#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace itspace::experiments {
namespace {

constexpr double decay = 1.2, least_eigenvalue = 1e-4;
constexpr int class_count = 10;
constexpr Index class_directions = 16;
constexpr double class_spread = 0.8;  // of the means, in deviations of each direction
constexpr double any_angle = 2, wide_angle = 0.35, mild_angle = 0.08;
constexpr Index least_labelled_samples = 1000;

// Streams of the generator.
enum Draw : std::uint64_t { source_samples = 1, target_samples, class_means, common_axes, target_axes };

// A dense rotation of every row in O(d log d): planes (i, i + 1), then (i, i + 2), (i, i + 4), ..., each by its own
// normal angle of deviation `angle`.
void rotate_rows(Block<float>& samples, double angle, Draw draw) {
  struct Plane {
    Index first, second;
    float cosine, sine;
  };
  std::vector<Plane> planes;
  const Random random(0, draw);
  for (Index distance = 1; distance < samples.cols(); distance *= 2)
    for (Index i = 0; i + distance < samples.cols(); ++i) {
      if ((i & distance) != 0) continue;  // the partner of an earlier one
      const double by = angle * random.normal(planes.size());
      planes.push_back({i, i + distance, static_cast<float>(std::cos(by)), static_cast<float>(std::sin(by))});
    }
  for (Index row = 0; row < samples.rows(); ++row) {
    float* x = samples.row(row).data();
    for (const Plane& plane : planes) {
      const float a = x[plane.first], b = x[plane.second];
      x[plane.first] = plane.cosine * a - plane.sine * b;
      x[plane.second] = plane.sine * a + plane.cosine * b;
    }
  }
}

}  // namespace

void fill_synthetic(Index dim, Labels labels, Instance& instance) {
  const bool labelled = labels == Labels::wanted;
  const Index count = labelled ? std::max(2 * dim, least_labelled_samples) : 2 * dim;
  Eigen::RowVectorXf scales(dim);
  for (Index i = 0; i < dim; ++i)
    scales[i] = static_cast<float>(std::sqrt(std::max(std::pow(static_cast<double>(i + 1), -decay), least_eigenvalue)));
  Block<float> means(class_count, std::min(class_directions, dim));
  Random(0, class_means).fill_normal<float>(means);
  means *= static_cast<float>(class_spread);

  for (LabelledSet* set : {&instance.source, &instance.target}) {
    const bool is_source = set == &instance.source;
    set->features.resize(count, dim);
    Random(0, is_source ? source_samples : target_samples).fill_normal<float>(set->features);
    if (labelled)
      for (Index i = 0; i < count; ++i) {
        // An odd offset: otherwise the two domains would have the same labels row by row and look paired.
        set->labels.push_back(static_cast<int>((i + (is_source ? 0 : 1)) % class_count));
        set->features.row(i).head(means.cols()) += means.row(set->labels.back());
      }
    set->features *= scales.asDiagonal();
    if (!is_source) rotate_rows(set->features, labelled ? mild_angle : wide_angle, target_axes);
    rotate_rows(set->features, any_angle, common_axes);
  }
}

}  // namespace itspace::experiments
