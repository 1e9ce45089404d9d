// SPDX-License-Identifier: Apache-2.0
//
// Rows of many files are the rows of one array, whatever the pieces they are read in; and a word for each way that
// files can be wrong, or become so while they are read.
#include <gtest/gtest.h>

#include <itspace/row_files.hpp>
#include <itspace/streamed.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "fixtures.hpp"
#include "read_rows.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::read_all;

std::string floats(Index rows, Index cols, float first) {
  std::string values;
  for (Index i = 0; i < rows * cols; ++i) {
    values += fixtures::raw(first + float(i), false);
  }
  return fixtures::npy_of("<f4", "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")", values);
}

// Each share of the rows, in each piece, is that part of the array; and the files of others are not opened.
TEST(RowFiles, AShareIsReadAlone) {
  const Folder folder;
  folder.write("part-1.npy", floats(3, 2, 0));
  folder.write("part-2.npy", floats(0, 2, 6));
  folder.write("part-3.npy", floats(4, 2, 6));
  folder.write("part-4.npy", floats(2, 2, 14));
  const io::RowFiles files({(folder / "part-*.npy").string()});
  const Block<float> all = read_all(*files.source<float>(), 3);
  for (Index first = 0; first <= 9; ++first) {
    for (Index count = 0; count <= 9 - first; ++count) {
      const auto share = files.source<float>(first, count);
      EXPECT_EQ(share->rows(), count);
      for (const Index piece : {1, 2, 9}) {
        EXPECT_EQ(read_all(*share, piece), all.middleRows(first, count)) << first << " " << count << " " << piece;
      }
    }
  }
  EXPECT_EQ(files.source<float>(4, 2)->place_of(1), files.source<float>()->place_of(5));
  EXPECT_THROW(files.source<float>(4, 6), std::invalid_argument);
  EXPECT_THROW(files.source<float>(-1, 2), std::invalid_argument);
  const auto of_third = files.source<float>(3, 4), of_two = files.source<float>(6, 2);
  std::filesystem::remove(folder / "part-1.npy");
  std::filesystem::remove(folder / "part-4.npy");
  EXPECT_EQ(read_all(*of_third, 3), all.middleRows(3, 4));
  EXPECT_THROW(read_all(*of_two, 3), std::runtime_error);
  // A file that has changed is found out by those who read the beginning of it too.
  const auto beginning = files.source<float>(3, 1);
  std::filesystem::last_write_time(folder / "part-3.npy", std::filesystem::file_time_type(std::chrono::hours(1)));
  EXPECT_THROW(read_all(*beginning, 3), std::runtime_error);
}

TEST(RowFiles, ListsAndPatternsAreOneArray) {
  const Folder folder;
  folder.write("part-1.npy", floats(3, 2, 0));
  folder.write("part-2.npy", floats(1, 2, 6));
  folder.write("part-3.npy", floats(0, 2, 8));
  folder.write("part-4.npy", floats(5, 2, 8));
  Block<float> expected(9, 2);
  for (Index i = 0; i < 18; ++i) {
    expected(i / 2, i % 2) = float(i);
  }
  const std::vector<std::string> pattern{(folder / "part-*.npy").string()};
  const std::vector<std::string> list{(folder / "part-1.npy").string(), (folder / "part-[2-4].npy").string()};
  for (const auto& names : {pattern, list}) {
    const io::RowFiles files(names);
    EXPECT_EQ(files.rows(), 9);
    EXPECT_EQ(files.cols(), 2);
    EXPECT_EQ(files.type(), "float32");
    EXPECT_EQ(files.bytes(), 72U);
    EXPECT_EQ(files.paths().size(), 4U);
    const auto source = files.source<float>();
    const auto wide = files.source<double>();
    for (const Index piece : {1, 2, 4, 20}) {
      EXPECT_EQ(read_all(*source, piece), expected) << piece;
      EXPECT_EQ(read_all(*wide, piece), expected.cast<double>()) << piece;
    }
    EXPECT_NE(source->place_of(4).find("part-4.npy': row 0"), std::string::npos) << source->place_of(4);
  }
}

