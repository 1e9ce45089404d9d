// SPDX-License-Identifier: Apache-2.0
//
// Products of wide matrices with tall blocks, against products in double: plain, transposed, symmetric and squared;
// overwriting and adding; sizes around every limit (strips, tiles, slabs and halves of them, BLAS), blocks with a
// stride of their own, float32 data under double blocks, every instruction set, one thread and several.
#include "kernels/stacked_rows.hpp"

#include "each_kernel.hpp"

#include <itspace/random.hpp>
#include <itspace/threads.hpp>

#include <cmath>
#include <limits>
#include <vector>

extern "C" int openblas_get_num_threads(void) __attribute__((weak));

namespace itspace::kernels {
namespace {

// A block of random values that is part of a wider one, whose other columns must stay as they are.
template <Storage Scalar>
class Framed {
 public:
  Framed(Index rows, Index cols, std::uint64_t seed) : room_(rows, cols + 3), cols_(cols) {
    Random(seed).fill_normal<Scalar>(room_);
    beside_ = room_.rightCols(3);
  }
  BlockView<Scalar> view() { return room_.leftCols(cols_); }
  Small values() const { return room_.leftCols(cols_).template cast<double>(); }
  bool frame_is_whole() const { return Block<Scalar>(room_.rightCols(3)) == beside_; }

