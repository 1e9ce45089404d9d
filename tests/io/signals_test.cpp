// SPDX-License-Identifier: Apache-2.0
//
// What signal handlers can ask: the temporary files there are, and whose bytes lie at an address.
#include <gtest/gtest.h>

#include <itspace/io.hpp>
#include <itspace/row_stream.hpp>
#include <itspace/signals.hpp>
#include <memory>
#include <thread>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::Folder;
using Names = std::vector<std::string>;

TEST(Signals, TemporariesAreRemovedAndFinishedFilesStay) {
  const Folder folder;
  io::save_text(folder / "done", "done");
  auto writer = std::make_unique<io::RowWriter<double>>(folder / "rows", 10, 2);
  io::Outputs outputs;
  io::save_text(outputs, folder / "text", "x");
  EXPECT_EQ(folder.names().size(), 3U);
  io::remove_temporaries();
  EXPECT_EQ(folder.names(), Names{"done"});
  writer.reset();
  io::remove_temporaries();
  EXPECT_EQ(folder.names(), Names{"done"});
}

TEST(Signals, ManyTemporariesAreNoTrouble) {
  const Folder folder;
  std::vector<std::unique_ptr<io::RowWriter<double>>> writers;
  for (int i = 0; i < 300; ++i) {
    writers.push_back(std::make_unique<io::RowWriter<double>>(folder / std::to_string(i), 1, 1));
  }
  io::remove_temporaries();
  EXPECT_LE(folder.names().size(), 300U - 256U);
  writers.clear();
  EXPECT_TRUE(folder.names().empty());
  io::RowWriter<double> one(folder / "one", 1, 1);  // there is room again
  io::remove_temporaries();
  EXPECT_TRUE(folder.names().empty());
}

TEST(Signals, AMappedFileIsNamedByItsAddress) {
  const Folder folder;
  const Block<double> block = Block<double>::Ones(1000, 100);
  io::save_npy<double>(folder / "a.npy", block);
  io::save_npy<double>(folder / "b.npy", block);
  const double* place = nullptr;
  {
    const auto a = io::open_array(folder / "a.npy");
    const auto b = io::open_array(folder / "b.npy");
    const auto values = b.as<double>();
    place = values.view().data();
    EXPECT_STREQ(io::mapped_file_at(place), (folder / "b.npy").c_str());
    EXPECT_STREQ(io::mapped_file_at(place + block.size() - 1), (folder / "b.npy").c_str());
    EXPECT_EQ(io::mapped_file_at(&block), nullptr);
    EXPECT_EQ(io::mapped_file_at(nullptr), nullptr);
  }
  EXPECT_EQ(io::mapped_file_at(place), nullptr);
}

}  // namespace
