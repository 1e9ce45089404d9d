// SPDX-License-Identifier: Apache-2.0
//
// Which rows of an instance play which part, by seed.
#pragma once

#include "instances.hpp"

#include <cstdint>
#include <vector>

namespace itspace::experiments {

// The streams of the seeded generator that this experiment draws from, so that no two draws are alike.
namespace stream {
inline constexpr std::uint64_t source_rows = 101, target_rows = 102, held_out_rows = 103, mixed_directions = 104;
}

struct Split {
  std::vector<Index> train;            // source rows: the head, the scaler, the source's moments
  std::vector<Index> unlabeled, test;  // target rows: the target's moments; evaluation
  bool paired = false;                 // row i is the same thing in both domains
};

// Source: four rows in five. Target: one half each. At most `most_rows` of each domain.
//
// Where both domains have the same labels in the same order, row i is taken to be the same thing seen twice (a song
// with and without noise): then the source trains on the rows of the unlabeled half, so that nothing it saw is in the
// test half.
Split split_rows(const Instance& instance, std::uint64_t seed, Index most_rows);

// The test rows that can be judged: all, or with `closed_set` those whose label the training rows have.
// @throws std::invalid_argument where a class has no test sample or, without `closed_set`, a test label is unknown to
// the source.
std::vector<Index> judged_rows(const Instance& instance, const Split& split, bool closed_set);

}  // namespace itspace::experiments
