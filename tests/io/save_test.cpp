// SPDX-License-Identifier: Apache-2.0
//
// Arrays out: the bytes that NumPy would write, and the same numbers back.
#include <gtest/gtest.h>

#include <itspace/io.hpp>
#include <limits>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::read;

TEST(SaveNpy, WritesWhatNumpyWrites) {
  const Folder folder;
  Block<double> block(2, 3);
  block << 1, 2, 3, 4, 5, 6;
  io::save_npy<double>(folder / "a.npy", block);
  EXPECT_EQ(read(folder / "a.npy"), fixtures::npy_f8("(2, 3)", {1, 2, 3, 4, 5, 6}));
  const Block<float> single = block.cast<float>();
  io::save_npy<float>(folder / "b.npy", single);
  std::string values;
  for (const float value : {1.F, 2.F, 3.F, 4.F, 5.F, 6.F}) {
    values += fixtures::raw(value, false);
  }
  EXPECT_EQ(read(folder / "b.npy"), fixtures::npy_of("<f4", "(2, 3)", values));
}

TEST(SaveNpy, ViewsWithAnyStrideAndShapeComeBack) {
  const Folder folder;
  const Block<double> whole = Block<double>::Random(70, 50);
  for (const auto& [rows, cols] : {std::pair<Index, Index>{70, 50}, {10, 7}, {1, 9}, {9, 1}, {1, 1}, {0, 5}, {5, 0}}) {
    const auto part = whole.block(0, 0, rows, cols);
    io::save_npy<double>(folder / "a.npy", part);
    const auto array = io::open_array(folder / "a.npy");
    EXPECT_EQ(array.info().shape, (std::vector<Index>{rows, cols}));
    EXPECT_TRUE(array.is_borrowed<double>());
    EXPECT_EQ(array.as<double>().view(), part);
  }
}

TEST(SaveNpy, EveryBitIsKept) {
  const Folder folder;
  Block<float> block(1, 6);
  block << -0.F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
      std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max(), 0.1F;
  io::save_npy<float>(folder / "a.npy", block);
  const auto array = io::open_array(folder / "a.npy");
  EXPECT_EQ(std::memcmp(array.as<float>().view().data(), block.data(), sizeof(float) * 6), 0);
}

TEST(SaveNpz, ComesBackMappedAndIsAnOrdinaryZip) {
  const Folder folder;
  const Block<double> sigma = Block<double>::Random(3, 3);
  const Block<double> mu = Block<double>::Random(3, 1);
  const std::vector<io::NamedBlock> arrays = {{"mu", mu, true}, {"sigma", sigma}, {"empty", Block<double>(0, 4)}};
  io::save_npz(folder / "a.npz", arrays);
  EXPECT_EQ(io::array_keys(folder / "a.npz"), (std::vector<std::string>{"mu", "sigma", "empty"}));
  const auto mu_array = io::open_array(folder / "a.npz", "mu");
  EXPECT_EQ(mu_array.info().shape, std::vector<Index>{3});
  EXPECT_EQ(mu_array.as<double>().view(), mu);
  EXPECT_TRUE(mu_array.is_borrowed<double>());
  const auto sigma_array = io::open_array(folder / "a.npz");
  EXPECT_EQ(sigma_array.as<double>().view(), sigma);
  EXPECT_TRUE(sigma_array.is_borrowed<double>());
  EXPECT_EQ(io::open_array(folder / "a.npz", "empty").info().shape, (std::vector<Index>{0, 4}));

  // The same arrays give the same file; the checksums are those of the members.
  const std::string bytes = read(folder / "a.npz");
  io::save_npz(folder / "b.npz", arrays);
  EXPECT_EQ(read(folder / "b.npz"), bytes);
  const std::string reference = fixtures::zip({{"mu.npy", fixtures::npy_f8("(3,)", {mu(0), mu(1), mu(2)})}});
  EXPECT_EQ(bytes.substr(14, 12), reference.substr(14, 12));  // crc and both sizes

  io::save_npz(folder / "none.npz", {});
  EXPECT_TRUE(io::array_keys(folder / "none.npz").empty());
}

TEST(SaveNpz, MisuseIsNamed) {
  const Folder folder;
  const Block<double> block = Block<double>::Zero(2, 2);
  const auto save = [&](std::vector<io::NamedBlock> arrays) { io::save_npz(folder / "a.npz", arrays); };
  EXPECT_THROW(save({{"x", block}, {"x", block}}), std::invalid_argument);
  EXPECT_THROW(save({{"", block}}), std::invalid_argument);
  EXPECT_THROW(save({{"x", block, true}}), std::invalid_argument);
  expect_refused([&] { save({{std::string(70000, 'k'), block}}); }, {"a.npz", "too long"});
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
