// SPDX-License-Identifier: Apache-2.0
//
// align: move a rank-r covariance toward a target, with a certificate at every step.
//
// The state is a d x r factor Y, its covariance is Y*Y'. Each step makes one pass over the target:
//
//     W = Sigma Y,   G = Y'W,   B = W G^(-1/2),   Y+ = (1 - alpha) Y + alpha B
//
// which is the ITSPACE update, without a matrix square root. F(Y) = W2^2(YY', Sigma) is known exactly at every iterate,
// and every step promises F(Y+) <= F(Y) + 2 eps - ((2 - alpha)/alpha) ||Y+ - Y||^2, checked as it runs.
//
//     auto result = itspace::align<double>(target, start, {.steps = 5});
//     result.factor;              // the best iterate
//     result.trace.steps.back();  // objective, certificate, descent
//
// Misuse (sizes, ranges) throws std::invalid_argument. What the numbers do is an outcome: look at result.trace.status.
// align is re-entrant, allocates no block inside its loop (but for iterates that are kept, and once where it turns to
// the factor of a target) and prints nothing.
#pragma once

#include <itspace/export.hpp>
#include <itspace/target.hpp>
#include <itspace/trace.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <vector>

namespace itspace {

// How far to go from Y to B.
class ITSPACE_API StepSize {
 public:
  enum class Kind { by_steps, fixed, line_search };

  StepSize() = default;                 // by the number of steps: 1 for one, 1.1 for 2 to 4, 1.3 from five on
  static StepSize alpha(double alpha);  // @pre 0 < alpha < 2
  static StepSize lambda(
      double lambda);             // the paper's proximal weight: alpha = 2 lambda/(1 + 2 lambda); @pre lambda > 0
  static StepSize line_search();  // the best point on the line through Y and B, at no extra pass

  Kind kind() const { return kind_; }
  double resolve(Index steps) const;  // alpha for a run of that many steps; 1 for line search

 private:
  Kind kind_ = Kind::by_steps;
  double alpha_ = 1;
};

struct AlignOptions {
  Index steps = 2;
  Solver solver = Solver::paper;
  StepSize step_size = {};
  Route route = Route::automatic;

  // The gram route uses (G + delta I)^(-1/2), delta = gram_regularization * tr(G)/r. The certificate stays feasible;
  // its gap grows and is reported.
  double gram_regularization = 0;

  // Where Y has directions that the target does not see, fill them with random ones inside its range (one narrow extra
  // pass). Without completion such a direction stays as it is, and the iteration may stall.
  bool completion = true;

  // Carry one random column beside Y. It finds a leading direction of the target that Y is orthogonal to, which no
  // certificate at Y can see, and swaps it in when that gains more than the plain step can. No extra pass.
  bool probe = false;

  // Solver ritz. Columns carried beside the r of the factor, random at the start (default 8; 16 for one or two steps),
  // and whether the last iterate is taken from the whole subspace rather than its leading part.
  std::optional<Index> guard = {};
  bool wide_polish = true;

  double tolerance = 0;        // converged when F(Y_k) - F(Y_{k+1}) <= tolerance * F(Y_k); 0: never
  bool evaluate_last = true;   // spend one more pass on the objective of the last iterate
  bool keep_iterates = false;  // fill Result::iterates
  std::uint64_t seed = 0;      // for the random start, completion and the probe
};

template <Space S>
struct BasicResult {
  typename S::Block factor;  // the best iterate, d x r
  Trace trace;               // trace.status says how the run ended
  std::vector<typename S::Block> iterates;

  Status status() const { return trace.status; }
};
template <Storage Scalar>
using Result = BasicResult<HostSpace<Scalar>>;

enum class StepAction { proceed, stop };

// Called once for each iterate, in order, when its row is complete. The view is valid during the call.
template <Space S>
using BasicOnStep = std::function<StepAction(const Step&, const typename S::ConstView&)>;
template <Storage Scalar>
using OnStep = BasicOnStep<HostSpace<Scalar>>;

// From an explicit start, d x r.
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target,
                                 const std::type_identity_t<ConstBlockView<Scalar>>& start,
                                 const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

// From the seeded random start Y0 = Sigma*Omega, scaled to ||Y0||^2 = tr Sigma (one pass, counted).
template <Storage Scalar>
ITSPACE_API Result<Scalar> align(const TargetArgument<Scalar>& target, Index rank, const AlignOptions& options = {},
                                 const std::type_identity_t<OnStep<Scalar>>& on_step = {});

}  // namespace itspace
