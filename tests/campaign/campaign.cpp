// SPDX-License-Identifier: Apache-2.0
#include "campaign.hpp"

#include "problems.hpp"

#include <itspace/itspace.hpp>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <sstream>

namespace itspace::test {
namespace {

enum class Values { power, clustered, geometric, singular, zero, tiny_tail, flat };
constexpr const char* value_names[] = {"power", "clustered", "geometric", "singular", "zero", "tiny tail", "flat"};
enum class StartKind { none, gaussian, zero, orthogonal, duplicated, graded, optimum, near_optimum, large, tiny };
constexpr const char* start_names[] = {"none",   "gaussian", "zero",         "orthogonal", "duplicated",
                                       "graded", "optimum",  "near optimum", "large",      "tiny"};
enum class TargetKind { dense, diagonal, features, few_features, weighted, low_rank_diagonal, factor, shifted, user };
constexpr const char* target_names[] = {
    "dense", "diagonal", "features", "few features", "weighted", "low rank diagonal", "factor", "shifted", "operator"};

struct Case {
  std::uint64_t seed = 0;
  Index dim = 1, rank = 1;
  Values values = Values::power;
  StartKind start = StartKind::gaussian;
  TargetKind target = TargetKind::dense;
  double scale = 1;
  AlignOptions options;
};

// A target of a user's own.
template <Storage Scalar>
struct UserTarget {
  Block<Scalar> sigma;
  Index dim() const { return sigma.rows(); }
  double trace() const { return sigma.diagonal().template cast<double>().sum(); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const { out.noalias() = sigma * y; }
};

int pick(Draw& draw, int count) {
  return std::min(count - 1, static_cast<int>(draw.uniform() * count));
}

template <class Enum>
Enum pick_of(Draw& draw, int count) {
  return static_cast<Enum>(pick(draw, count));
}

Vector eigenvalues_of_case(const Case& c, Draw& draw) {
  Vector lambda(c.dim);
  const double decay = std::pow(10.0, -3 * draw.uniform());
  const Index kept = std::max<Index>(1, c.dim / 2);
  for (Index i = 0; i < c.dim; ++i) {
    const double k = static_cast<double>(i);
    switch (c.values) {
      case Values::power:
        lambda(i) = std::pow(k + 1, -1 - 2 * decay);
        break;
      case Values::clustered:
        lambda(i) = std::pow(0.1, pick(draw, 3)) * (1 + 1e-9 * draw.uniform());
        break;
      case Values::geometric:
        lambda(i) = std::pow(decay, k);
        break;
      case Values::singular:
        lambda(i) = i < kept ? 1 / (k + 1) : 0;
        break;
      case Values::zero:
        lambda(i) = 0;
        break;
      case Values::tiny_tail:
        lambda(i) = i < kept ? 1 : 1e-15 * draw.uniform();
        break;
      case Values::flat:
        lambda(i) = 1;
        break;
    }
  }
  std::sort(lambda.data(), lambda.data() + lambda.size(), std::greater<>());
  return lambda * c.scale;
}

Case case_of(std::uint64_t seed, bool float32, bool mixed, Draw& draw) {
  Case c;
  c.seed = seed;
  const int size = pick(draw, 10);
  c.dim = 1 + pick(draw, size < 3 ? 4 : size < 8 ? 24 : 60);
  c.rank = draw.uniform() < 0.2 ? c.dim : 1 + pick(draw, static_cast<int>(c.dim));
  c.values = pick_of<Values>(draw, 7);
  c.start = pick_of<StartKind>(draw, 10);
  c.target = pick_of<TargetKind>(draw, 9);
  // A singular covariance whose entries were rounded to float32 is not one in double: mixed runs take its features.
  const bool by_entries =
      c.target == TargetKind::dense || c.target == TargetKind::diagonal || c.target == TargetKind::user;
  const bool definite = c.values == Values::clustered || c.values == Values::flat || c.values == Values::zero;
  if (mixed && by_entries && !definite) c.target = TargetKind::features;
  constexpr double scales64[] = {1, 1, 1, 1e-6, 1e6, 1e-140, 1e140};
  constexpr double scales32[] = {1, 1, 1, 1e-6, 1e6, 1e-18, 1e18};
  c.scale = (float32 ? scales32 : scales64)[pick(draw, 7)];

  AlignOptions& options = c.options;
  options.steps = pick(draw, 8);
  options.seed = seed;
  options.evaluate_last = draw.uniform() < 0.9;
  options.completion = draw.uniform() < 0.85;
  options.keep_iterates = true;
  const bool has_factor = c.target != TargetKind::dense && c.target != TargetKind::diagonal &&
                          c.target != TargetKind::low_rank_diagonal && c.target != TargetKind::shifted &&
                          c.target != TargetKind::user;
  if (draw.uniform() < 0.3) {
    options.solver = Solver::ritz;
    constexpr int guards[] = {-1, 0, 1, 8};
    if (const int guard = guards[pick(draw, 4)]; guard >= 0) options.guard = guard;
    options.wide_polish = draw.uniform() < 0.7;
    return c;
  }
  const double kind = draw.uniform();
  if (kind < 0.35)
    options.step_size = StepSize::alpha(0.02 + 1.96 * draw.uniform());
  else if (kind < 0.45)
    options.step_size = StepSize::lambda(std::pow(10.0, 6 * draw.uniform() - 3));
  else if (kind < 0.65)
    options.step_size = StepSize::line_search();
  const double route = draw.uniform();
  if (route < 0.1)
    options.route = Route::qr;
  else if (route < 0.2)
    options.route = Route::gram;
  else if (route < 0.3 && has_factor)
    options.route = Route::factor;
  else if (route < 0.35)
    options.route = Route::root;
  if (options.route == Route::gram && draw.uniform() < 0.3) options.gram_regularization = draw.uniform();
  const bool by_factor = options.route == Route::factor || options.route == Route::root;
  options.probe = !by_factor && options.step_size.kind() != StepSize::Kind::line_search && draw.uniform() < 0.15;
  return c;
}

// The target as the library gets it and the oracle of exactly those values.
template <Storage Scalar, Storage Data>
struct Made {
  Block<Data> values;
  std::unique_ptr<DenseTarget<Scalar, Data>> dense;
  std::unique_ptr<FeaturesTarget<Scalar, Data>> features;
  std::unique_ptr<LowRankDiagonalTarget<Scalar, Data>> low_rank;
  std::unique_ptr<FactorTarget<Scalar, Data>> factor;
  std::unique_ptr<ShiftedTarget<Scalar>> shifted;
  std::unique_ptr<UserTarget<Scalar>> user;
  Oracle oracle;
  Matrix directions;  // leading eigenvectors, for starts

