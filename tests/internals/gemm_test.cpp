// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a product with few columns is handed to BLAS: whole, a few rows at a time, by columns; overwriting
// and adding; sizes on both sides of each limit, blocks with a stride of their own, and float32 data under double
// blocks.
#include "kernels/block_ops.hpp"

#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace itspace::kernels {
namespace {

template <Storage Scalar, Storage Data = Scalar>
void check(Op op, Index rows, Index cols, Index k, Scalar beta) {
  Block<Data> a(op == Op::plain ? rows : k, op == Op::plain ? k : rows);
  Block<Scalar> b(k, cols), room(rows, cols + 3);
  Random(1).fill_normal<Data>(a);
  Random(2).fill_normal<Scalar>(b);
  Random(3).fill_normal<Scalar>(room);
  const Small wide_a = a.template cast<double>(), wide_b = b.template cast<double>();
  const Small product = op == Op::plain ? Small(wide_a * wide_b) : Small(wide_a.transpose() * wide_b);
  const Small expected = 0.5 * product + double(beta) * room.leftCols(cols).template cast<double>();
  const Block<Scalar> beside = room.rightCols(3);
  gemm<Scalar, Data>(op, Scalar(0.5), a, b, beta, room.leftCols(cols));
  const double eps = std::numeric_limits<Scalar>::epsilon();
  EXPECT_LT((room.leftCols(cols).template cast<double>() - expected).norm(), 30 * eps * wide_a.norm() * wide_b.norm())
      << rows << " x " << cols << ", k = " << k << ", beta " << beta << (op == Op::plain ? "" : ", transposed");
  EXPECT_EQ(Block<Scalar>(room.rightCols(3)), beside) << "wrote beside the block";
}

TEST(Gemm, EveryPathIsTheProduct) {
  for (const Op op : {Op::plain, Op::transposed})
    for (const Index rows : {1, 255, 256, 700})
      for (const Index cols : {1, 16, 64, 65})
        for (const Index k : {1, 255, 300})
          for (const int beta : {0, 1, 2}) {
            check<float>(op, rows, cols, k, float(beta));
            check<double>(op, rows, cols, k, double(beta));
            check<double, float>(op, rows, cols, k, double(beta));
          }
}

}  // namespace
}  // namespace itspace::kernels
