// SPDX-License-Identifier: Apache-2.0
//
// Small problems side by side: each lane against the definition, and against the decomposition that it stands for; and
// no lane knows of its neighbours.
#include "kernels/lanes.hpp"

#include "core/certificate.hpp"
#include "core/polar.hpp"
#include "core/side_by_side.hpp"
#include "each_kernel.hpp"

#include <itspace/evaluate.hpp>
#include <itspace/random.hpp>
#include <itspace/targets.hpp>

#include <Eigen/SVD>

#include <cmath>
#include <limits>
#include <vector>

namespace itspace::kernels {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();
const double nan = std::numeric_limits<double>::quiet_NaN();

// n x n matrices of all lanes, aligned.
class Matrices {
 public:
  Matrices(Arrangement arrangement, Index n)
      : n_(n), lanes_(lane_count()), places_{arrangement, n}, memory_(n, LanePlaces{arrangement, n}.row_stride()) {
    memory_.setZero();
    for (Index lane = 0; lane < (arrangement == Arrangement::alone ? 1 : lanes_); ++lane)
      put(lane, Small::Constant(n, n, nan));
  }
  double* data() { return memory_.data(); }
  void put(Index lane, const Small& from) {
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < n_; ++j) memory_(i, places_.entry(j, lane, lanes_)) = from(i, j);
  }
  Small get(Index lane) const {
    Small to(n_, n_);
    for (Index i = 0; i < n_; ++i)
      for (Index j = 0; j < n_; ++j) to(i, j) = memory_(i, places_.entry(j, lane, lanes_));
    return to;
  }

 private:
  Index n_, lanes_;
  LanePlaces places_;
  Block<double> memory_;
};

struct Problem {
  Small y_gram, theta, w_gram, r, inverse;

  // Y with singular values from 1 to 1/condition, theta with energies from 1 to 1/spread.
  Problem(Index n, double spread, double condition, std::uint64_t seed) {
    const Small u = orthonormal(n, seed), v = orthonormal(n, seed + 1), e = orthonormal(n, seed + 2);
    SmallVector s(n), h(n);
    for (Index i = 0; i < n; ++i) {
      const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0;
      s(i) = std::pow(condition, -share);
      h(i) = std::pow(spread, -share);
    }
    const Small y = u * s.asDiagonal() * v.transpose();
    y_gram = y.transpose() * y;
    y_gram = 0.5 * (y_gram + y_gram.transpose()).eval();
    theta = e * h.asDiagonal() * e.transpose();
    theta = 0.5 * (theta + theta.transpose()).eval();
    w_gram = theta * theta;
  }

  static Small orthonormal(Index n, std::uint64_t seed) {
    Block<double> block(n, n);
    Random(seed).fill_normal<double>(block);
    return Eigen::JacobiSVD<Small>(Small(block), Eigen::ComputeFullU).matrixU();
  }
};

struct Found {
  Small m;
  std::vector<double> numbers;  // as in LaneCertificateOut
};

// All lanes at once.
class Work {
 public:
  explicit Work(Index n, Arrangement arrangement = Arrangement::side_by_side)
      : n_(n),
        arrangement_(arrangement),
        gram_(arrangement, n),
        r_(arrangement, n),
        inverse_(arrangement, n),
        theta_(arrangement, n),
        w_gram_(arrangement, n),
        m_(arrangement, n),
        numbers_(13, lane_count()) {
    numbers_.setConstant(nan);
  }
  void put(Index lane, const Problem& p, double noise) {
    gram_.put(lane, p.y_gram);
    theta_.put(lane, p.theta);
    w_gram_.put(lane, p.w_gram);
    numbers_(1, lane) = noise;
  }
  void run() {
    std::vector<LanePolynomial> polynomials;
    for (const OddPolynomial& p : polar_polynomials()) polynomials.push_back({p.a, p.b, p.c, p.lowest});
    lane_basis(arrangement_, n_, gram_.data(), r_.data(), inverse_.data(), row(0));
    lane_certificate(
        arrangement_, n_, {theta_.data(), w_gram_.data(), r_.data(), inverse_.data(), row(1)}, polynomials,
        {m_.data(), row(2), row(3), row(4), row(5), row(6), row(7), row(8), row(9), row(10), row(11), row(12)});
  }
  Small r(Index lane) const { return r_.get(lane); }
  Small inverse(Index lane) const { return inverse_.get(lane); }
  Found found(Index lane) const {
    Found out{m_.get(lane), {}};
    for (Index i = 0; i < numbers_.rows(); ++i) out.numbers.push_back(numbers_(i, lane));
    return out;
  }

 private:
  double* row(Index i) { return numbers_.data() + i * numbers_.cols(); }

  Index n_;
  Arrangement arrangement_;
  Matrices gram_, r_, inverse_, theta_, w_gram_, m_;
  Block<double> numbers_;
};

