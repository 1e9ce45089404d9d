// SPDX-License-Identifier: Apache-2.0
//
// Transport maps: moving samples from one Gaussian to another in O(dr) per sample.
//
// With a rank budget a covariance is modelled as Y Y' + delta I. The linear map between two such models is a scalar
// times I plus low rank: built in O(dr^2), applied in O(ndr), never d x d.
//
//     LowRankGaussian from = model_of<float>(target, target_factor, target_mean);   // where the samples come from
//     LowRankGaussian to = model_of<float>(source, source_factor, source_mean);     // the frame they should fit
//     TransportMap map(from, to);
//     map.apply<float>(samples);                                                    // n x d, in place
//
// Adaptation helps where the shift between the two is of second order. Where it is not, or where n is small against d,
// a map can hurt: look at diagnose(), and report results without adaptation and with the means alone beside it.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace itspace {

// N(mean, factor factor' + remainder I).
struct LowRankGaussian {
  Block<double> factor;  // d x r
  Vector mean;           // d
  double remainder = 0;  // delta > 0
};

inline constexpr double default_remainder_floor = 1e-6;

// The model of a target with factor Y: delta = (tr Sigma - ||B||^2)/(d - r) with B the certificate's factor at Y, which
// is never negative (one pass); at least `floor` times the mean variance tr Sigma/d, since a tiny delta blows up the
// directions that one side has and the other lacks.
template <Storage Scalar>
ITSPACE_API LowRankGaussian model_of(const TargetArgument<Scalar>& target,
                                     const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                     const Eigen::VectorXd& mean, double floor = default_remainder_floor);

enum class MapKind {
  monge,   // the optimal transport itself: symmetric, moves samples least under the Gaussian model
  whiten,  // whitening, then recoloring: S^(1/2) X^(-1/2), the paper's map
};
ITSPACE_API std::string_view name(MapKind kind);
ITSPACE_API std::optional<MapKind> map_kind_named(std::string_view text);

// How far the map moves samples and what it leans on, under the model it was made from.
struct MapDiagnosis {
  double displacement = 0;           // E||T(x) - x||^2
  double relative_displacement = 0;  // its root over the root of the total variance of the samples
  double mean_share = 0;             // which share of the displacement is the shift of the means
  double touched_variance = 0;       // share of the samples' variance inside the low-rank part
  double condition = 0;              // of the linear part
  std::vector<std::string> warnings;
};

// How the warnings of a diagnosis call the two sides: as whoever asks for it knows them.
struct SideNames {
  std::string_view from = "the from side";
  std::string_view to = "the to side";
};

class ITSPACE_API TransportMap {
 public:
  // x -> to.mean + A (x - from.mean). @pre equal dimensions, positive remainders.
  TransportMap(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind = MapKind::monge);

  // What a map is made of, for files: A = scalar I + basis (core - scalar I) basis'.
  struct Parts {
    MapKind kind = MapKind::monge;
    double scalar = 1;                 // any where m = d
    Block<double> basis;               // d x m, orthonormal columns
    Block<double> core;                // m x m
    Vector mean_from, mean_to;         // d
    Block<double> from_root, to_root;  // m x m, lower triangular: LL' are the two covariances inside the basis
    double from_remainder = 1, to_remainder = 1;
  };
  // @pre the shapes fit each other, basis has orthonormal columns, the roots are lower triangles with positive
  // diagonals.
  explicit TransportMap(Parts parts);
  const Parts& parts() const { return parts_; }

  Index dim() const { return parts_.basis.rows(); }
  MapKind kind() const { return parts_.kind; }

  // Every row x of samples (n x d) becomes T(x), in place. Call it on chunks of a set that is too large. Samples with a
  // value that is not finite are refused, and all are left as they are.
  template <Storage Scalar>
  void apply(BlockView<Scalar> samples) const;

  // The map back, A^(-1). It is the map of the same kind from `to` to `from` for monge, and undoes this one for both.
  TransportMap inverse() const;

  // A spelled out, d x d: for small d.
  Block<double> matrix() const;

  // E||T(x) - x||^2 for x from the `from` model: W2^2 between the two models where the map is optimal.
  double displacement() const;

  // With the sample counts behind the two models, where they are known, it warns when they are too few.
  MapDiagnosis diagnose(std::optional<Index> samples_from = {}, std::optional<Index> samples_to = {},
                        const SideNames& names = {}) const;

 private:
  void prepare();

  Parts parts_;
  // (core/scalar - I)' basis', m x d, and the basis, in both storage types: apply is two skinny products.
  Block<double> update_;
  Block<float> basis32_, update32_;
};

}  // namespace itspace
