// SPDX-License-Identifier: Apache-2.0
#include "baselines/explored_subspace.hpp"
#include "core/subspace_impl.hpp"

#include <algorithm>

namespace itspace::baselines {

Result<double> randomized_svd(TargetRef<double> target, Index rank, const Block<double>* start,
                              const Options& options) {
  Log log(target, rank, "randomized_svd");
  ExploredSubspace space(target, rank + options.extra);
  Block<double> x = first_block(target.dim(), rank, start, options);
  for (Index pass = 1; pass <= options.passes; ++pass) {
    space.clear();
    space.explore(x);
    x = space.products();
    if (pass == 1 || pass < options.report_from) continue;  // the first is the range finder's own
    double objective = 0;
    Block<double> factor = space.factor(rank, options.nystrom, objective);
    log.report(pass, std::move(factor), objective);
  }
  return log.finish(target.trace());
}

Result<double> lobpcg(TargetRef<double> target, Index rank, const Block<double>* start, const Options& options) {
  Log log(target, rank, "lobpcg");
  const Index width = std::min(target.dim(), rank + options.extra);
  ExploredSubspace space(target, 3 * width);
  space.explore(first_block(target.dim(), rank, start, options));
  ExploredSubspace::Ritz x = space.ritz(width);
  Block<double> previous(target.dim(), 0), sigma_previous(target.dim(), 0);
  for (Index pass = 1;; ++pass) {
    if (pass >= options.report_from) {
      double objective = 0;
      Block<double> factor = space.factor(rank, options.nystrom, objective);
      log.report(pass, std::move(factor), objective);
    }
    if (pass == options.passes) break;
    // The residuals Sigma x - x theta are the new directions; what the last step added to x is the third block.
    const Block<double> residual = x.products - x.vectors * x.values.asDiagonal();
    space.clear();
    space.append(x.vectors, x.products);
    space.explore(residual);
    Block<double> p = previous, sigma_p = sigma_previous;
    if (p.cols() > 0) {
      HostSpace<double> host;
      const Small c = project_out(host, space.basis(), p);
      host.multiply(space.products(), -c, sigma_p, Write::add);
      const Small turn = orthonormalise(host, p, 1e-7, Drop::absolute);
      multiply(host, sigma_p, turn, sigma_p.leftCols(turn.cols()));
      space.append(p.leftCols(turn.cols()), sigma_p.leftCols(turn.cols()));
    }
    previous = x.vectors;
    sigma_previous = x.products;
    x = space.ritz(width);
  }
  return log.finish(target.trace());
}

Result<double> block_krylov(TargetRef<double> target, Index rank, const Block<double>* start, const Options& options) {
  Log log(target, rank, "block_krylov");
  const Index width = std::min(target.dim(), rank + options.extra);
  ExploredSubspace space(target, std::min(target.dim(), width * options.passes));
  Block<double> x = first_block(target.dim(), rank, start, options);
  for (Index pass = 1; pass <= options.passes; ++pass) {
    const Index added = space.explore(x);
    const bool invariant = added == 0;
    if (!invariant) x = space.products().rightCols(added);
    if (invariant ? pass > options.report_from : pass < options.report_from) {
      if (invariant) break;
      continue;
    }
    double objective = 0;
    Block<double> factor = space.factor(rank, options.nystrom, objective);
    log.report(invariant ? pass - 1 : pass, std::move(factor), objective);
    if (invariant) break;
  }
  return log.finish(target.trace());
}

}  // namespace itspace::baselines
