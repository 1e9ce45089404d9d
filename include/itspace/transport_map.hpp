// SPDX-License-Identifier: Apache-2.0
//
// Transport maps: moving samples from one Gaussian to another in O(dr) per sample.
//
// With a rank budget a covariance is modelled as Y Y' + delta I. The linear map between two such models is a scalar
// times I plus low rank: built in O(dr^2), applied in O(ndr), never d x d. Where each feature is scaled by itself
// first, two diagonals come in, and the cost stays.
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

// N(mean, factor factor' + remainder I); of a standardised one the covariance is D (factor factor' + remainder I) D
// with D = diag(deviations), so that factor and remainder are those of the correlation matrix.
struct LowRankGaussian {
  Block<double> factor;       // d x r
  Vector mean;                // d
  double remainder = 0;       // delta > 0
  Vector deviations = {};     // d, the standard deviations of the features, 0 for a constant one; empty: not known
  bool standardised = false;  // needs the deviations
  double samples = 0;         // how many are behind it, the effective count where they have weights; 0: not known
};

inline constexpr double default_remainder_floor = 1e-6;

struct ModelOptions {
  double floor = default_remainder_floor;
  Vector deviations = {};  // as in the model: of the features themselves, before they were standardised
  bool standardised = false;
  double samples = 0;
  // rho in [0, 1]: the model is that of (1 - rho) Sigma + rho (tr Sigma/d) I; see shrinkage.hpp for the rho of samples.
  double shrinkage = 0;
};

// The model of a target with factor Y: delta = (tr Sigma - ||B||^2)/(d - r) with B the certificate's factor at Y, which
// is never negative (one pass); at least `floor` times the mean variance tr Sigma/d, since a tiny delta blows up the
// directions that one side has and the other lacks.
template <Storage Scalar>
ITSPACE_API LowRankGaussian model_of(const TargetArgument<Scalar>& target,
                                     const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                     const Eigen::VectorXd& mean, const ModelOptions& options = {});
template <Storage Scalar>
LowRankGaussian model_of(const TargetArgument<Scalar>& target,
                         const std::type_identity_t<ConstBlockView<Scalar>>& factor, const Eigen::VectorXd& mean,
                         double floor) {
  return model_of<Scalar>(target, factor, mean, ModelOptions{.floor = floor});
}

// What the kinds `mean` and `scale` need to know, in two sweeps: mean, deviations and effective count of a feature set,
// with a factor of no columns and the mean variance (1 where all features are constant) for the remainder.
template <Storage Scalar>
ITSPACE_API LowRankGaussian model_of_features(const ConstBlockView<Scalar>& features,
                                              const Eigen::VectorXd& weights = {});

enum class MapKind {
  monge,        // the optimal transport itself: symmetric, moves samples least under the Gaussian model
  whiten,       // whitening, then recoloring: S^(1/2) X^(-1/2), the paper's map
  mean,         // the shift of the means alone: A = I
  scale,        // each feature by itself: A = diag(s_to/s_from)
  scale_monge,  // "scale+monge": the Monge map between the standardised models, scaled on both sides
};
inline constexpr MapKind map_kinds[] = {MapKind::monge, MapKind::whiten, MapKind::mean, MapKind::scale,
                                        MapKind::scale_monge};
ITSPACE_API std::string_view name(MapKind kind);
ITSPACE_API std::optional<MapKind> map_kind_named(std::string_view text);
// "monge, whiten, mean, scale or scale+monge", for messages.
ITSPACE_API std::string_view map_kind_names();

// What is kept of a shift, from 0 (nothing of it was seen) to 1 (all of it): the map goes not to the model `to` but to
// the point at that share of the way, the displacement interpolation. For every kind but whiten it is
// x -> x + t (T(x) - x), the mean and the linear part each with its own t; whiten whitens to the same point.
struct Kept {
  double mean = 1;
  double covariance = 1;   // of what the low-rank part does
  Vector deviations = {};  // of each feature's change of scale, d; empty: 1 for all
};

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
  // x -> to.mean + A (x - from.mean). @pre equal dimensions, positive remainders; factors of at least one column for
  // monge, whiten and scale+monge; deviations for scale; standardised models for scale+monge, and for it alone among
  // those with a low-rank part.
  //
  // A feature that is constant on one side, or on both, has nothing to scale by: it is shifted by the means and keeps
  // its scale (a factor of 1), and scale+monge leaves it out of its low-rank part.
  TransportMap(const LowRankGaussian& from, const LowRankGaussian& to, MapKind kind = MapKind::monge,
               const Kept& kept = {});

  // What a map is made of, for files: A = D_to (scalar I + basis (core - scalar I) basis') D_from^(-1).
  struct Parts {
    MapKind kind = MapKind::monge;
    double scalar = 1;                 // any where m = d
    Block<double> basis;               // d x m, orthonormal columns; m = 0 for mean and scale
    Block<double> core;                // m x m
    Vector mean_from, mean_to;         // d
    Block<double> from_root, to_root;  // m x m, lower triangular: LL' are the two covariances inside the basis
    double from_remainder = 1, to_remainder = 1;
    Vector scale_from = {}, scale_to = {};    // D_from and D_to, d positive values; empty: I
    double samples_from = 0, samples_to = 0;  // behind the two models; 0: not known
    Kept kept = {};                           // of the shift that was seen: mean_to, to_root and scale_to have it
  };
  // @pre the shapes fit each other and the kind, basis has orthonormal columns, the roots are lower triangles with
  // positive diagonals.
  explicit TransportMap(Parts parts);
  const Parts& parts() const { return parts_; }

  Index dim() const { return parts_.basis.rows(); }
  MapKind kind() const { return parts_.kind; }

  // Every row x of samples (n x d) becomes T(x), in place. Call it on chunks of a set that is too large. Samples with a
  // value that is not finite are refused, and all are left as they are. A map that keeps nothing of a shift changes no
  // bit.
  template <Storage Scalar>
  void apply(BlockView<Scalar> samples) const;

  // The map back, A^(-1). It is the map of the same kind from `to` to `from` for all but whiten, and undoes this one
  // for all.
  TransportMap inverse() const;

  // A spelled out, d x d: for small d.
  Block<double> matrix() const;

  // E||T(x) - x||^2 for x from the `from` model: W2^2 between the two models where the map is optimal.
  double displacement() const;

  // Warns where the samples behind the two models are too few for the low-rank part, by the counts given here or else
  // those of the models, where they are known.
  MapDiagnosis diagnose(std::optional<Index> samples_from = {}, std::optional<Index> samples_to = {},
                        const SideNames& names = {}) const;

 private:
  void make_low_rank_part(const LowRankGaussian& from, const LowRankGaussian& to);
  void make_scales(const Eigen::VectorXd& from, const Eigen::VectorXd& to);
  void prepare();
  bool is_scaled() const { return parts_.scale_from.size() > 0; }
  double outside() const;  // what is done outside the basis, in the frame of the scales
  Eigen::VectorXd outside_shares() const;
  double largest_stretch() const;
  double condition() const;

  Parts parts_;
  bool moves_nothing_ = false;
  Vector factors_;  // scalar D_to D_from^(-1); empty where there are no scales
  // (core/scalar - I)' basis' D_to, m x d, and D_to^(-1) basis, in both storage types: apply is two skinny products.
  Block<double> scaled_basis_, update_;  // the first: empty where there are no scales
  Block<float> basis32_, update32_;
};

}  // namespace itspace