// By many threads at once, across the ends of files, of this type and of another.
TEST(RowFiles, RowsAreReadAnywhereByManyThreads) {
  const Folder folder;
  folder.write("part-1.npy", floats(30, 2, 0));
  folder.write("part-2.npy", floats(1, 2, 60));
  folder.write("part-3.npy", floats(0, 2, 62));
  folder.write("part-4.npy", floats(50, 2, 62));
  const io::RowFiles files({(folder / "part-*.npy").string()});
  const Block<float> all = read_all(*files.source<float>(), 7);
  const auto check = [&]<Storage Data>(RowSource<Data>& source, Index first) {
    ASSERT_TRUE(source.reads_anywhere());
    constexpr Index piece = 7, count = 4;
    const Index rows = *source.rows(), pieces = (rows + piece - 1) / piece;
    for (int sweep = 0; sweep < 3; ++sweep) {
      source.restart();
      Block<Data> found(rows, 2);
      std::vector<std::thread> threads;
      for (Index t = 0; t < count; ++t) {
        threads.emplace_back([&, t] {
          for (Index p = t; p < pieces; p += count) {
            const Index from = p * piece, here = std::min(piece, rows - from);
            source.expect(from, here);
            source.read_at(from, found.middleRows(from, here));
          }
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      EXPECT_EQ(found, all.middleRows(first, rows).cast<Data>());
    }
  };
  check(*files.source<float>(), 0);
  check(*files.source<double>(), 0);
  check(*files.source<float>(25, 40), 25);
}

// The same words as from a reader's thread: cut short in a sweep, and written to, which is seen with its last row.
TEST(RowFiles, AFileThatChangesEndsTheSweepOfManyThreads) {
  const Folder folder;
  const auto path = folder.write("x.npy", floats(40000, 4, 0));
  const auto of_changed = [&](const std::function<void()>& change) {
    struct Changed : RowSource<float> {
      std::shared_ptr<RowSource<float>> rows_of_file;
      std::function<void()> change;
      std::once_flag once;
      Index cols() const override { return rows_of_file->cols(); }
      std::optional<Index> rows() const override { return rows_of_file->rows(); }
      void restart() override { rows_of_file->restart(); }
      Index read(BlockView<float> out) override { return rows_of_file->read(out); }
      bool reads_anywhere() const override { return true; }
      void read_at(Index first, BlockView<float> out) override {
        rows_of_file->read_at(first, out);
        if (first > 0) {
          std::call_once(once, change);
        }
      }
    };
    const auto source = std::make_shared<Changed>();
    source->rows_of_file = io::RowFiles({path.string()}).source<float>();
    source->change = change;
    return StreamedFeatures<float>(source);
  };
  const auto written = of_changed([&] {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  });
  expect_refused([&] { written.trace(); }, {"x.npy", "has changed", "written to"});
  const auto shorter = of_changed([&] { std::filesystem::resize_file(path, 128 + 35000 * 16); });
  expect_refused([&] { shorter.trace(); }, {"x.npy", "row 35000 of 40000", "shorter"});
}

TEST(RowFiles, OtherTypesAreConvertedAPieceAtATime) {
  const Folder folder;
  std::string big, bytes;
  for (int i = 0; i < 15; ++i) {
    big += fixtures::raw(double(i), true);
    bytes += static_cast<char>(i);
  }
  for (const auto& [type, values] : {std::pair{">f8", big}, std::pair{"|u1", bytes}}) {
    const auto path = folder.write("x.npy", fixtures::npy_of(type, "(5, 3)", values));
    const auto rows = read_all(*io::RowFiles({path.string()}).source<float>(), 2);
    for (Index i = 0; i < 15; ++i) {
      EXPECT_EQ(rows(i / 3, i % 3), float(i)) << type;
    }
  }
}

TEST(RowFiles, FilesThatDoNotBelongTogetherAreBothNamed) {
  const Folder folder;
  const auto a = folder.write("a.npy", floats(3, 2, 0)).string();
  const auto narrow = folder.write("narrow.npy", floats(3, 1, 0)).string();
  const auto wide = folder.write("wide.npy", fixtures::npy_f8("(1, 2)", {1, 2})).string();
  expect_refused([&] { io::RowFiles({a, narrow}); }, {"a.npy", "narrow.npy", "2", "1", "columns"});
  expect_refused([&] { io::RowFiles({a, wide}); }, {"a.npy", "wide.npy", "float32", "float64"});
}

TEST(RowFiles, WhatIsNoFileOfRowsIsRefused) {
  const Folder folder;
  const auto refused = [&](const std::string& name, std::initializer_list<std::string_view> parts) {
    expect_refused([&] { io::RowFiles({(folder / name).string()}); }, parts);
  };
  folder.write("fortran.npy", fixtures::npy_of("<f8", "(2, 2)", std::string(32, '\0'), true));
  folder.write("short.npy", fixtures::npy_of("<f8", "(9, 2)", std::string(32, '\0')));
  folder.write("cube.npy", fixtures::npy_of("<f8", "(1, 2, 2)", std::string(32, '\0')));
  folder.write("text.npy", "not an array at all");
  folder.write("a.npz", fixtures::zip({{"x.npy", floats(3, 2, 0)}}));
  refused("fortran.npy", {"fortran.npy", "Fortran order", "C order"});
  refused("short.npy", {"short.npy", "144 bytes", "32", "truncated"});
  refused("cube.npy", {"cube.npy", "(1, 2, 2)"});
  refused("text.npy", {"text.npy", "no .npy", "not an array"});
  refused("a.npz", {"a.npz", "no .npy"});
  refused("none.npy", {"none.npy", "does not exist"});
  refused("none-*.npy", {"none-*.npy", "no file matches"});
  refused("none.h5:/x", {"none.h5"});
}

TEST(RowFiles, AFileThatBecomesShorterEndsTheSweep) {
  const Folder folder;
  const auto path = folder.write("x.npy", floats(1000, 4, 0));
  const auto source = io::RowFiles({path.string()}).source<float>();
  Block<float> rows(100, 4);
  ASSERT_EQ(source->read(rows), 100);
  std::filesystem::resize_file(path, 128 + 150 * 16);
  expect_refused([&] { source->read(rows); }, {"x.npy", "row 150 of 1000", "shorter"});
  source->restart();
  expect_refused([&] { source->read(rows); }, {"x.npy", "has changed", "16128 bytes", "2528"});
}

// Written to in place, and replaced by another of the same size: seen at the end of the sweep, or when the next begins.
TEST(RowFiles, AFileThatChangesEndsTheSweep) {
  const Folder folder;
  const std::string content = floats(100, 4, 0);
  const auto path = folder.write("x.npy", content);
  const auto source = io::RowFiles({path.string()}).source<float>();
  Block<float> rows(50, 4);
  ASSERT_EQ(source->read(rows), 50);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(std::streamoff(content.size() - 1));
    file.put('\x41');
  }
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  expect_refused([&] { source->read(rows); }, {"x.npy", "has changed", "written to"});
  const auto other = io::RowFiles({path.string()}).source<float>();
  std::filesystem::rename(folder.write("y.npy", content), path);
  expect_refused([&] { other->read(rows); }, {"x.npy", "has changed", "replaced"});
}

TEST(RowFiles, AFileThatIsGoneWasThereWhenTheRunBegan) {
  const Folder folder;
  const auto path = folder.write("x.npy", floats(100, 4, 0));
  const auto source = io::RowFiles({path.string()}).source<float>();
  Block<float> rows(100, 4);
  ASSERT_EQ(source->read(rows), 100);
  source->restart();
  std::filesystem::remove(path);
  expect_refused([&] { source->read(rows); }, {"x.npy", "was there when the run began and is gone", "put it back"});
}

TEST(RowFiles, AValueThatIsNotFiniteIsNamedByFileRowAndColumn) {
  const Folder folder;
  const auto a = folder.write("a.npy", floats(20, 3, 0)).string();
  std::string content = floats(20, 3, 0);
  const std::string nan = fixtures::raw(std::numeric_limits<float>::quiet_NaN(), false);
  content.replace(content.size() - 60 * 4 + (7 * 3 + 2) * 4, 4, nan);
  const auto b = folder.write("b.npy", content).string();
  const StreamedFeatures<float> target(io::RowFiles({a, b}).source<float>());
  try {
    target.trace();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("b.npy': row 7, column 2 is nan"), std::string::npos) << message;
  }
}

}  // namespace