 private:
  Block<Scalar> room_, beside_;
  Index cols_;
};

// A residual in units of the rounding of a product of two matrices of these norms.
template <Storage Scalar>
double in_eps(const Small& error, double norm_a, double norm_b) {
  return error.norm() / (std::numeric_limits<Scalar>::epsilon() * norm_a * norm_b);
}

template <Storage Scalar, Storage Data = Scalar>
void check_gemm(Op op, Index rows, Index cols, Index k, Scalar beta, bool shifted) {
  Framed<Data> a(op == Op::plain ? rows : k, op == Op::plain ? k : rows, 1);
  Framed<Scalar> b(k, cols, 2), c(rows, cols, 3);
  Block<Scalar> shift(1, a.values().cols());
  Random(4).fill_normal<Scalar>(shift);
  Small wide_a = a.values();
  if (shifted) wide_a.rowwise() -= shift.row(0).template cast<double>();
  const Small product = op == Op::plain ? Small(wide_a * b.values()) : Small(wide_a.transpose() * b.values());
  const Small expected = 0.5 * product + double(beta) * c.values();
  const Block<Scalar> before = c.view();
  with_each_kernel([&] {
    c.view() = before;
    shifted_gemm<Scalar, Data>(op, Scalar(0.5), a.view(), shifted ? shift.data() : nullptr, b.view(), beta, c.view());
    EXPECT_LT(in_eps<Scalar>(c.values() - expected, wide_a.norm(), b.values().norm()), 30)
        << rows << " x " << cols << ", k = " << k << ", beta " << beta << (op == Op::plain ? "" : ", transposed")
        << (shifted ? ", shifted" : "");
    EXPECT_TRUE(c.frame_is_whole()) << "wrote beside the block";
  });
}

TEST(Products, GemmIsTheProduct) {
  for (const Op op : {Op::plain, Op::transposed})
    for (const Index rows : {1, 9, 255, 1100})
      for (const Index cols : {1, 8, 16, 24, 33, 130})
        for (const Index k : {1, 8, 300})
          for (const int beta : {0, 2}) {
            check_gemm<float>(op, rows, cols, k, float(beta), beta == 0);
            check_gemm<double>(op, rows, cols, k, double(beta), false);
            check_gemm<double, float>(op, rows, cols, k, double(beta), beta == 0);
          }
}

// Of many columns: each thread has rows of the result, and BLAS as many threads after as before.
TEST(Products, ManyColumnsOnAnyNumberOfThreads) {
  const ThreadScope one_of_blas(1);
  for (const Index threads : {1, 2, 5, 16}) {
    const ThreadScope scope(threads);
    for (const Op op : {Op::plain, Op::transposed})
      for (const Index rows : {1, 63, 129, 700}) {
        check_gemm<float>(op, rows, 130, 300, 2.0F, true);
        check_gemm<double>(op, rows, 150, 301, 0.0, false);
        check_gemm<double, float>(op, rows, 129, 77, 2.0, true);
      }
    const Index of_blas = openblas_get_num_threads != nullptr ? openblas_get_num_threads() : threads;
    EXPECT_EQ(of_blas, threads);
  }
}

template <Storage Scalar, Storage Data = Scalar>
void check_symmetric(Index d, Index cols) {
  Block<Data> whole(d, d);
  Random(1).fill_normal<Data>(whole);
  Framed<Scalar> b(d, cols, 2), c(d, cols, 3);
  Small symmetric = whole.template cast<double>();
  symmetric.triangularView<Eigen::StrictlyLower>() = symmetric.transpose();
  whole = symmetric.cast<Data>();
  const Small expected = symmetric * b.values();
  with_each_kernel([&] {
    symmetric_gemm<Scalar, Data>(whole, b.view(), c.view());
    EXPECT_LT(in_eps<Scalar>(c.values() - expected, symmetric.norm(), b.values().norm()), 30) << d << ", " << cols;
    EXPECT_TRUE(c.frame_is_whole()) << "wrote beside the block";
  });
}

TEST(Products, SymmetricIsTheProduct) {
  for (const Index d : {1, 7, 8, 9, 64, 257, 1093, 1100})
    for (const Index cols : {1, 8, 12, 16, 17, 24, 70, 129, 200}) {
      check_symmetric<float>(d, cols);
      check_symmetric<double>(d, cols);
      check_symmetric<double, float>(d, cols);
    }
}

template <Storage Scalar, Storage Data = Scalar>
void check_squared(Index rows, Index d, Index cols, bool weighted) {
  Framed<Data> a(rows, d, 1);
  Framed<Scalar> b(d, cols, 2), c(d, cols, 3);
  Block<Scalar> shift(1, d);
  Random(4).fill_normal<Scalar>(shift);
  std::vector<double> factors(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < factors.size(); ++i)
    factors[i] = weighted ? 0.1 * static_cast<double>((i + 1) % 11) : 0.3;
  Small scaled = a.values();
  scaled.rowwise() -= shift.row(0).template cast<double>();
  for (Index i = 0; i < rows; ++i) scaled.row(i) *= factors[static_cast<std::size_t>(i)];
  const Small expected = scaled.transpose() * (scaled * b.values());
  with_each_kernel([&] {
    squared_gemm<Scalar, Data>(a.view(), shift.data(), {factors.data(), weighted}, b.view(), c.view());
    EXPECT_LT(in_eps<Scalar>(c.values() - expected, scaled.squaredNorm(), b.values().norm()), 30)
        << rows << " x " << d << ", " << cols << (weighted ? ", weighted" : "");
    EXPECT_TRUE(c.frame_is_whole()) << "wrote beside the block";
  });
}

TEST(Products, SquaredIsTwoProducts) {
  for (const Index rows : {1, 8, 21, 300})
    for (const Index d : {1, 50, 1100})
      for (const Index cols : {1, 8, 16, 24, 40, 129}) {
        check_squared<float>(rows, d, cols, true);
        check_squared<double>(rows, d, cols, false);
        check_squared<double, float>(rows, d, cols, true);
      }
  check_squared<float>(40, 30000, 16, true);  // wide beside its rows: threads share the columns
}

// Rows of several matrices as if they were one, and a diagonal.
template <Storage Scalar>
void check_stacked(const std::vector<Index>& heights, Index d, Index cols) {
  Framed<Scalar> b(d, cols, 2), c(d, cols, 3);
  const Vector diagonal = Vector::LinSpaced(d, 0, 2);
  std::vector<Framed<Scalar>> blocks;
  std::vector<std::vector<double>> factors;
  std::vector<RowsPiece<Scalar>> pieces;
  blocks.reserve(heights.size());
  Small sigma = diagonal.asDiagonal();
  for (const Index rows : heights) {
    const bool weighted = blocks.size() % 2 == 0;
    blocks.emplace_back(rows, d, 10 + blocks.size());
    std::vector<double>& some = factors.emplace_back(static_cast<std::size_t>(std::max<Index>(rows, 1)), 0.3);
    for (std::size_t i = 0; weighted && i < some.size(); ++i) some[i] = 0.1 * static_cast<double>((i + 1) % 11);
    const Small values = blocks.back().values();
    for (Index i = 0; i < rows; ++i)
      sigma += std::pow(some[static_cast<std::size_t>(i)], 2) * values.row(i).transpose() * values.row(i);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) pieces.push_back({blocks[i].view(), {factors[i].data(), i % 2 == 0}});
  const Small expected = sigma * b.values();
  with_each_kernel([&] {
    squared_gemm<Scalar, Scalar>(pieces, diagonal.data(), b.view(), c.view());
    EXPECT_LT(in_eps<Scalar>(c.values() - expected, sigma.trace(), b.values().norm()), 30)
        << heights.size() << " matrices, d = " << d << ", " << cols;
    EXPECT_TRUE(c.frame_is_whole()) << "wrote beside the block";
  });
}

TEST(Products, RowsOfSeveralMatricesAreAsThoseOfOne) {
  for (const Index d : {1, 50, 700})
    for (const Index cols : {1, 8, 16, 24, 40, 129}) {
      check_stacked<float>({64, 131, 2}, d, cols);
      check_stacked<double>({0, 3, 0, 9}, d, cols);
    }
  check_stacked<float>({}, 20, 3);
  check_stacked<float>({40, 300, 61}, 700, 100);  // more rows than are multiplied at once
}

template <Storage Scalar>
void check_map(Index rows, Index d, Index rank) {
  Framed<Scalar> samples(rows, d, 1);
  const Block<Scalar> before = samples.view();
  Block<Scalar> from(1, d), to(1, d), basis(d, rank), update(rank, d);
  for (Block<Scalar>* block : {&from, &to, &basis, &update})
    Random(static_cast<std::uint64_t>(block->rows() + 7)).fill_normal<Scalar>(*block);
  Small u = 0.7 * before.template cast<double>();
  u.rowwise() -= 0.7 * from.row(0).template cast<double>();
  const Small inner = u * basis.template cast<double>();
  Small expected = u + inner * update.template cast<double>();
  expected.rowwise() += to.row(0).template cast<double>();
  const double size = u.norm() * (1 + basis.norm() * update.norm()) + to.norm() * std::sqrt(static_cast<double>(rows));
  with_each_kernel([&] {
    samples.view() = before;
    map_rows<Scalar>(Scalar(0.7), from.data(), to.data(), basis, update, samples.view());
    EXPECT_LT(in_eps<Scalar>(samples.values() - expected, size, 1), 30) << rows << " x " << d << ", rank " << rank;
    EXPECT_TRUE(samples.frame_is_whole()) << "wrote beside the samples";
  });
}

TEST(Products, MapsMoveRows) {
  for (const Index rows : {1, 8, 45, 300})
    for (const Index d : {1, 5, 64, 333})
      for (const Index rank : {1, 16, 33, 128}) {
        check_map<float>(rows, d, rank);
        check_map<double>(rows, d, rank);
      }
}

TEST(Products, TheSameBitsEachTime) {
  with_each_kernel([] {
    Block<float> sigma(700, 700), y(700, 16), first(700, 16), again(700, 16);
    Random(1).fill_normal<float>(sigma);
    Random(2).fill_normal<float>(y);
    symmetric_gemm<float, float>(sigma, y, first);
    for (int time = 0; time < 20; ++time) {
      symmetric_gemm<float, float>(sigma, y, again);
      ASSERT_EQ(again, first);
    }
  });
}

}  // namespace
}  // namespace itspace::kernels
