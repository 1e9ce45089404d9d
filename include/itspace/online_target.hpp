// SPDX-License-Identifier: Apache-2.0
//
// OnlineTarget: the covariance of a stream of feature batches, which forgets. No d x d matrix exists, and memory does
// not grow with the stream.
//
//     OnlineTarget<float> target({.half_life = 20});   // a sample weighs half after 20 more batches
//     target.update(batch);                            // n x d, as often as there are batches
//     align<float>(target, start);                     // it is a target like any other, of the batches so far
//
// What it is: Sigma = (1/c) sum_i w_i (z_i - mu)(z_i - mu)' over all samples so far, each with its own weight times
// what is left of it by the half-life, mu their weighted mean and c = sum w - (sum w^2)/(sum w), as in FeaturesTarget.
//
// What is kept of it: the samples of the last batches themselves, and of all older ones the k leading directions and a
// diagonal. The mean, the variance of every feature and so the trace, the sum of weights and the effective count are
// those of all samples, to rounding, for ever. What is lost are correlations outside the k directions: each time a
// batch grows old a part E of Sigma, positive semidefinite, is replaced by its diagonal, which changes Sigma by at most
// ||E||_2, and is discounted with the rest. Sigma is positive semidefinite always.
//
// Nothing is lost with a window, where k >= d, and while no more than k samples have grown old. Then, with an infinite
// half-life, Sigma does not depend on the order of the samples nor on how they were cut into batches (to rounding).
// Otherwise that holds for the mean, the variances, the trace, and the counts, and for Sigma within what is lost.
//
// Streams come class by class, and their covariance then moves with the classes. With `balance` and the class of each
// sample (what a frozen classifier predicts, or its probabilities) every class has a part of the stream to itself, with
// a mean of its own, and counts as much as in the source, however much of it came: the weights of its samples are
// scaled to sum up to its share. Classes that have not come yet are left out, and the shares of the others scaled up.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>
#include <itspace/target.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace itspace {

enum class HalfLifeUnit {
  batches,
  samples,  // a batch of n rows makes all before it n samples older; its own rows are of one age
};
ITSPACE_API std::string_view name(HalfLifeUnit unit);

// The classes of a source and how often each occurs there.
struct ClassBalance {
  Vector shares = {};                     // one for each class, above 0; they count relative to their sum
  std::vector<std::string> classes = {};  // their names, for messages and files; by default 0, 1, ...
};

struct OnlineOptions {
  double half_life = std::numeric_limits<double>::infinity();  // after which a sample weighs half; infinite: never
  HalfLifeUnit unit = HalfLifeUnit::batches;
  Index window = 0;         // > 0: the last so many batches, exactly and with full weight, and nothing older
  Index exact_batches = 1;  // how many are kept as they came, where there is no window
  std::optional<Index> kept_rank = {};       // k; by default 64, and four times the rank of an OnlineAligner
  std::uint64_t seed = 0;                    // of the random signs by which what is new in a batch is looked for
  std::optional<ClassBalance> balance = {};  // every batch must then come with the classes of its samples
};

// The class of each sample of a batch, as a number from 0 on, or a row of class probabilities for each: a sample then
// counts in each class by its probability. At most one of the two.
struct Predicted {
  std::vector<Index> labels = {};
  Block<double> probabilities = {};

  bool given() const { return !labels.empty() || probabilities.size() > 0; }
};

template <Storage Scalar>
class ITSPACE_API OnlineTarget {
 public:
  // Samples about their own mean: the scatter sum_i w_i (z_i - mean)(z_i - mean)' is discount times rows'rows, plus,
  // of old samples, a diagonal that makes up for the diagonal `variances`.
  struct Group {
    std::shared_ptr<const Block<Scalar>> rows;
    Vector mean, variances;  // variances: of the scatter before the discount
    double weight = 0, weight_squares = 0;
    double discount = 1;
    Index label = 0;          // its class; 0 where there are none
    std::uint64_t batch = 0;  // that it came with; of old samples the last one
  };
  // What a stream is made of, for files.
  struct Parts {
    OnlineOptions options;
    std::uint64_t version = 0;       // batches so far
    std::vector<Group> old = {};     // at most one for each class, in the order of the classes
    std::vector<Group> recent = {};  // as they came, the oldest first
  };

  // @pre half_life > 0; no half-life beside a window; the counts at least 1 (the window 0 or more).
  explicit OnlineTarget(const OnlineOptions& options = {});
  // @pre the shapes agree and all is finite.
  explicit OnlineTarget(Parts parts);
  const Parts& parts() const { return parts_; }

  // Rows are samples; weights, where given, are one for each, 0 or more. False where there is nothing in the batch (no
  // rows, no weight): then it was skipped. Strong guarantee: a batch that is refused (other dimension, a value that is
  // not finite, a class that the source does not have) changes nothing.
  bool update(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights = {},
              const Predicted& predicted = {});
  // The same as another stream, which shares the samples with this one; none where the batch was skipped.
  std::optional<OnlineTarget> updated(const ConstBlockView<Scalar>& batch, const Eigen::VectorXd& weights = {},
                                      const Predicted& predicted = {}) const;

  Index dim() const { return mean_.size(); }  // 0 until the first batch
  double trace() const { return trace_; }     // 0 until there are two samples: so is Sigma
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;
  std::uint64_t version() const { return parts_.version; }

  const Vector& mean() const { return mean_; }
  Vector deviations() const;  // standard deviations of the features
  double weight() const { return weight_; }
  double effective_samples() const;  // (sum w)^2/(sum w^2); 0 before the first batch
  const OnlineOptions& options() const { return parts_.options; }

  // With `balance`: what came of each class, as shares of all that came, with what is left of it (0: nothing so far);
  // and the mean of each, a row for a class, 0 where nothing came.
  Vector class_shares() const;
  Block<double> class_means() const;

 private:
  void let_grow_old();
  void prepare();
  // Of each class: the weight of all its samples.
  Vector class_weights() const;

  Parts parts_;
  // Made of the parts, for products.
  double weight_ = 0, weight_squares_ = 0, normaliser_ = 0;
  Vector mean_, variances_;  // variances_: the diagonal of Sigma
  Block<Scalar> means_;      // of all groups, old and recent, about the mean
  Vector means_factors_;     // their weights in Sigma, rooted
  Vector rows_factors_;      // and those of the rows of each group
  Vector diagonal_;          // of the old parts; empty where it is 0
  double trace_ = 0;
};

}  // namespace itspace
