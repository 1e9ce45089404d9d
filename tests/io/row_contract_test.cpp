// SPDX-License-Identifier: Apache-2.0
//
// What every kind of file that rows are streamed from promises: the same rows, in any pieces, shares and sweeps; the
// same bits of a product; and a word for each way it can be wrong, or become so. One suite for all kinds; what only
// Parquet and Arrow files have is in arrow_rows_test.cpp.
#include <gtest/gtest.h>

#include <itspace/row_files.hpp>
#include <itspace/streamed.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "fixtures.hpp"
#include "read_rows.hpp"
#include "row_kinds.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::read_all;
using fixtures::RowKind;
using fixtures::Rows;

Rows rows_of(Index rows, Index cols, const std::string& type = "float32", Index first = 0) {
  Rows out{rows, cols, type, {}};
  for (Index i = 0; i < rows * cols; ++i) {
    const Index number = (first * cols + i) * 7919 % 10007;
    const bool whole = type.find("int") != std::string::npos;
    out.values.push_back(whole ? double(number % 100) : double(float(double(number) / 97 - 50)));
  }
  return out;
}

template <Storage Data>
Block<Data> block_of(const Rows& rows) {
  Block<Data> out(rows.rows, rows.cols);
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = Data(rows.values[std::size_t(i)]);
  return out;
}

class RowContract : public ::testing::TestWithParam<RowKind> {
 protected:
  const RowKind& kind() const { return GetParam(); }
  // The name under which the rows are then read.
  std::string write(const std::string& stem, const Rows& rows) const {
    kind().write(folder / (stem + kind().ending), rows);
    return name(stem);
  }
  std::string name(const std::string& stem) const { return (folder / (stem + kind().ending)).string() + kind().inside; }
  std::filesystem::path path(const std::string& stem) const { return folder / (stem + kind().ending); }

  Folder folder;
};

TEST_P(RowContract, AllTypesInPiecesOfAnySize) {
  for (const std::string type :
       {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}) {
    const Rows rows = rows_of(453, 5, type);
    const io::RowFiles files({write(type, rows)});
    EXPECT_EQ(files.rows(), 453);
    EXPECT_EQ(files.cols(), 5);
    EXPECT_EQ(files.type(), type);
    const auto narrow = files.source<float>();
    const auto wide = files.source<double>();
    for (const Index piece : {1, 7, 140, 500}) {
      EXPECT_EQ(read_all(*narrow, piece), block_of<float>(rows)) << type << " " << piece;
      EXPECT_EQ(read_all(*wide, piece), block_of<double>(rows)) << type << " " << piece;
    }
  }
}

// Of several files, one of them empty, by a pattern.
TEST_P(RowContract, EveryShareOfSeveralFiles) {
  write("part-1", rows_of(30, 3));
  write("part-2", rows_of(0, 3));
  write("part-3", rows_of(41, 3, "float32", 30));
  const io::RowFiles files({name("part-*")});
  ASSERT_EQ(files.rows(), 71);
  const Block<float> all = block_of<float>(rows_of(71, 3));
  EXPECT_EQ(read_all(*files.source<float>(), 17), all);
  for (Index first = 0; first <= 71; first += 5) {
    for (const Index count : {Index(0), Index(1), Index(13), 71 - first}) {
      if (count > 71 - first) continue;
      const auto share = files.source<float>(first, count);
      for (const Index piece : {4, 100}) {
        EXPECT_EQ(read_all(*share, piece), all.middleRows(first, count)) << first << " " << count << " " << piece;
      }
    }
  }
  EXPECT_NE(files.source<float>()->place_of(35).find("part-3" + kind().ending), std::string::npos);
  EXPECT_NE(files.source<float>()->place_of(35).find("row 5"), std::string::npos);
}

TEST_P(RowContract, ARestartInTheMiddleBeginsWithTheFirstRow) {
  const Rows rows = rows_of(60, 4);
  const auto source = io::RowFiles({write("x", rows)}).source<float>();
  Block<float> some(25, 4);
  ASSERT_EQ(source->read(some), 25);
  ASSERT_EQ(source->read(some), 25);
  source->restart();
  ASSERT_EQ(source->read(some), 25);
  EXPECT_EQ(some, block_of<float>(rows).topRows(25));
  EXPECT_EQ(read_all(*source, 9), block_of<float>(rows));
}

// The rows of another source, from the front only: an .npy is then summed in the order of the other kinds.
template <Storage Data>
struct FromTheFront : RowSource<Data> {
  explicit FromTheFront(std::shared_ptr<RowSource<Data>> all) : source(std::move(all)) {}
  Index cols() const override { return source->cols(); }
  std::optional<Index> rows() const override { return source->rows(); }
  void restart() override { source->restart(); }
  Index read(BlockView<Data> out) override { return source->read(out); }
  std::shared_ptr<RowSource<Data>> source;
};

