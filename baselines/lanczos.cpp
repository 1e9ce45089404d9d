// SPDX-License-Identifier: Apache-2.0
#include "baselines/explored_subspace.hpp"

#include <Spectra/SymEigsSolver.h>

#include <itspace/random.hpp>

#include <algorithm>

namespace itspace::baselines {
namespace {

// Spectra's operator contract, over a Target; counts its products.
class Operator {
 public:
  using Scalar = double;
  explicit Operator(TargetRef<double> target) : target_(target) {}
  Index rows() const { return target_.dim(); }
  Index cols() const { return target_.dim(); }
  void perform_op(const double* in, double* out) const {
    ++passes_;
    target_.apply(Eigen::Map<const RowMajorMatrix<double>>(in, rows(), 1), Eigen::Map<RowMajorMatrix<double>>(out, rows(), 1));
  }
  Index passes() const { return passes_; }

 private:
  TargetRef<double> target_;
  mutable Index passes_ = 0;
};

}  // namespace

Result<double> lanczos(TargetRef<double> target, Index rank, const Block<double>* start, double tolerance,
                       Index most_restarts, const Options& options) {
  Log log(target, rank, "lanczos");
  Operator op(target);
  const Index basis = std::min(target.dim(), std::max<Index>(2 * rank + 1, rank + 20));
  Spectra::SymEigsSolver<Operator> solver(op, rank, basis);
  Block<double> first(target.dim(), 1);
  Random(options.seed, 4).fill_normal<double>(first);
  if (start) first = start->rowwise().sum();  // a warm start gives one vector: the sum of its columns
  solver.init(first.data());
  solver.compute(Spectra::SortRule::LargestAlge, most_restarts, tolerance, Spectra::SortRule::LargestAlge);
  const Eigen::VectorXd values = solver.eigenvalues().cwiseMax(0.0);
  Block<double> factor = Block<double>::Zero(target.dim(), rank);
  factor.leftCols(values.size()) = solver.eigenvectors() * values.cwiseSqrt().asDiagonal();
  log.report(op.passes(), std::move(factor), std::max(0.0, target.trace() - values.sum()));
  return log.finish(target.trace());
}

}  // namespace itspace::baselines
