// SPDX-License-Identifier: Apache-2.0
//
// A subspace whose product with the target is known, and the factors one can read off it. What the baselines share.
#pragma once

#include "baselines/baselines.hpp"
#include "core/subspace.hpp"

#include <chrono>

namespace itspace::baselines {

// [start or nothing, random columns], orthonormal, rank + extra columns.
Block<double> first_block(Index dim, Index rank, const Block<double>* start, const Options& options);

class ExploredSubspace {
 public:
  ExploredSubspace(TargetRef<double> target, Index most_cols);

  Index cols() const { return cols_; }
  auto basis() const { return s_.leftCols(cols_); }
  auto products() const { return sigma_s_.leftCols(cols_); }

  void clear() { cols_ = 0; }
  // Makes x orthonormal to the basis, applies the target (one pass) and appends both. Returns the columns appended.
  Index explore(Block<double> x);
  // Appends columns whose products are known.
  void append(const Block<double>& x, const Block<double>& sigma_x);

  // Ritz vectors of the subspace (leading first) with their products.
  struct Ritz {
    SmallVector values;
    Block<double> vectors, products;
  };
  Ritz ritz(Index count);

  // The factor to report: V theta^(1/2) of the leading Ritz pairs, or the truncated Nystrom factor.
  Block<double> factor(Index rank, bool nystrom, double& objective);

 private:
  TargetRef<double> target_;
  Block<double> s_, sigma_s_;
  Index cols_ = 0;
  HostSpace<double> host_;
};

// Rows and iterates as they come.
class Log {
 public:
  Log(TargetRef<double> target, Index rank, std::string solver);
  void report(Index passes, Block<double> factor, double objective);
  Result<double> finish(double target_trace);

 private:
  Result<double> result_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace itspace::baselines