TEST(Lanes, ACertificateIsThatOfTheDecomposition) {
  with_each_kernel([] {
    for (const Index n : {1, 2, 3, 5, 8, 13, 16}) {
      Work work(n);
      std::vector<Problem> problems;
      constexpr double noise = 1e-15;
      for (Index lane = 0; lane < lane_count(); ++lane) {
        problems.emplace_back(n, lane % 2 == 0 ? 1.0 : 100.0, std::pow(3.0, static_cast<double>(lane % 3)),
                              static_cast<std::uint64_t>(100 * n + lane));
        work.put(lane, problems.back(), noise);
      }
      work.run();
      for (Index lane = 0; lane < lane_count(); ++lane) {
        SCOPED_TRACE(testing::Message() << n << " columns, lane " << lane);
        const Problem& p = problems[static_cast<std::size_t>(lane)];
        const double size = static_cast<double>(n);
        Basis basis;
        basis.r = work.r(lane);
        basis.inverse = work.inverse(lane);
        basis.cols = n;
        basis.y_gram = p.y_gram;
        basis.y_squared = p.y_gram.trace();
        EXPECT_LE((basis.r.transpose() * basis.r - p.y_gram).norm(), 10 * size * eps * p.y_gram.norm());
        EXPECT_LE((basis.r * basis.inverse - Small::Identity(n, n)).norm(),
                  10 * size * eps * basis.r.norm() * basis.inverse.norm());

        Certificate exact;
        make_certificate(p.theta, basis.r, basis, {.noise = noise, .length = 4 * eps, .relative = 30 * eps}, 0, exact);
        const Found found = work.found(lane);
        const double nuclear_norm = found.numbers[2], gap = found.numbers[3], orthogonality = found.numbers[4];
        EXPECT_LE(std::abs(nuclear_norm - exact.nuclear_norm), 2 * exact.uncertainty);
        EXPECT_GE(gap, 0);
        EXPECT_LE(gap, 1e-12 * nuclear_norm);
        EXPECT_LE(orthogonality, 1e-12);
        // Feasible, and with the gap that it says.
        const Small gram = found.m.transpose() * p.theta * found.m;
        EXPECT_LE(Eigen::JacobiSVD<Small>(gram).singularValues()(0), 1 + 30 * size * eps);
        EXPECT_LE(std::abs(nuclear_norm - (found.m.transpose() * p.theta * basis.r).trace() - gap),
                  30 * size * eps * nuclear_norm);
        EXPECT_LE((found.m - exact.m).norm(), 100 * size * eps * std::sqrt(exact.condition) * exact.m.norm());
        // The directions are those of the columns, and noise ||m_i||^2 of each is in doubt.
        Certificate by_columns;
        by_columns.rank = n;
        by_columns.served = found.m;
        by_columns.directions = Small::Identity(n, n);
        by_columns.doubt = (noise * found.m.colwise().squaredNorm().transpose()).cwiseMax(eps);
        const double doubt = promise_doubt(image_lengths(p.w_gram, by_columns), basis, by_columns);
        EXPECT_LE(std::abs(found.numbers[12] - doubt), 1e-10 * doubt);
      }
    }
  });
}

TEST(Lanes, DoNotKnowOfEachOther) {
  with_each_kernel([] {
    for (const Index n : {1, 4, 7, 8, 11, 16}) {
      const Problem mine(n, 10, 5, 77), other(n, 1e3, 20, 78);
      std::vector<std::vector<double>> seen;
      for (int around = 0; around < 3; ++around)
        for (Index lane = 0; lane < lane_count(); ++lane) {
          Work work(n);  // of NaN
          if (around > 0)
            for (Index i = 0; i < lane_count(); ++i) work.put(i, around == 1 ? other : mine, 1e-10);
          work.put(lane, mine, 1e-15);
          work.run();
          Found found = work.found(lane);
          found.numbers.insert(found.numbers.end(), found.m.data(), found.m.data() + found.m.size());
          seen.push_back(found.numbers);
          ASSERT_EQ(seen.front(), seen.back()) << n << ", " << around << ", " << lane;
        }
      Work alone(n, Arrangement::alone);
      alone.put(0, mine, 1e-15);
      alone.run();
      Found found = alone.found(0);
      found.numbers.insert(found.numbers.end(), found.m.data(), found.m.data() + found.m.size());
      ASSERT_EQ(seen.front(), found.numbers) << n;
    }
  });
}

TEST(Lanes, WhatIsNotToBeHadIsNotANumber) {
  with_each_kernel([] {
    const Index n = 4;
    for (const bool singular_y : {true, false}) {
      Problem p(n, 1, 1, 5);
      (singular_y ? p.y_gram : p.theta).setZero();
      Work work(n);
      work.put(0, p, 1e-15);
      work.run();
      EXPECT_FALSE(work.found(0).numbers[4] <= 1e-11);
    }
    Work far_apart(n);  // beyond the polynomials
    far_apart.put(0, Problem(n, 1e10, 1e5, 6), 1e-15);
    far_apart.run();
    EXPECT_FALSE(far_apart.found(0).numbers[4] <= 1e-11);
  });
}

}  // namespace
}  // namespace itspace::kernels

namespace itspace {
namespace {

// Dense, until its `switches_at`-th product: then it is twice itself, and says so.
struct Moving {
  Block<double> sigma;
  Index switches_at;
  mutable Index products = 0;
  bool has_moved() const { return products >= switches_at; }

