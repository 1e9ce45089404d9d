// SPDX-License-Identifier: Apache-2.0
//
// Claim by claim.
#include <itspace/distance.hpp>
#include <itspace/evaluate.hpp>
#include <itspace/verify.hpp>

#include "core/certificate.hpp"
#include "core/require.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

namespace itspace {

namespace {

// The shortest text that reads back as the same double, and three digits.
std::string precise(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value).ptr};
}
std::string small_number(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value, std::chars_format::general, 3).ptr};
}

// The rounding that a run may have: what its rows state, held against what rounding in the precision of the run can be.
class Rounding {
 public:
  Rounding(const Trace& trace, const Found& found)
      : storage_(trace.precision == "float32" || found.epsilon > std::numeric_limits<double>::epsilon()
                     ? storage_rounding<float>(found.dim)
                     : storage_rounding<double>(found.dim)),
        rank_(static_cast<double>(std::max<Index>(1, trace.rank))),
        target_trace_(found.target_trace) {}

  // 6 eps (tr Sigma + ||Y||^2) + d min, the least there is, in the coarser type of the run and of this check.
  double of_sums(double squared_norm) const {
    return 6 * storage_.eps * (target_trace_ + squared_norm) + storage_.vanishing;
  }
  // A row does not say ||Y_k||; the triangle inequality of W2 does: ||Y_k|| <= F_k^(1/2) + (tr Sigma)^(1/2).
  double squared_norm(const Step& row) const {
    const double norm = std::sqrt(std::max(0.0, row.objective)) + std::sqrt(target_trace_);
    return norm * norm;
  }
  double of_sums(const Step& row) const { return of_sums(squared_norm(row)); }

  // The most that a resolution can be: r directions, each as long as Y, at the edge of what products with Sigma show,
  // where a root is known to eps^(1/2).
  double most(const Step& row) const {
    const double roots =
        20 * rank_ * std::sqrt(rank_ * storage_.eps) * std::sqrt(squared_norm(row)) * std::sqrt(target_trace_);
    return 1.01 * of_sums(row) + roots;
  }

  // What is granted to the comparison of a row with the one before, and to what it promised: what the rows state.
  double between(const Step& before, const Step& row) const {
    const double stated = before.resolution + row.resolution;
    return std::isnan(stated) ? of_sums(before) + of_sums(row) : stated;
  }
  double of_promise(const Step& before, const Step& row) const {
    return std::isnan(row.allowance) ? between(before, row) : row.allowance;
  }

 private:
  StorageRounding storage_;
  double rank_, target_trace_;
};

// Distances to two versions of a target are not compared.
bool comparable(const Step& before, const Step& row) {
  return before.target_version == row.target_version;
}

// The first row for which `broken` finds something to say, as a claim about all rows.
template <class Broken>
Claim every_row(const std::string& name, const Trace& trace, const std::string& claimed, Broken broken) {
  for (std::size_t k = 1; k < trace.steps.size(); ++k)
    if (const std::string finding = broken(trace.steps[k - 1], trace.steps[k]); !finding.empty())
      return {name, false, claimed, text("row ", k, ": ", finding)};
  return {name, true, claimed, text("holds in all ", trace.steps.size(), " rows")};
}

Claim same_count(const std::string& name, Index claimed, Index found) {
  return {name, claimed == found, text(claimed), text(found)};
}

Claim same_number(const std::string& name, double claimed, double found, double allowance) {
  return {name, std::abs(claimed - found) <= allowance, precise(claimed),
          text(precise(found), " (allowance ", small_number(allowance), ")")};
}

Claim objective_claim(const Trace& trace, const Found& found, const Rounding& rounding) {
  const double sums = 2 * rounding.of_sums(found.factor_squared);
  if (trace.best < 0 || static_cast<std::size_t>(trace.best) >= trace.steps.size())
    return {"objective", false, text("best row ", trace.best), text("a trace of ", trace.steps.size(), " rows")};
  const Step& best = trace.steps[static_cast<std::size_t>(trace.best)];
  const auto stated = [](double resolution) { return std::isnan(resolution) ? 0.0 : resolution; };
  double limit = sums + stated(found.resolution) + stated(best.resolution);
  if (!std::isnan(best.objective)) return same_number("objective", best.objective, found.objective, limit);
  // A run that failed before it evaluated anything says so, and claims nothing.
  if (std::isnan(best.objective_bound))
    return {"objective", failed(trace.status), "none (not evaluated)", precise(found.objective)};
  // The bound was taken from the row before.
  if (trace.best > 0) limit += stated(trace.steps[static_cast<std::size_t>(trace.best) - 1].resolution);
  return {"objective", found.objective <= best.objective_bound + limit,
          text("at most ", precise(best.objective_bound), " (not evaluated)"),
          text(precise(found.objective), " (allowance ", small_number(limit), ")")};
}