  TargetRef<Scalar> ref() const {
    if (shifted) return *shifted;
    if (dense) return *dense;
    if (features) return *features;
    if (low_rank) return *low_rank;
    if (factor) return *factor;
    return *user;
  }
};

template <Storage Scalar, Storage Data>
void make_target(const Case& c, const Vector& lambda, Draw& draw, Made<Scalar, Data>& made) {
  const Index d = c.dim;
  made.directions = c.target == TargetKind::diagonal ? Matrix(Matrix::Identity(d, d)) : draw.orthonormal(d, d);
  const Matrix root = made.directions * lambda.cwiseSqrt().asDiagonal();
  switch (c.target) {
    case TargetKind::dense:
    case TargetKind::diagonal:
    case TargetKind::user: {
      made.values = block<Data>(covariance_from(root));
      made.oracle = Oracle::of_covariance(wide(made.values));
      if (c.target == TargetKind::user) {
        made.user = std::make_unique<UserTarget<Scalar>>(UserTarget<Scalar>{block<Scalar>(wide(made.values))});
      } else {
        made.dense = std::make_unique<DenseTarget<Scalar, Data>>(made.values);
      }
      break;
    }
    case TargetKind::features:
    case TargetKind::few_features:
    case TargetKind::weighted: {
      const Index n = c.target == TargetKind::few_features ? 2 + pick(draw, static_cast<int>(d)) : 2 * d + 5;
      const double offset = pick(draw, 2) * 10 * std::sqrt(c.scale);
      made.values = block<Data>(Matrix((draw.gaussian(n, d) * root.transpose()).array() + offset));
      Vector weights;
      if (c.target == TargetKind::weighted) {
        weights.resize(n);
        for (Index i = 0; i < n; ++i) weights(i) = draw.uniform() < 0.3 ? 0 : draw.uniform();
        weights(0) = weights(1) = 1;
        made.features = std::make_unique<FeaturesTarget<Scalar, Data>>(made.values, weights);
      } else {
        made.features = std::make_unique<FeaturesTarget<Scalar, Data>>(made.values);
      }
      made.oracle = Oracle::of_factor(centred_factor_of(wide(made.values), weights));
      break;
    }
    case TargetKind::low_rank_diagonal: {
      const Index k = std::max<Index>(1, d / 3);
      made.values = block<Data>(Matrix(made.directions.leftCols(k)));
      const Vector leading = lambda.head(k), diagonal = Vector::Constant(d, lambda(d - 1));
      made.low_rank = std::make_unique<LowRankDiagonalTarget<Scalar, Data>>(made.values, leading, diagonal);
      RealMatrix factor = RealMatrix::Zero(d, k + d);
      factor.leftCols(k) = real(made.values) * real(leading).cwiseSqrt().asDiagonal();
      factor.rightCols(d) = RealMatrix(real(diagonal).cwiseSqrt().asDiagonal());
      made.oracle = Oracle::of_factor(factor);
      break;
    }
    case TargetKind::factor:
    case TargetKind::shifted: {
      made.values = block<Data>(root);
      made.factor = std::make_unique<FactorTarget<Scalar, Data>>(made.values);
      RealMatrix factor = real(made.values);
      if (c.target == TargetKind::shifted) {
        const double delta = 1e-3 * lambda(0);
        made.shifted = std::make_unique<ShiftedTarget<Scalar>>(*made.factor, delta);
        factor.conservativeResize(d, 2 * d);
        factor.rightCols(d) = RealMatrix::Identity(d, d) * std::sqrt(Real(delta));
      }
      made.oracle = Oracle::of_factor(factor);
      break;
    }
  }
}

std::optional<Matrix> make_start(const Case& c, const Vector& lambda, const Matrix& directions, Draw& draw) {
  const Index d = c.dim, r = c.rank;
  const double size = std::sqrt((lambda.sum() > 0 ? lambda.sum() : c.scale) / static_cast<double>(d * r));
  switch (c.start) {
    case StartKind::none:
      return std::nullopt;
    case StartKind::gaussian:
      return size * draw.gaussian(d, r);
    case StartKind::zero:
      return Matrix::Zero(d, r);
    case StartKind::orthogonal: {
      // Away from the leading directions, where there are others.
      Matrix y = Matrix::Zero(d, r);
      for (Index j = 0; j < r; ++j) y.col(j) = size * directions.col(d - 1 - j);
      return y;
    }
    case StartKind::duplicated: {
      Matrix y = size * draw.gaussian(d, r);
      for (Index j = 1; j < r; j += 2) y.col(j) = y.col(j - 1) * (pick(draw, 2) ? 1.0 : -3.0);
      return y;
    }
    case StartKind::graded: {
      Matrix y = size * draw.gaussian(d, r);
      for (Index j = 0; j < r; ++j) y.col(j) *= std::pow(10.0, -1.5 * static_cast<double>(j));
      return y;
    }
    case StartKind::optimum:
    case StartKind::near_optimum: {
      Matrix y = directions.leftCols(r) * lambda.head(r).cwiseSqrt().asDiagonal() * draw.orthonormal(r, r);
      if (c.start == StartKind::near_optimum)
        y += std::pow(10.0, -1 - 12 * draw.uniform()) * size * draw.gaussian(d, r);
      return y;
    }
    case StartKind::large:
      return size * std::pow(10.0, 6 * draw.uniform()) * draw.gaussian(d, r);
    case StartKind::tiny:
      return size * std::pow(10.0, -6 * draw.uniform()) * draw.gaussian(d, r);
  }
  return std::nullopt;
}

std::string describe(const Case& c, const char* precision) {
  std::ostringstream out;
  const AlignOptions& o = c.options;
  out << "seed " << c.seed << ": d=" << c.dim << " r=" << c.rank << " " << value_names[int(c.values)] << " x "
      << c.scale << ", " << target_names[int(c.target)] << ", start " << start_names[int(c.start)] << ", " << precision
      << ", " << name(o.solver) << " steps=" << o.steps;
  if (o.solver == Solver::ritz) {
    out << " guard=" << (o.guard ? std::to_string(*o.guard) : "default") << (o.wide_polish ? " wide" : "");
  } else {
    out << " route=" << name(o.route);
    if (o.step_size.kind() == StepSize::Kind::line_search)
      out << " line-search";
    else
      out << " alpha=" << o.step_size.resolve(o.steps);
    if (o.gram_regularization > 0) out << " regularization=" << o.gram_regularization;
    if (!o.completion) out << " compact";
    if (o.probe) out << " probe";
  }
  if (!o.evaluate_last) out << " last not evaluated";
  return out.str();
}

class Judge {
 public:
  Judge(const Oracle& oracle, double eps, Verdict& verdict) : oracle_(oracle), eps_(eps), verdict_(verdict) {}