template <Storage Data>
void expect_same_products(const io::RowFiles& found, const io::RowFiles& expected) {
  const Block<Data> y = block_of<Data>(rows_of(found.cols(), 3, "float32", 17));
  const auto product = [&](const io::RowFiles& files) {
    // The least memory, so that there are many chunks.
    const StreamedFeatures<Data> target(std::make_shared<FromTheFront<Data>>(files.source<Data>()),
                                        StreamedFeatures<Data>::least_memory(files.cols()));
    Block<Data> out(files.cols(), 3);
    target.apply(y, out);
    target.apply(y, out);
    EXPECT_EQ(target.sweeps(), 2);
    return std::pair{out, target.trace()};
  };
  EXPECT_EQ(product(found), product(expected));
}

TEST_P(RowContract, ProductsHaveTheBitsOfThoseFromAnNpy) {
  for (const std::string type : {"float32", "float64"}) {
    const Rows rows = rows_of(500, 6, type);
    const auto npy = folder / ("same-" + type + ".npy");
    fixtures::row_kinds().front().write(npy, rows);
    const io::RowFiles found({write("same-" + type + "-kind", rows)}), expected({npy.string()});
    expect_same_products<float>(found, expected);
    expect_same_products<double>(found, expected);
  }
}

TEST_P(RowContract, AValueThatIsNotFiniteIsNamedByFileRowAndColumn) {
  for (const double value : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    Rows rows = rows_of(60, 4);
    rows.values[37 * 4 + 2] = value;
    const auto a = write("a", rows_of(20, 4)), b = write("b", rows);
    const StreamedFeatures<float> target(io::RowFiles({a, b}).source<float>());
    try {
      target.trace();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("b" + kind().ending), std::string::npos) << message;
      EXPECT_NE(message.find("row 37, column 2 is " + std::string(value < 0 ? "-inf" : "nan")), std::string::npos)
          << message;
    }
  }
}

TEST_P(RowContract, FilesThatDoNotBelongTogetherAreBothNamedBeforeAnythingIsRead) {
  const auto a = write("a", rows_of(30, 3)), narrow = write("narrow", rows_of(30, 2)),
             wide = write("wide", rows_of(30, 3, "float64"));
  expect_refused([&] { io::RowFiles({a, narrow}); }, {"a" + kind().ending, "narrow", "3", "2", "columns"});
  expect_refused([&] { io::RowFiles({a, wide}); }, {"a" + kind().ending, "wide", "float32", "float64"});
}

TEST_P(RowContract, WhatIsNoSuchFileIsNamed) {
  write("whole", rows_of(200, 4));
  const std::string content = fixtures::read(path("whole"));
  for (const std::size_t kept : {std::size_t(3), std::size_t(9), content.size() / 2, content.size() - 1}) {
    folder.write("cut" + kind().ending, std::string_view(content).substr(0, kept));
    // Some kinds see only with the values that they are not there.
    expect_refused([&] { read_all(*io::RowFiles({name("cut")}).source<float>(), 50); }, {"cut" + kind().ending, ";"});
  }
  folder.write("foreign" + kind().ending, "this is a poem and no table of numbers");
  expect_refused([&] { io::RowFiles({name("foreign")}); }, {"foreign" + kind().ending, "is no", ";"});
  folder.write("empty" + kind().ending, "");
  expect_refused([&] { io::RowFiles({name("empty")}); }, {"empty" + kind().ending, "0 bytes"});
  expect_refused([&] { io::RowFiles({name("none")}); }, {"none" + kind().ending, "does not exist"});
  expect_refused([&] { io::RowFiles({name("none-*")}); }, {"none-*", "no file matches"});
}

TEST_P(RowContract, AFileThatChangesEndsTheSweep) {
  const Rows rows = rows_of(4000, 8);
  const auto changed = [&](const std::function<void()>& change, std::string_view how) {
    const auto source = io::RowFiles({write("x", rows)}).source<float>();
    Block<float> some(100, 8);
    ASSERT_EQ(source->read(some), 100);
    change();
    expect_refused(
        [&] {
          while (source->read(some) > 0) {
          }
        },
        {"x" + kind().ending, how});
    source->restart();
    expect_refused([&] { source->read(some); }, {"x" + kind().ending, "has changed"});
  };
  changed(
      [&] {
        std::filesystem::last_write_time(path("x"),
                                         std::filesystem::last_write_time(path("x")) + std::chrono::seconds(1));
      },
      "written to");
  if (kind().reads_to_the_last) {
    changed([&] { std::filesystem::resize_file(path("x"), std::filesystem::file_size(path("x")) / 2); }, "");
  }
  const auto source = io::RowFiles({write("x", rows)}).source<float>();
  const auto other = write("other", rows);
  std::filesystem::rename(path("other"), path("x"));
  Block<float> some(100, 8);
  expect_refused([&] { source->read(some); }, {"x" + kind().ending, "replaced"});
}

INSTANTIATE_TEST_SUITE_P(Kinds, RowContract, ::testing::ValuesIn(fixtures::row_kinds()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
