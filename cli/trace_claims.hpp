// SPDX-License-Identifier: Apache-2.0
//
// What a trace claims, held against what a factor and its target show. The returned iterate is compared with numbers
// computed anew; the other rows can only be held against each other and against the rules of the method.
#pragma once

#include <itspace/trace.hpp>

#include <string>
#include <vector>

namespace itspace::cli {

// Computed from the factor and the target, without a look at the trace.
struct Found {
  Index dim, rank;
  double target_trace;
  double factor_squared;  // ||Y||^2
  double objective;
  double epsilon;  // of the storage type it was computed in
};

struct Claim {
  std::string name;
  bool holds;
  std::string claimed, found;
};

std::vector<Claim> check_claims(const Trace& trace, const Found& found);

}  // namespace itspace::cli