// A row may own up to a broken promise; then it claims nothing, and the status must say so.
bool owns_up(const Step& row) {
  return row.certified.has_value() && !*row.certified;
}

Claim monotone_claim(const Trace& trace, const Rounding& rounding) {
  return every_row("monotone objective", trace, "no row above the one before",
                   [&](const Step& before, const Step& row) -> std::string {
                     if (owns_up(row) || !comparable(before, row)) return "";
                     if (!(row.objective > before.objective + rounding.between(before, row))) return "";
                     return text("objective ", precise(row.objective), " after ", precise(before.objective));
                   });
}

// What a step owes: its promise, and in any case not to move away.
bool keeps_promise(const Step& before, const Step& row, const Rounding& rounding) {
  const double descent = before.objective - row.objective;
  return descent >= -rounding.between(before, row) &&
         (!(row.promised_descent > 0) || descent >= row.promised_descent - rounding.of_promise(before, row));
}

// A row that does not say its alpha has that of the run.
double alpha_of(const Trace& trace, const Step& row) {
  return std::isnan(row.alpha) ? trace.alpha.value_or(not_a_number) : row.alpha;
}

// ((2 - alpha)/alpha) ||Y_k - Y_{k-1}||^2; NaN where alpha is outside (0, 2).
double weighted_step(const Trace& trace, const Step& row) {
  const double alpha = alpha_of(trace, row);
  return alpha > 0 && alpha < 2 ? (2 - alpha) / alpha * row.step_squared : not_a_number;
}

// The promise of a plain step.
double plain_promise(const Trace& trace, const Step& before, const Step& row) {
  return weighted_step(trace, row) - 2 * before.certificate_gap;
}

bool is_plain(const Trace& trace, const Step& before, const Step& row, const Rounding& rounding) {
  return std::abs(row.promised_descent - plain_promise(trace, before, row)) <= rounding.of_sums(before);
}

// A probe's swap goes all the way (alpha = 1) to another point, and promises by another rule.
bool may_be_swap(const Trace& trace, const Step& row) {
  return trace.alpha.has_value() && alpha_of(trace, row) == 1;
}

// Rows nobody evaluated (the last one, without its extra pass) promise, and are bounded, but show no descent.
Claim promise_claim(const Trace& trace, const Rounding& rounding) {
  return every_row("promised descent", trace, "every step descends by what the method promises",
                   [&](const Step& before, const Step& row) -> std::string {
                     const double plain = plain_promise(trace, before, row);
                     if (trace.solver == name(Solver::paper) && !std::isnan(plain) && !may_be_swap(trace, row) &&
                         !is_plain(trace, before, row, rounding))
                       return text("promises ", precise(row.promised_descent), ", the method ", precise(plain));
                     if (std::isnan(row.objective) || owns_up(row) || !comparable(before, row)) return "";
                     const double descent = before.objective - row.objective;
                     if (!(std::abs(descent - row.actual_descent) <= rounding.of_sums(before)))
                       return text("says it descended by ", precise(row.actual_descent), ", its objectives by ",
                                   precise(descent));
                     if (keeps_promise(before, row, rounding)) return "";
                     return text("promised ", precise(row.promised_descent), ", descended by ", precise(descent));
                   });
}

// A row may state no more rounding than there can be, and the allowance of a step is that of both its ends.
Claim rounding_claim(const Trace& trace, const Rounding& rounding) {
  return every_row("stated rounding", trace, "no row states more rounding than its precision has",
                   [&](const Step& before, const Step& row) -> std::string {
                     for (const Step* step : {&before, &row})
                       if (step->resolution > rounding.most(*step))
                         return text("resolution ", small_number(step->resolution), ", at most ",
                                     small_number(rounding.most(*step)));
                     // What is granted to a promise beyond that is less than the promise: else it is none.
                     const double both = before.resolution + row.resolution;
                     const double most = 2 * both + std::max(0.0, row.promised_descent);
                     if (row.allowance > most * (1 + 1e-9))
                       return text("allowance ", small_number(row.allowance), ", at most ", small_number(most));
                     return "";
                   });
}

