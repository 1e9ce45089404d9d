// SPDX-License-Identifier: Apache-2.0
//
// "Sums that are due together are asked for together": each call of grams() is a reduction over processes, or a wait
// for a device, so that two of them with nothing written in between could have been one.
#include "core/align_impl.hpp"
#include "core/paper_solver_impl.hpp"
#include "core/ritz_solver_impl.hpp"

#include <itspace/targets.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <utility>

namespace itspace {
namespace {

// The host's memory, watched: a reduction is needless where none of its blocks was written since the one before.
class WatchedSpace : public HostSpace<double> {
 public:
  using Base = HostSpace<double>;

  void grams(std::span<const GramRequest<ConstView>> requests) {
    ++reductions;
    const bool due_before = std::none_of(requests.begin(), requests.end(),
                                         [&](const auto& request) { return is_new(request.a) || is_new(request.b); });
    needless += due_before ? 1 : 0;
    written_.clear();
    Base::grams(requests);
  }
  void multiply(const ConstView& a, const Small& m, View out, Write write) {
    note(out);
    Base::multiply(a, m, out, write);
  }
  void blend(const ConstView& y, const ConstView& b, double alpha, View out) {
    note(out);
    Base::blend(y, b, alpha, out);
  }
  void scale_columns(View block, const SmallVector& factors) {
    note(block);
    Base::scale_columns(block, factors);
  }
  void subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, View out) {
    note(out);
    Base::subtract_scaled(a, b, factors, out);
  }
  void copy(const ConstView& from, View to) {
    note(to);
    Base::copy(from, to);
  }
  void fill_normal(const Random& random, View out) {
    note(out);
    Base::fill_normal(random, out);
  }
  void poison(View block) {  // a product with the target follows
    note(block);
    Base::poison(block);
  }

  int reductions = 0, needless = 0;

 private:
  // A column is known by its first entry: views have all rows.
  void note(const ConstView& block) {
    for (Index j = 0; j < block.cols(); ++j) written_.insert(block.data() + j);
  }
  bool is_new(const ConstView& block) const {
    for (Index j = 0; j < block.cols(); ++j)
      if (written_.contains(block.data() + j)) return true;
    return false;
  }
  std::set<const double*> written_;  // since the last reduction
};

// Memory that held something before.
class UsedSpace : public HostSpace<double> {
 public:
  Block make_block(Index rows, Index cols) {
    Block block(rows, cols);
    block.setConstant(std::numeric_limits<double>::quiet_NaN());
    return block;
  }
};

struct AddingTarget {
  Index dim() const { return 4; }
  double trace() const { return 4; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out += y; }
};

// What a target does wrong is told by what it does, not by what the memory of a block held before.
TEST(UsedMemory, DoesNotHideATargetThatAddsToItsOutput) {
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    AlignOptions options;
    options.solver = solver;
    const AddingTarget target;
    UsedSpace space;
    RunContext<UsedSpace> context(space, target);
    auto start = make_random_start(context, 2, 1);
    const auto result = run_from(context, std::move(start), 2, options, {});
    EXPECT_EQ(result.status(), Status::not_a_covariance) << result.trace.reason;
  }
}

// A step of each kind over a covariance with more directions than any subspace holds.
TEST(Reductions, SumsDueTogetherAreAskedForTogether) {
  constexpr Index dim = 60, rank = 3;
  Block<double> features(dim, dim);
  Random(1).fill_normal<double>(features);
  const FeaturesTarget<double> target(features);
  AlignOptions ritz, plain, line_search;
  ritz.solver = Solver::ritz;
  ritz.guard = 2;
  line_search.step_size = StepSize::line_search();
  for (AlignOptions options : {ritz, plain, line_search}) {
    SCOPED_TRACE(options.solver == Solver::ritz ? "ritz" : "paper");
    options.steps = 6;
    WatchedSpace space;
    RunContext<WatchedSpace> context(space, target);
    auto start = make_random_start(context, rank, 1);
    const auto result = run_from(context, std::move(start), rank, options, {});
    EXPECT_EQ(result.status(), Status::step_limit) << result.trace.reason;
    EXPECT_GE(space.reductions, 6);
    EXPECT_EQ(space.needless, 0) << "of " << space.reductions;
  }
}

}  // namespace
}  // namespace itspace
