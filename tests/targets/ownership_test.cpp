// SPDX-License-Identifier: Apache-2.0
//
// Targets hold their data. Each of these programs is innocent, and read freed memory when targets borrowed what they
// were given (the address sanitizer sees it; here the values are looked at). What cannot be safe does not compile.
#include "runs.hpp"

#include <itspace/io.hpp>

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <type_traits>

namespace itspace::test {
namespace {

Block<double> rows_of(std::uint64_t seed) {
  return block<double>(Draw(seed).gaussian(40, 6));
}

// Sigma y for y = 1, by the definition.
Block<double> expected(const Block<double>& z) {
  const RealMatrix t = centred_factor_of(wide(z), {});
  return (t * t.transpose() * RealMatrix::Ones(6, 1)).cast<double>();
}

template <class Target>
void expect_sees(const Target& target, const Block<double>& z) {
  Block<double> out(6, 1);
  target.apply(Block<double>::Ones(6, 1), out);
  EXPECT_LT((out - expected(z)).norm(), 1e-12 * expected(z).norm());
}

FeaturesTarget<double> from_a_local() {
  const Block<double> z = rows_of(1);
  return FeaturesTarget<double>(z);
}
Block<double> const constant_rows() {
  return rows_of(2);
}

TEST(Ownership, OfALocal) {
  expect_sees(from_a_local(), rows_of(1));
}

TEST(Ownership, OfAConstantTemporary) {
  const FeaturesTarget<double> target(constant_rows());
  expect_sees(target, rows_of(2));
}

TEST(Ownership, InALoop) {
  std::vector<FeaturesTarget<double>> targets;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Block<double> z = rows_of(seed);
    targets.emplace_back(z);
  }
  for (std::uint64_t seed = 0; seed < 3; ++seed) expect_sees(targets[seed], rows_of(seed));
}

TEST(Ownership, OfAFile) {
  const auto path =
      std::filesystem::temp_directory_path() / ("itspace-ownership-" + std::to_string(::getpid()) + ".npy");
  io::save_npy<double>(path, rows_of(4));
  const FeaturesTarget<double> target(io::open_array(path).as<double>());
  expect_sees(target, rows_of(4));
  std::filesystem::remove(path);
}

TEST(Ownership, OfAStructThatIsCopied) {
  struct Domain {
    Block<double> z;
    FeaturesTarget<double> target;
    explicit Domain(const Block<double>& rows) : z(rows), target(z) {}
  };
  std::optional<Domain> first(rows_of(5));
  const Domain copy = *first;
  first.reset();
  expect_sees(copy.target, rows_of(5));
}

TEST(Ownership, OfAShiftedTemporary) {
  const ShiftedTarget<double> shifted(FeaturesTarget<double>(rows_of(6)), 0.5);
  Block<double> out(6, 1);
  shifted.apply(Block<double>::Ones(6, 1), out);
  const Block<double> wanted = expected(rows_of(6)) + 0.5 * Block<double>::Ones(6, 1);
  EXPECT_LT((out - wanted).norm(), 1e-12 * wanted.norm());
}

// A call takes a temporary, which lives as long as it.
TEST(Ownership, OfATemporaryInACall) {
  const Block<double> start = block<double>(Draw(8).gaussian(6, 2));
  const auto result = align<double>(FeaturesTarget<double>(rows_of(7)), start, {.steps = 1});
  EXPECT_TRUE(result.trace.certified());
}

TEST(Ownership, TakesWhatEigenUsersHave) {
  const Block<double> z = rows_of(9);
  const Eigen::MatrixXd by_columns = z;
  const Eigen::MatrixXf single = by_columns.cast<float>();
  expect_sees(FeaturesTarget<double>(by_columns), z);
  expect_sees(FeaturesTarget<double>(2 * by_columns - by_columns), z);
  expect_sees(FeaturesTarget<double>(Eigen::Map<const Eigen::MatrixXd>(by_columns.data(), 40, 6)), z);
  expect_sees(FeaturesTarget<double>(z.topRows(20)), Block<double>(z.topRows(20)));
  expect_sees(FeaturesTarget<double, float>(single), block<double>(wide(Block<float>(single))));
  Block<double> given = z;
  const double* memory = given.data();
  const HeldBlock<double> held(std::move(given));
  EXPECT_EQ(held.view().data(), memory);  // taken over, not copied
  EXPECT_EQ(HeldBlock<double>(borrow(z)).view().data(), z.data());
}

template <class T>
concept CanBeBorrowed = requires(T&& value) {
  borrow(std::forward<T>(value));
};

static_assert(CanBeBorrowed<Block<double>&> && CanBeBorrowed<const Block<double>&>);
static_assert(!CanBeBorrowed<Block<double>> && !CanBeBorrowed<const Block<double>>);
static_assert(!CanBeBorrowed<Eigen::MatrixXd&>, "its rows are not contiguous");
static_assert(std::is_constructible_v<TargetRef<double>, const DenseTarget<double>&>);
static_assert(!std::is_constructible_v<TargetRef<double>, DenseTarget<double>>, "it would refer to a temporary");
static_assert(!std::is_constructible_v<BlockView<double>, const Block<double>&>);
static_assert(!std::is_constructible_v<BlockView<double>, Block<double>>);
static_assert(!std::is_constructible_v<BlockView<double>, ConstBlockView<double>>, "it is for reading");

}  // namespace
}  // namespace itspace::test
