// SPDX-License-Identifier: Apache-2.0
//
// A campaign: random alignments of every kind, each held against the definition in long double. A seed makes a case,
// a case is run and judged, and what is wrong with it is said in words. The promises that are judged:
//
//   - a certified step did not move away: W2^2 of the definition rose by no more than the row's allowance;
//   - an honest target never ends in a failure, and no number is not finite;
//   - the objective lies within its stated resolution of the definition;
//   - verify() agrees with every honest trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace itspace::test {

enum class Fault { certified_rise, false_alarm, not_finite, outside_resolution, verify_disagrees, worse_than_start };
inline constexpr int fault_kinds = 6;
const char* name(Fault fault);

struct Complaint {
  Fault fault;
  std::string what;
};

struct Verdict {
  std::string description;  // of the case
  std::vector<Complaint> complaints;
  int steps = 0, certified = 0;
  bool ended_early = false;      // converged at rounding level before its last step
  double worst_rise = 0;         // of a certified step, in units of eps (tr Sigma + ||Y_k||^2 + ||Y_{k+1}||^2)
  double worst_objective = 0;    // |objective - F|/resolution
  double median_resolution = 0;  // of the rows, in the same units
};

// The case of a seed. `say`: with each row of its trace in the description.
Verdict run_case(std::uint64_t seed, bool say = false);

}  // namespace itspace::test