  template <class... Parts>
  void complain(Fault fault, const Parts&... parts) {
    std::ostringstream out;
    out.precision(6);
    (out << ... << parts);
    verdict_.complaints.push_back({fault, out.str()});
  }

  template <Storage Scalar>
  void rows(const Result<Scalar>& result, bool say) {
    const auto& steps = result.trace.steps;
    std::ostringstream table;
    std::vector<double> resolutions;
    Real before = 0, squares_before = 0;
    for (std::size_t k = 0; k < result.iterates.size(); ++k) {
      const Matrix y = wide(result.iterates[k]);
      if (!y.allFinite()) return complain(Fault::not_finite, "iterate ", k, " is not finite");
      const Step& row = steps[k];
      const Real f = oracle_.objective(y), squares = real(y).squaredNorm();
      const Real unit = Real(eps_) * (oracle_.trace() + squares + (k > 0 ? squares_before : 0));
      if (say)
        table << "\n    " << k << ": F " << double(f) << " said " << row.objective << " (off by "
              << double(Real(row.objective) - f) << ", unit " << double(unit) << ") resolution " << row.resolution
              << " gap " << row.certificate_gap << " rank " << row.gram_rank << " promised " << row.promised_descent
              << " descent " << row.actual_descent << " (short of it by " << (row.promised_descent - row.actual_descent)
              << ") allowance " << row.allowance << " certified "
              << (row.certified ? (*row.certified ? "yes" : "NO") : "-") << " alpha " << row.alpha << " "
              << (row.route ? name(*row.route) : "-");
      if (!std::isnan(row.objective)) {
        const Real off = std::abs(Real(row.objective) - f);
        if (row.resolution > 0) {
          verdict_.worst_objective = std::max(verdict_.worst_objective, double(off / row.resolution));
          if (unit > 0) resolutions.push_back(double(row.resolution / unit));
        }
        if (!(off <= row.resolution))
          complain(Fault::outside_resolution, "row ", k, " says ", row.objective, ", off by ",
                   double(Real(row.objective) - f), ", resolution ", row.resolution, ", unit ", double(unit));
      }
      if (k > 0) {
        ++verdict_.steps;
        const Real rise = f - before;
        if (row.certified.value_or(false)) {
          ++verdict_.certified;
          if (unit > 0) verdict_.worst_rise = std::max(verdict_.worst_rise, double(rise / unit));
          if (!(rise <= row.allowance))
            complain(Fault::certified_rise, "row ", k, " is certified and rose by ", double(rise), " from ",
                     double(before), ", allowance ", row.allowance);
        }
      }
      before = f;
      squares_before = squares;
    }
    if (!resolutions.empty()) {
      std::nth_element(resolutions.begin(), resolutions.begin() + std::ptrdiff_t(resolutions.size() / 2),
                       resolutions.end());
      verdict_.median_resolution = resolutions[resolutions.size() / 2];
    }
    if (say) verdict_.description += table.str();
  }

