// SPDX-License-Identifier: Apache-2.0
//
// Rows in chunks of any size are the rows of the whole array; a file appears whole or not at all.
#include <gtest/gtest.h>

#include <itspace/row_stream.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;

Block<double> read_in_chunks(const std::filesystem::path& path, Index chunk_rows) {
  io::RowReader reader(path);
  Block<double> whole(reader.rows(), reader.cols());
  Block<double> chunk(chunk_rows, reader.cols());
  Index first = 0;
  while (const Index count = reader.read<double>(chunk)) {
    whole.middleRows(first, count) = chunk.topRows(count);
    first += count;
  }
  EXPECT_EQ(first, reader.rows());
  EXPECT_EQ(reader.read<double>(chunk), 0);
  return whole;
}

TEST(RowReader, ChunksOfEveryTypeAndOrderAreTheWhole) {
  const Folder folder;
  std::string big, fortran, bytes;
  for (int i = 0; i < 15; ++i) {
    big += fixtures::raw(float(i), true);
    bytes += static_cast<char>(i);
  }
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 5; ++i) {
      fortran += fixtures::raw(double(3 * i + j), false);
    }
  }
  folder.write("big.npy", fixtures::npy_of(">f4", "(5, 3)", big));
  folder.write("fortran.npy", fixtures::npy_of("<f8", "(5, 3)", fortran, true));
  folder.write("bytes.npy", fixtures::npy_of("|u1", "(5, 3)", bytes));
  Block<double> expected(5, 3);
  for (Index i = 0; i < 15; ++i) {
    expected(i / 3, i % 3) = static_cast<double>(i);
  }
  io::save_npy<double>(folder / "plain.npy", expected);
  for (const char* name : {"big.npy", "fortran.npy", "bytes.npy", "plain.npy"}) {
    for (const Index chunk : {1, 2, 3, 5, 9}) {
      EXPECT_EQ(read_in_chunks(folder / name, chunk), expected) << name << " in chunks of " << chunk;
    }
  }
}

// The checksum of a stored member is that of the rows as they were read: the last one is not given out if it is wrong.
TEST(RowReader, AFlippedBitIsFoundWithTheLastRow) {
  const Folder folder;
  for (const bool fortran : {false, true}) {
    std::string values;
    for (int i = 0; i < 15; ++i) {
      values += fixtures::raw(double(i), false);
    }
    const std::string content = fixtures::npy_of("<f8", "(5, 3)", values, fortran);
    const std::string whole = fixtures::zip({{"x.npy", content}});
    const std::size_t begin = whole.find(values);
    for (const Index chunk : {1, 2, 5, 9}) {
      EXPECT_EQ(read_in_chunks(folder.write("good.npz", whole), chunk).sum(), 105);
      for (std::size_t bit = 0; bit < 8 * values.size(); bit += 7) {
        std::string bytes = whole;
        bytes[begin + bit / 8] = static_cast<char>(bytes[begin + bit / 8] ^ (1 << bit % 8));
        const auto path = folder.write("flipped.npz", bytes);
        Index given = 0;
        expect_refused(
            [&] {
              io::RowReader reader(path);
              Block<double> rows(chunk, 3);
              while (const Index count = reader.read<double>(rows)) {
                given += count;
              }
            },
            {"'x'", "flipped.npz", "checksum"});
        EXPECT_LT(given, 5);
      }
    }
  }
}

TEST(RowReader, NothingToReadAndMisuse) {
  const Folder folder;
  folder.write("none.npy", fixtures::npy_f8("(0, 3)", {}));
  folder.write("big.npy", fixtures::npy_f8("(3, 1)", {1, 2, 1e300}));
  EXPECT_EQ(read_in_chunks(folder / "none.npy", 4).rows(), 0);
  io::RowReader reader(folder / "none.npy");
  Block<double> narrow(1, 2);
  EXPECT_THROW(reader.read<double>(narrow), std::invalid_argument);
  // The place of a value that float32 cannot hold is its place in the file.
  io::RowReader wide(folder / "big.npy");
  Block<float> chunk(1, 1);
  EXPECT_EQ(wide.read<float>(chunk), 1);
  EXPECT_EQ(wide.read<float>(chunk), 1);
  expect_refused([&] { wide.read<float>(chunk); }, {"big.npy", "[2]", "float32"});
  const io::Array array = io::open_array(folder / "big.npy");
  EXPECT_THROW(array.read_rows<float>(3, chunk), std::invalid_argument);
  EXPECT_THROW(array.read_rows<float>(-1, chunk), std::invalid_argument);
}

TEST(RowWriter, WritesWhatSaveNpyWrites) {
  const Folder folder;
  const Block<float> block = Block<float>::Random(7, 3);
  io::save_npy<float>(folder / "whole.npy", block);
  io::RowWriter<float> writer(folder / "rows.npy", 7, 3);
  writer.write(block.topRows(4));
  writer.write(block.middleRows(4, 0));
  writer.write(block.bottomRows(3));
  EXPECT_EQ(folder.names().size(), 2U);  // the temporary file
  writer.commit();
  EXPECT_EQ(fixtures::read(folder / "rows.npy"), fixtures::read(folder / "whole.npy"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"rows.npy", "whole.npy"}));
}

TEST(RowWriter, WithoutCommitThereIsNoFile) {
  const Folder folder;
  const Block<double> block = Block<double>::Random(4, 2);
  {
    io::RowWriter<double> writer(folder / "a.npy", 5, 2);
    writer.write(block);
    EXPECT_THROW(writer.commit(), std::invalid_argument);
    EXPECT_THROW(writer.write(block), std::invalid_argument);                      // too many
    EXPECT_THROW(writer.write(Block<double>::Zero(1, 3)), std::invalid_argument);  // too wide
  }
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