  Index dim() const { return sigma.rows(); }
  double trace() const { return (has_moved() ? 2.0 : 1.0) * sigma.trace(); }
  std::uint64_t version() const { return has_moved() ? 1 : 0; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const {
    out.noalias() = (has_moved() ? 2.0 : 1.0) * (sigma * y);
    ++products;
  }
};

Block<double> decaying(Index d) {
  const Small v = kernels::Problem::orthonormal(d, 3);
  SmallVector h(d);
  for (Index i = 0; i < d; ++i) h(i) = std::pow(0.8, static_cast<double>(i));
  const Small sigma = v * h.asDiagonal() * v.transpose();
  return Block<double>(Small(0.5 * (sigma + sigma.transpose())));
}

// What runs side by side hand over goes on where it was: one row after the other, each handed out once.
TEST(SideBySide, ARunThatIsHandedOverGoesOn) {
  const Index d = 20, r = 4;
  Block<double> start(d, r);
  Random(9).fill_normal<double>(start);
  for (const Index switches_at : {0, 1, 2, 5}) {
    const Moving target{decaying(d), switches_at};
    std::vector<Index> rows;
    const Result<double> run = align<double>(target, start, {.steps = 8}, [&](const Step& s, const auto&) {
      rows.push_back(s.index);
      return StepAction::proceed;
    });
    EXPECT_EQ(run.trace.status, Status::step_limit);
    EXPECT_EQ(run.trace.passes_total, target.products);
    ASSERT_EQ(rows.size(), 9u) << switches_at;
    for (std::size_t k = 0; k < rows.size(); ++k) EXPECT_EQ(rows[k], static_cast<Index>(k));
    // The end is that of a run to the new target from the iterate at which it moved.
    EXPECT_EQ(run.trace.steps.back().target_version, 1);
  }
}

// A matrix as an operator, with a trace of its own.
struct Operator {
  Small matrix;
  double claimed;

  Index dim() const { return matrix.rows(); }
  double trace() const { return claimed; }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out.noalias() = matrix * y; }
};

// What is not plain is the general solver's, also at the last iterate, where nothing is promised.
TEST(SideBySide, WhatIsNotPlainIsHandedOver) {
  const Index d = 9, r = 3;
  Block<double> start(d, r);
  Random(11).fill_normal<double>(start);
  Block<double> thin = start;
  thin.col(1) = thin.col(0);
  const Small whole = decaying(d);
  Small flat = whole, skew = whole, faint = whole;
  flat.bottomRows(d - 2).setZero();
  flat.rightCols(d - 2).setZero();
  skew.row(0) *= 1.5;
  faint.bottomRows(d - 2) *= 1e-9;
  faint.rightCols(d - 2) *= 1e-9;
  const struct {
    const char* what;
    Operator target;
    const Block<double>& y;
    Status status;
  } cases[] = {{"all is plain", {whole, whole.trace()}, start, Status::step_limit},
               {"a target of rank 2", {flat, flat.trace()}, start, Status::step_limit},
               {"energies at rounding level", {faint, faint.trace()}, start, Status::step_limit},
               {"a start of rank 2", {whole, whole.trace()}, thin, Status::step_limit},
               {"not symmetric", {skew, skew.trace()}, start, Status::not_a_covariance},
               {"less trace than is seen", {whole, 0.1 * whole.trace()}, start, Status::not_a_covariance},
               {"negative", {-whole, whole.trace()}, start, Status::not_a_covariance}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const Result<double> run = align<double>(c.target, c.y, {.steps = 0});
    const Evaluation<double> exact = evaluate<double>(c.target, c.y);
    EXPECT_EQ(run.trace.status, c.status);
    EXPECT_EQ(exact.status, c.status);
    if (c.status != Status::step_limit) continue;
    const Step& row = run.trace.steps.front();
    EXPECT_EQ(row.gram_rank, exact.certificate.gram_rank);
    EXPECT_LE(std::abs(row.objective - exact.certificate.objective), row.resolution + exact.certificate.resolution);
    EXPECT_LE(row.resolution, 2 * exact.certificate.resolution);
  }
}

// To where nothing descends any more: the last rows are the general solver's.
TEST(SideBySide, RunsToRoundingLevel) {
  const Index d = 12;
  const Block<double> sigma = decaying(d);
  Block<double> start(d, d);
  Random(10).fill_normal<double>(start);
  const Result<double> run = align<double>(DenseTarget<double>(borrow(sigma)), start, {.steps = 400});
  EXPECT_TRUE(run.trace.certified());
  EXPECT_LE(run.trace.steps[static_cast<std::size_t>(run.trace.best)].objective, 1e-13 * sigma.trace());
  EXPECT_EQ(run.trace.passes_total >= run.trace.steps.back().passes, true);
  for (std::size_t k = 0; k < run.trace.steps.size(); ++k) EXPECT_EQ(run.trace.steps[k].index, static_cast<Index>(k));
}

}  // namespace
}  // namespace itspace