Claim certified_claim(const Trace& trace, const Rounding& rounding) {
  return every_row("certified flags", trace, "a step marked certified kept its promise",
                   [&](const Step& before, const Step& row) -> std::string {
                     if (owns_up(row) && trace.status != Status::certificate_failed)
                       return text("not certified, but the status is ", name(trace.status));
                     if (!row.certified.value_or(false)) return "";
                     if (std::isnan(row.objective)) return "certified, but its objective was not evaluated";
                     if (!comparable(before, row)) return "certified, but the target changed";
                     return keeps_promise(before, row, rounding) ? "" : "certified, but it broke its promise";
                   });
}

// sum ((2 - alpha)/alpha) ||Y_{k+1} - Y_k||^2 <= F_0 - F_K + 2 sum eps_k over plain steps; nullopt where a step of
// another kind was made.
std::optional<Claim> finite_length_claim(const Trace& trace, const Rounding& rounding) {
  double length = 0, limit = 0, gaps = 0, slack = 0;
  for (std::size_t k = 1; k < trace.steps.size(); ++k) {
    const Step &before = trace.steps[k - 1], &row = trace.steps[k];
    if (std::isnan(row.objective) || owns_up(row)) break;
    if (trace.solver != name(Solver::paper) || !comparable(before, row) || std::isnan(weighted_step(trace, row)))
      return std::nullopt;
    if (may_be_swap(trace, row) && (*trace.alpha != 1 || !is_plain(trace, before, row, rounding))) return std::nullopt;
    length += weighted_step(trace, row);
    gaps += before.certificate_gap;
    slack += rounding.of_promise(before, row);
    limit = trace.steps.front().objective - row.objective + 2 * gaps + slack;
  }
  return Claim{"finite length", length <= limit, "the steps are no longer than their descent pays for",
               text(small_number(length), " of ", small_number(limit))};
}

}  // namespace

std::vector<Claim> check_claims(const Trace& trace, const Found& found) {
  const Rounding rounding(trace, found);
  std::vector<Claim> claims{same_count("dimension", trace.dim, found.dim), same_count("rank", trace.rank, found.rank)};
  // A run of no steps whose start was not evaluated claims nothing of the target.
  const bool looked =
      std::any_of(trace.steps.begin(), trace.steps.end(), [](const Step& row) { return !std::isnan(row.objective); });
  if (!looked && trace.steps.size() == 1 && !failed(trace.status)) return claims;
  claims.insert(claims.end(),
                {same_number("target trace", trace.target_trace, found.target_trace, 2 * rounding.of_sums(0.0)),
                 objective_claim(trace, found, rounding), monotone_claim(trace, rounding),
                 promise_claim(trace, rounding), rounding_claim(trace, rounding)});
  if (const auto length = finite_length_claim(trace, rounding)) claims.push_back(*length);
  claims.push_back(certified_claim(trace, rounding));
  return claims;
}

Claim checksum_claim(const Trace& trace, const std::string& found) {
  return {"factor checksum", trace.factor_checksum == found, trace.factor_checksum, found};
}

bool Verification::holds() const {
  return std::isfinite(found.objective) &&
         std::all_of(claims.begin(), claims.end(), [](const Claim& claim) { return claim.holds; });
}

template <Storage Scalar>
Verification verify(const std::type_identity_t<ConstBlockView<Scalar>>& factor, const TargetArgument<Scalar>& given,
                    const Trace* trace) {
  const TargetRef<Scalar> target = given;
  Verification out;
  // By the most accurate route there is.
  out.certificate = evaluate<Scalar>(target, factor, target.has_factor() ? Route::factor : Route::qr).certificate;
  out.found = {factor.rows(),
               factor.cols(),
               target.trace(),
               factor.template cast<double>().squaredNorm(),
               target_distance_squared<Scalar>(factor, target),
               out.certificate.resolution,
               std::numeric_limits<Scalar>::epsilon()};
  if (trace) {
    out.claims = check_claims(*trace, out.found);
    out.certified = trace->certified();
  }
  return out;
}

template Verification verify<float>(const std::type_identity_t<ConstBlockView<float>>&, const TargetArgument<float>&,
                                    const Trace*);
template Verification verify<double>(const std::type_identity_t<ConstBlockView<double>>&, const TargetArgument<double>&,
                                     const Trace*);

}  // namespace itspace
