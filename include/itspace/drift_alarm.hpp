// SPDX-License-Identifier: Apache-2.0
//
// DriftAlarm: says when a stream of feature batches has left the distribution it began with, with a stated rate of
// false alarms: so many batches pass between two of them, on average, while nothing changes.
//
//     DriftAlarm alarm({.run_length = 200});
//     if (alarm.observe<float>(batch).alarm) ...
//
// The first batches are the reference. One half of them (every other batch) gives mean, leading directions and
// variances; the other half, which these have not seen, says how batches without drift differ from them: batches are
// drawn from it with replacement. Each new batch is compared in its mean and in its covariance, inside the leading
// directions and by the energy outside of them; the two statistics, in units of their spread without drift, are summed
// up as long as they are above what is usual (CUSUM, Page 1954), so that a small lasting change is found as well as a
// large one. The sum at which the alarm is raised is the one at which streams of drawn batches raise it once in
// run_length batches.
//
// Of samples with heavy tails a few rare ones would decide, more of them than a reference shows: samples beyond 95 % of
// the reference's count as if they lay there.
//
// What that supposes: samples of a batch that are drawn one by one, or, with block > 1, in runs of so many (frames of a
// video). A reference that drifts itself gives a threshold that is too high.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace itspace {

struct DriftOptions {
  double run_length = 200;       // batches between two false alarms, on average
  Index reference_batches = 20;  // the first ones, which are taken to be without drift
  Index rank = 16;               // leading directions
  Index block = 1;               // consecutive samples that belong together
  std::uint64_t seed = 0;
};

struct DriftReport {
  bool watching = false;  // false: the batch went into the reference
  bool alarm = false;     // the sums begin at 0 again after one
  // In units of the spread without drift: the two statistics of this batch, and their sums over the threshold.
  double mean_z = 0, covariance_z = 0;
  double mean_level = 0, covariance_level = 0;  // an alarm from 1 on
};

class ITSPACE_API DriftAlarm {
 public:
  // For files. While the reference is gathered only its samples are there; then all but them.
  struct Parts {
    DriftOptions options;
    Block<double> samples = {};      // of the reference so far, one batch below the other
    std::vector<Index> counts = {};  // rows of each batch
    Index size = 0;                  // of the batches that the threshold is for
    Vector mean = {};                // d
    Block<double> whitening = {};    // d x q: (x - mean)'whitening has the covariance I in the reference
    Block<double> basis = {};        // d x q, orthonormal, of the same directions
    double outside = 0;              // mean energy of the reference outside of them; 0: none
    // Samples that lie further out than nearly all of the reference are drawn in: squared lengths of coordinates and
    // energies beyond the first count as that, and what that takes from their means is made up for by the second.
    double longest = std::numeric_limits<double>::infinity(), inside_scale = 1;
    double most_energy = std::numeric_limits<double>::infinity(), energy_scale = 1;
    Block<double> pool = {};  // a row for each sample of the second half: coordinates, energy
    double threshold = 0;
    double mean_sum = 0, covariance_sum = 0;
    std::uint64_t alarms = 0;
  };

  // @pre run_length >= 2, reference_batches >= 4, rank >= 1, block >= 1.
  explicit DriftAlarm(const DriftOptions& options = {});
  // @pre the shapes agree and all is finite.
  explicit DriftAlarm(Parts parts);
  const Parts& parts() const { return parts_; }

  // Rows are samples. @pre finite, of the dimension of those before, at least one row. Strong guarantee.
  template <Storage Scalar>
  DriftReport observe(const ConstBlockView<Scalar>& batch);

  bool watching() const { return parts_.mean.size() > 0; }
  // A new reference, from the next batch on: after an alarm that was meant to be heard once.
  void relearn();

 private:
  struct Statistics {
    double mean = 0, covariance = 0;
  };
  struct Usual {  // without drift, for batches of one size
    Statistics mean, deviation;
  };
  void learn();
  void draw_in(const ConstBlockView<double>& reference);
  Block<double> coordinates_of(const ConstBlockView<double>& batch) const;
  Statistics statistics_of(const ConstBlockView<double>& coordinates) const;
  std::vector<Statistics> drawn(Index size, Index count, std::uint64_t stream) const;
  const Usual& usual_for(Index size);

  Parts parts_;
  std::map<Index, Usual> usual_;
};

}  // namespace itspace
