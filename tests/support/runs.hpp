// SPDX-License-Identifier: Apache-2.0
//
// Short forms of the runs that many tests make.
#pragma once

#include "place.hpp"
#include "problems.hpp"
#include "require.hpp"

#include <itspace/align.hpp>
#include <itspace/targets.hpp>

#include <ostream>
#include <string>
#include <vector>

namespace itspace {

// How GoogleTest shows them.
inline void PrintTo(Status status, std::ostream* out) {
  *out << name(status);
}
inline void PrintTo(Route route, std::ostream* out) {
  *out << name(route);
}

}  // namespace itspace

namespace itspace::test {

// The certificate factor B at Y as the library computes it: one step with alpha = 1 ends there.
template <Storage Scalar>
Matrix certificate_factor(TargetRef<Scalar> target, const Block<Scalar>& y, Route route = Route::automatic) {
  AlignOptions options;
  options.steps = 1;
  options.step_size = StepSize::alpha(1);
  options.route = route;
  options.evaluate_last = false;
  options.keep_iterates = true;
  return wide(align_here<Scalar>(target, y, options).iterates.at(1));
}

// A run whose iterates are kept.
template <Storage Scalar>
Result<Scalar> run(TargetRef<Scalar> target, const Block<Scalar>& start, Index steps, StepSize step_size,
                   AlignOptions options = {}) {
  options.steps = steps;
  options.step_size = step_size;
  options.keep_iterates = true;
  return align_here<Scalar>(target, start, options);
}

// F and its slope along a run, from the definition.
template <Storage Scalar>
std::vector<Real> objectives(const Oracle& oracle, const Result<Scalar>& result) {
  std::vector<Real> values;
  for (const Block<Scalar>& y : result.iterates) values.push_back(oracle.objective(wide(y)));
  return values;
}

// Promise 3 of every step of a run with a fixed alpha, by the oracle: the largest of
//   F(Y+) - F(Y) - 2 eps + ((2 - alpha)/alpha) ||Y+ - Y||^2
// in units of eps (tr Sigma + ||Y||^2). At most 10.
template <Storage Scalar>
Real worst_broken_descent(const Oracle& oracle, const Result<Scalar>& result, double alpha) {
  const std::vector<Real> f = objectives(oracle, result);
  Real worst = -std::numeric_limits<Real>::infinity();
  for (std::size_t k = 0; k + 1 < f.size(); ++k) {
    const Real moved = (real(result.iterates[k + 1]) - real(result.iterates[k])).squaredNorm();
    const Real gap = result.trace.steps[k].certificate_gap;
    const Real excess = f[k + 1] - f[k] - 2 * gap + (2 - Real(alpha)) / Real(alpha) * moved;
    worst = std::max(worst, excess / eps_units<Scalar>(oracle, wide(result.iterates[k])));
  }
  return worst;
}

// Features that are shared out to the ranks of a job: sizes that no usual number of ranks divides, the same values on
// all of them.
namespace spread_problem {

inline constexpr Index dim = 61, samples = 190, rank = 5;

template <Storage Scalar>
Block<Scalar> features(double mean = 3) {
  Draw draw(21);
  return block<Scalar>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean, draw));
}
template <Storage Scalar>
Block<Scalar> start() {
  Draw draw(22);
  return block<Scalar>(draw.gaussian(dim, rank));
}

}  // namespace spread_problem

// Problems for RapidCheck: small, of any spectrum given, with ranks from 1 to d. They shrink to d = r = 1, seed 0.
double draw_alpha();  // in (0, 2)
ProblemShape draw_shape(Index largest_dim, const std::vector<Spectrum>& spectra);

std::vector<Spectrum> full_rank();
std::vector<Spectrum> any_rank();

std::string describe(const ProblemShape& shape);

}  // namespace itspace::test
