// SPDX-License-Identifier: Apache-2.0
//
// What the ranks say to each other: sums in one order, the same bits everywhere, errors that all of them know of.
#include "same_bits.hpp"

#include "expect_throw.hpp"
#include "problems.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace itspace::test {
namespace {

const mpi::Communicator& ranks() {
  return all_ranks();
}

TEST(Communicator, SharesCoverTheRowsOnce) {
  for (const Index rows : {0, 1, 2, 3, 17, 1000}) {
    Index next = 0;
    for (int p = 0; p < ranks().size(); ++p) {
      EXPECT_EQ(ranks().first_row(p, rows), next);
      next = ranks().first_row(p + 1, rows);
    }
    EXPECT_EQ(next, rows);
  }
}

// Numbers whose sum depends on the order: the one of the ranks is the one that counts, on every rank.
TEST(Communicator, SumsInTheOrderOfTheRanks) {
  const auto part = [](int rank) { return rank == 0 ? 1 : rank == 1 ? 1e16 : rank == 2 ? -1e16 : 3; };
  double expected = 0;
  for (int p = 0; p < ranks().size(); ++p) expected += part(p);
  std::vector<double> few(5, part(ranks().rank()));
  ranks().sum(few);
  for (const double value : few) EXPECT_EQ(value, expected);
  Block<double> many = Block<double>::Constant(13, 3, part(ranks().rank()));
  ranks().sum_rows<double>(many);
  EXPECT_TRUE((many.array() == expected).all());
}

// In float32 the sum is made in double, and rounded once.
TEST(Communicator, FloatsAreSummedInDouble) {
  Block<float> block = Block<float>::Constant(9, 2, ranks().rank() == 0 ? 16777216.0f : 0.75f);
  ranks().sum_rows<float>(block);
  const auto expected = static_cast<float>(16777216.0 + 0.75 * (ranks().size() - 1));
  EXPECT_TRUE((block.array() == expected).all());
}

// More than one round of messages, and a stride.
TEST(Communicator, LargeBlocksGoInRounds) {
  const Index rows = 700001, cols = 7;
  Block<double> wide(rows, cols + 2);
  wide.setConstant(-1);
  for (Index i = 0; i < rows; ++i) wide.row(i).head(cols).setConstant(static_cast<double>(i * (ranks().rank() + 1)));
  ranks().sum_rows<double>(wide.leftCols(cols));
  const double factor = ranks().size() * (ranks().size() + 1) / 2.0;
  for (Index i = 0; i < rows; ++i)
    ASSERT_TRUE((wide.row(i).head(cols).array() == static_cast<double>(i) * factor).all()) << i;
  EXPECT_TRUE((wide.rightCols(2).array() == -1).all());
}

TEST(Communicator, RowsOfEachBecomeKnownToAll) {
  for (const Index rows : {1, 2, 5, 61}) {
    const Block<double> whole = block<double>(Draw(7).gaussian(rows, 3));
    Block<double> own = whole.middleRows(ranks().first_row(rows), ranks().own_rows(rows));
    Block<double> all = Block<double>::Zero(rows, 3);
    ranks().gather_rows<double>(own, all);
    EXPECT_EQ(all, whole) << rows;
    Block<double> back(own.rows(), 3);
    ranks().sum_to_owners<double>(whole, back);
    EXPECT_EQ(back, Block<double>(own * static_cast<double>(ranks().size()))) << rows;
  }
}

TEST(Communicator, RankZeroTellsTheOthers) {
  Block<float> block = Block<float>::Constant(5, 3, static_cast<float>(ranks().rank() + 4));
  ranks().broadcast<float>(block);
  EXPECT_TRUE((block.array() == 4).all());
  EXPECT_EQ(ranks().broadcast("said by " + std::to_string(ranks().rank())), "said by 0");
  EXPECT_EQ(ranks().broadcast(""), "");
  EXPECT_EQ(ranks().any(ranks().rank() == ranks().size() - 1), true);
  EXPECT_EQ(ranks().any(false), false);
}

TEST(Communicator, AnErrorOfOneIsAnErrorOfAll) {
  const int last = ranks().size() - 1;
  const auto failing = [&](auto error) {
    return [&, error] {
      if (ranks().rank() == last) throw error;
    };
  };
  const std::string where =
      ranks().size() == 1 ? "" : "on rank " + std::to_string(last) + " of " + std::to_string(last + 1) + ": ";
  const auto text_of = [&](const auto& work) -> std::string {
    try {
      ranks().agree(work);
    } catch (const mpi::AgreedMisuse& error) {
      return std::string("misuse: ") + error.what();
    } catch (const mpi::AgreedFailure& error) {
      return std::string("failure: ") + error.what();
    }
    return "";
  };
  EXPECT_EQ(text_of([] {}), "");
  EXPECT_EQ(text_of(failing(std::invalid_argument("a word"))), "misuse: " + where + "a word");
  EXPECT_EQ(text_of(failing(std::runtime_error("a file"))), "failure: " + where + "a file");
  EXPECT_EQ(text_of(failing(std::bad_alloc())), "failure: " + where + "out of memory");
  // What all of them say is nobody's alone.
  EXPECT_EQ(text_of([] { throw std::invalid_argument("each"); }), "misuse: each");
}

TEST(Communicator, AFingerprintTellsBitsApart) {
  const Block<double> one = block<double>(Draw(1).gaussian(17, 5));
  Block<double> other = one;
  EXPECT_EQ(mpi::fingerprint<double>(one), mpi::fingerprint<double>(other));
  for (Index i = 0; i < 17; ++i)
    for (Index j = 0; j < 5; ++j) {
      other(i, j) = std::nextafter(one(i, j), 1e300);
      EXPECT_NE(mpi::fingerprint<double>(one), mpi::fingerprint<double>(other)) << i << " " << j;
      other(i, j) = one(i, j);
    }
  other.row(0).swap(other.row(1));
  EXPECT_NE(mpi::fingerprint<double>(one), mpi::fingerprint<double>(other));
}

}  // namespace
}  // namespace itspace::test
