// SPDX-License-Identifier: Apache-2.0
//
// What a factor is worth, and whether the trace that came with it tells the truth. The returned iterate is compared
// with numbers computed anew; the other rows can only be held against each other and against the rules of the method.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>
#include <itspace/trace.hpp>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace itspace {

// Computed from the factor and the target, without a look at the trace.
struct Found {
  Index dim = 0, rank = 0;
  double target_trace = not_a_number;
  double factor_squared = not_a_number;  // ||Y||^2
  double objective = not_a_number;
  double resolution = not_a_number;  // of the objective
  double epsilon = 0;                // of the storage type it was computed in
};

struct Claim {
  std::string name;
  bool holds = false;
  std::string claimed, found;
};

ITSPACE_API std::vector<Claim> check_claims(const Trace& trace, const Found& found);

// Whether the factor with this checksum is the one that the trace was saved with. @pre the trace names one.
ITSPACE_API Claim checksum_claim(const Trace& trace, const std::string& found);

struct ITSPACE_API Verification {
  Found found;
  Step certificate;           // at the factor, by the most accurate route there is
  std::vector<Claim> claims;  // empty where there was no trace
  // What the trace says of its run, Trace::certified(); empty where there was none. A trace may own up to a run that
  // was not: then its claims can hold all the same.
  std::optional<bool> certified;

  bool holds() const;  // the objective is finite, and no claim is false
};

// Through the factor of the target where it has one, otherwise by the QR route; nothing is taken from the trace.
template <Storage Scalar>
ITSPACE_API Verification verify(const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                const TargetArgument<Scalar>& target, const Trace* trace = nullptr);

}  // namespace itspace
