// SPDX-License-Identifier: Apache-2.0
#include "baselines/explored_subspace.hpp"

#include "baselines/dense_algebra.hpp"
#include "core/lapack.hpp"
#include "core/subspace_impl.hpp"
#include "core/require.hpp"

#include <itspace/covariance.hpp>
#include <itspace/random.hpp>

#include <algorithm>
#include <cmath>

namespace itspace::baselines {
namespace {

// A Gram matrix is the fast way and squares the condition number: it serves while the columns' own is below 1e5.
constexpr double well_conditioned = 1e-10;

bool is_well_conditioned(const ConstBlockView<double>& x, HostSpace<double>& host) {
  SmallVector values;
  return symmetric_eigenvalues(gram(host, x, x), values) && values(0) > well_conditioned * values(values.size() - 1);
}

// Two rounds of projection and an orthonormal basis. Returns the columns that are left.
Index orthonormalise_against(const ConstBlockView<double>& s, Block<double>& x, HostSpace<double>& host) {
  const double length = x.colwise().norm().maxCoeff();
  Index cols = x.cols();
  for (int round = 0; round < 2 && cols > 0; ++round) {
    BlockView<double> rest = x.leftCols(cols);
    if (s.cols() > 0) project_out(host, s, rest);
    // What is left of a column that lay in s is rounding.
    const double drop = round == 0 ? 1e-13 * length : 0.5;
    if (is_well_conditioned(rest, host) && rest.colwise().norm().minCoeff() > drop) {
      cols = orthonormalise(host, rest, 0, Drop::relative).cols();
    } else {
      Small columns = rest;
      cols = pivoted_basis(columns, drop);
      x.leftCols(cols) = columns.leftCols(cols);
    }
  }
  return cols;
}

}  // namespace

Block<double> first_block(Index dim, Index rank, const Block<double>* start, const Options& options) {
  const Index width = std::min(dim, rank + options.extra);
  require(!start || (start->rows() == dim && start->cols() <= width), "the start does not fit the target and the rank");
  Block<double> x(dim, width);
  Random(options.seed, 3).fill_normal<double>(x);
  if (start) x.leftCols(start->cols()) = *start;
  HostSpace<double> host;
  const Index cols = orthonormalise_against(Block<double>(dim, 0), x, host);
  return x.leftCols(cols);
}

ExploredSubspace::ExploredSubspace(TargetRef<double> target, Index most_cols)
    : target_(target), s_(target.dim(), most_cols), sigma_s_(target.dim(), most_cols) {}

Index ExploredSubspace::explore(Block<double> x) {
  const Index added = std::min(orthonormalise_against(basis(), x, host_), s_.cols() - cols_);
  if (added == 0) return 0;
  s_.middleCols(cols_, added) = x.leftCols(added);
  target_.apply(s_.middleCols(cols_, added), sigma_s_.middleCols(cols_, added));
  cols_ += added;
  return added;
}

void ExploredSubspace::append(const Block<double>& x, const Block<double>& sigma_x) {
  s_.middleCols(cols_, x.cols()) = x;
  sigma_s_.middleCols(cols_, x.cols()) = sigma_x;
  cols_ += x.cols();
}

ExploredSubspace::Ritz ExploredSubspace::ritz(Index count) {
  const Small h = gram(host_, basis(), products()), m = gram(host_, basis(), basis());
  RitzPairs pairs;
  require(ritz_pairs(h, m, count, pairs), "the baseline's basis has become dependent");
  Ritz out{pairs.values, Block<double>(s_.rows(), pairs.vectors.cols()),
           Block<double>(s_.rows(), pairs.vectors.cols())};
  multiply(host_, basis(), pairs.vectors, out.vectors);
  multiply(host_, products(), pairs.vectors, out.products);
  return out;
}

Block<double> ExploredSubspace::factor(Index rank, bool nystrom, double& objective) {
  Block<double> y = Block<double>::Zero(s_.rows(), rank);
  if (nystrom) {
    objective = not_a_number;
    // In the Ritz vectors of the whole subspace, whose products keep their digits column by column.
    const Ritz pairs = ritz(cols_);
    const Small k = gram(host_, pairs.products, pairs.products);
    Polish polish;
    nystrom_polish(pairs.values, k, rank, 2 * Eigen::NumTraits<double>::epsilon() * pairs.values(0), polish);
    multiply(host_, pairs.products, polish.a, y);
    return y;
  }
  const Ritz pairs = ritz(rank);
  const SmallVector values = pairs.values.cwiseMax(0.0);
  y.leftCols(values.size()) = pairs.vectors * values.cwiseSqrt().asDiagonal();
  objective = std::max(0.0, target_.trace() - values.sum());
  return y;
}

Log::Log(TargetRef<double> target, Index rank, std::string solver) {
  result_.trace.dim = target.dim();
  result_.trace.rank = rank;
  result_.trace.solver = std::move(solver);
  result_.trace.precision = "float64";
}

void Log::report(Index passes, Block<double> factor, double objective) {
  Step row;
  row.index = static_cast<Index>(result_.trace.steps.size());
  row.objective = objective;
  row.passes = passes;
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  result_.trace.passes_total = passes;
  result_.trace.best = row.index;
  result_.trace.steps.push_back(row);
  result_.iterates.push_back(std::move(factor));
}

Result<double> Log::finish(double target_trace) {
  result_.trace.target_trace = target_trace;
  if (!result_.iterates.empty()) result_.factor = result_.iterates.back();
  return std::move(result_);
}

}  // namespace itspace::baselines
