// SPDX-License-Identifier: Apache-2.0
//
// The record of a run. Row k of Trace::steps describes the iterate Y_k: first the certificate at Y_k, then the step
// that made Y_k from Y_{k-1}. A number that does not exist (the step before the start, an objective nobody evaluated)
// is NaN here and null in JSON.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace itspace {

// How a run ended. Every status comes with the best iterate and the trace up to it.
enum class Status {
  step_limit,          // all steps were made
  converged,           // the decrease fell to the tolerance, or no step can be seen to descend (Trace::reason)
  stopped,             // on_step asked to stop
  certificate_failed,  // a step broke its promise beyond rounding, or none could be promised to descend
  not_finite,          // a product with the target was not finite
  not_a_covariance,    // the products show that the target is not symmetric positive semidefinite with that trace
};

// How the certificate is computed; see docs/numerics.md.
enum class Route {
  automatic,  // qr first; then gram where it is as accurate, factor where qr loses directions
  qr,         // Y = QR, W = Sigma*Q: one pass, no factor needed, accurate for any Y
  gram,       // W = Sigma*Y, M = (Y'W)^(-1/2): fastest, squares the condition number of Y
  factor,     // through T'Q where Sigma = T*T' is known: the most accurate
  root,       // the paper's own: the principal root of a dense Sigma, and an SVD (reference; O(d^3))
};

enum class Solver {
  paper,  // the damped, controlled trajectory of the paper
  ritz,   // the best factor of a growing subspace: fastest to the floor; step_size, route, completion and probe are not
          // its own
};

// Whether the run ended because something was wrong, and not because it was done.
ITSPACE_API bool failed(Status status);

ITSPACE_API std::string_view name(Status status);
ITSPACE_API std::string_view name(Route route);
ITSPACE_API std::string_view name(Solver solver);
// The inverse of name(); nullopt for an unknown name.
ITSPACE_API std::optional<Route> route_named(std::string_view text);
ITSPACE_API std::optional<Status> status_named(std::string_view text);
ITSPACE_API std::optional<Solver> solver_named(std::string_view text);

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Step {
  Index index = 0;

  // The certificate at Y_k.
  double objective = not_a_number;        // F(Y_k) = W2^2(Y_k Y_k', Sigma)
  double resolution = not_a_number;       // how finely the objective is known: |objective - F(Y_k)| is at most this
  double certificate_gap = not_a_number;  // eps = tr(G^(1/2)) - tr(M'G) >= 0
  double feasibility =
      not_a_number;  // ||Q||_2 of the certificate before it was normalised; where that is 1 to rounding, a bound
  double orthogonality = not_a_number;  // ||M'GM - I||_F on the directions the Gram matrix has
  Index gram_rank = 0;                  // directions of Y_k that the target sees (the others were flagged as null)
  std::optional<Route> route;           // the route that computed it

  // The step that made Y_k.
  double alpha = not_a_number;
  double step_squared = not_a_number;      // ||Y_k - Y_{k-1}||^2
  double promised_descent = not_a_number;  // ((2 - alpha)/alpha) ||Y_k - Y_{k-1}||^2 - 2 eps
  double actual_descent = not_a_number;    // F(Y_{k-1}) - F(Y_k)
  double objective_bound = not_a_number;   // F(Y_k) <= this, known before Y_k is evaluated
  double allowance = not_a_number;         // rounding granted: the resolution of both rows, and that of the promise
  std::optional<bool> certified;           // F did not rise, and the promise was kept up to the allowance
  Index target_version = 0;                // of the target it was evaluated at; another one is not compared

  Index passes = 0;    // sweeps over the target needed to produce Y_k: products with Sigma, or with its factor
  double seconds = 0;  // since align() was entered, a random start included; monotonic clock
};

struct Trace {
  Index dim = 0;
  Index rank = 0;
  std::string solver{name(Solver::paper)};  // or the name of another method, where that wrote the trace
  Route route = Route::automatic;           // the one that ran; `automatic` if several did (each Step names its own)
  std::optional<double> alpha;              // empty for line search
  std::string precision;                    // "float32" or "float64"; "mixed" is named by who made such a target
  Status status = Status::step_limit;
  std::string reason;  // a sentence, where the run ended for a reason that the status does not explain
  double target_trace = not_a_number;
  Index passes_total = 0;
  Index best = 0;               // the row of the returned factor
  std::string factor_checksum;  // of the factor it was saved with (io::checksum_of); empty where it was not
  std::vector<Step> steps;

  // Every step that was made and evaluated kept its promise and did not move away, and the run did not fail.
  ITSPACE_API bool certified() const;
};

// The objective is not known to a hundredth of itself: in float32, data of very different scales leave W2^2 in the
// rounding of tr Sigma. The remedy is arithmetic in double (mixed precision).
ITSPACE_API bool unresolved(const Step& step);

}  // namespace itspace