 private:
  const Oracle& oracle_;
  double eps_;
  Verdict& verdict_;
};

template <Storage Scalar, Storage Data>
Verdict run_in(std::uint64_t seed, Draw& draw, bool say) {
  constexpr bool mixed = !std::same_as<Scalar, Data>;
  const Case c = case_of(seed, std::same_as<Data, float>, mixed, draw);
  Verdict verdict;
  verdict.description = describe(c, mixed ? "mixed" : std::same_as<Scalar, float> ? "float32" : "float64");
  const Vector lambda = eigenvalues_of_case(c, draw);
  Made<Scalar, Data> made;
  make_target<Scalar, Data>(c, lambda, draw, made);
  const std::optional<Matrix> start = make_start(c, lambda, made.directions, draw);
  const TargetRef<Scalar> target = made.ref();
  const Result<Scalar> result =
      start ? align<Scalar>(target, block<Scalar>(*start), c.options) : align<Scalar>(target, c.rank, c.options);

  Judge judge(made.oracle, double(std::numeric_limits<Scalar>::epsilon()), verdict);
  if (say)
    verdict.description += "\n    status " + std::string(name(result.status())) + " " + result.trace.reason +
                           "; tr Sigma " + std::to_string(double(made.oracle.trace()));
  judge.rows(result, say);
  if (failed(result.status()))
    judge.complain(result.status() == Status::not_finite ? Fault::not_finite : Fault::false_alarm, "ended as ",
                   name(result.status()), " after ", result.trace.steps.size() - 1, " steps: ", result.trace.reason);
  verdict.ended_early = result.status() == Status::converged;
  if (!result.factor.allFinite()) {
    judge.complain(Fault::not_finite, "the factor is not finite");
    return verdict;
  }
  const Step& first = result.trace.steps.front();
  const Real gained = made.oracle.objective(wide(result.iterates.front())) - made.oracle.objective(wide(result.factor));
  if (gained < -2 * Real(first.resolution))
    judge.complain(Fault::worse_than_start, "the factor is ", -double(gained), " farther than the start");

  const Verification verified = verify<Scalar>(result.factor, target, &result.trace);
  for (const Claim& claim : verified.claims)
    if (!claim.holds)
      judge.complain(Fault::verify_disagrees, claim.name, ": claimed ", claim.claimed, ", found ", claim.found);
  if (!std::isfinite(verified.found.objective)) judge.complain(Fault::not_finite, "verify found no objective");
  return verdict;
}

}  // namespace

const char* name(Fault fault) {
  constexpr const char* names[] = {"certified rise",     "false alarm",      "not finite",
                                   "outside resolution", "verify disagrees", "worse than the start"};
  return names[static_cast<int>(fault)];
}

Verdict run_case(std::uint64_t seed, bool say) {
  Draw draw(seed * 0x9E3779B97F4A7C15ULL + 1);
  const double precision = draw.uniform();
  if (precision < 0.35) return run_in<float, float>(seed, draw, say);
  if (precision < 0.5) return run_in<double, float>(seed, draw, say);
  return run_in<double, double>(seed, draw, say);
}

}  // namespace itspace::test
