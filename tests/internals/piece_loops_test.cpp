// SPDX-License-Identifier: Apache-2.0
//
// The loops over a piece of rows against their definitions, under every instruction set and with the same bits.
#include "kernels/piece_loops.hpp"

#include "each_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace itspace::kernels {
namespace {

// About a mean that takes most digits of float.
template <Storage Data>
std::vector<Data> rows_about(double mean, Index count, Index cols) {
  std::vector<Data> rows;
  for (Index k = 0; k < count * cols; ++k)
    rows.push_back(static_cast<Data>(mean + std::sin(static_cast<double>(7 * k + 1))));
  return rows;
}

template <class Type>
class PieceLoopsTest : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(PieceLoopsTest, Types);

TYPED_TEST(PieceLoopsTest, AreTheirDefinitions) {
  using Data = TypeParam;
  constexpr double eps = std::numeric_limits<Data>::epsilon(), eps_double = std::numeric_limits<double>::epsilon();
  for (const Index cols : {1, 7, 16, 33, 1030})
    for (const Index count : {1, 8, 21}) {
      const std::vector<Data> rows = rows_about<Data>(1e4, count, cols);
      const auto at = [&](Index i, Index j) {
        return static_cast<double>(rows[static_cast<std::size_t>(i * cols + j)]);
      };
      std::vector<std::vector<double>> before;
      with_each_kernel([&] {
        const auto& loops = piece_loops<Data>();
        const auto size = static_cast<std::size_t>(cols);
        std::vector<double> close(size, 0), rough(size, 0), squares(size, 1), moved(size, 2);
        loops.add(rows.data(), count, cols, rows.data(), true, close.data());
        loops.add(rows.data(), count, cols, rows.data(), false, rough.data());
        std::vector<double> mean;
        for (const double sum : close) mean.push_back(sum / static_cast<double>(count));
        loops.add_squares(rows.data(), count, cols, rows.data(), mean.data(), squares.data());
        std::vector<Data> centred = rows, offset(mean.begin(), mean.end()), from(rows.begin(), rows.begin() + cols);
        loops.centre(centred.data(), count, cols, rows.data(), offset.data());
        loops.move(from.data(), 4, cols, moved.data());
        for (Index j = 0; j < cols; ++j) {
          const auto k = static_cast<std::size_t>(j);
          double sum = 0, size_of_sum = 0, square = 1;
          for (Index i = 0; i < count; ++i) {
            sum += at(i, j) - at(0, j);
            size_of_sum += std::abs(at(i, j) - at(0, j));
          }
          EXPECT_LE(std::abs(close[k] - sum), 30 * eps_double * size_of_sum);
          EXPECT_LE(std::abs(rough[k] - sum), 30 * eps * size_of_sum);
          for (Index i = 0; i < count; ++i) {
            const double apart = at(i, j) - at(0, j) - mean[k];
            square += apart * apart;
            EXPECT_LE(std::abs(static_cast<double>(centred[static_cast<std::size_t>(i * cols + j)]) - apart), 8 * eps);
          }
          EXPECT_LE(std::abs(squares[k] - square), 30 * eps_double * square);
          EXPECT_EQ(moved[k], 2 + 4 * at(0, j));
          EXPECT_EQ(from[k], Data(0));
        }
        if (before.empty()) before = {close, rough, squares};
        EXPECT_EQ(before, (std::vector<std::vector<double>>{close, rough, squares}));
      });
    }
}

}  // namespace
}  // namespace itspace::kernels
