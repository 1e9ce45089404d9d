// SPDX-License-Identifier: Apache-2.0
//
// What only Parquet and Arrow files have: columns of several types, nulls, names, lists, pages and row groups. Where
// the library was built with Arrow.
#include <gtest/gtest.h>

#include <itspace/row_files.hpp>
#include <itspace/streamed.hpp>

#include <random>

#include "arrow_files.hpp"
#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::ArrowColumnOf;
using fixtures::ArrowWriting;
using fixtures::expect_refused;
using fixtures::Folder;

const std::vector<std::string> endings{".parquet", ".arrow"};

std::vector<double> counted(std::size_t count, double first = 0) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + double(i);
  return values;
}

template <Storage Data = double>
Block<Data> read(const std::vector<std::string>& names) {
  const io::RowFiles files(names);
  const auto source = files.source<Data>();
  Block<Data> out(files.rows(), files.cols());
  for (Index row = 0; row < out.rows();) row += source->read(out.bottomRows(out.rows() - row));
  return out;
}

void expect_misuse(const std::function<void()>& action, const std::vector<std::string>& parts) {
  try {
    action();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::invalid_argument& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(ArrowRows, ColumnsOfSeveralTypesAreReadAsTheFloatThatHoldsThem) {
  struct Case {
    std::vector<std::string> types;
    std::string read_as;
  };
  const Case cases[] = {{{"halffloat", "halffloat"}, "float16"}, {{"float", "halffloat"}, "float32"},
                        {{"float", "int16"}, "float32"},         {{"float", "int32"}, "float64"},
                        {{"float", "double"}, "float64"},        {{"int8", "int16"}, "float64"},
                        {{"uint8", "halffloat"}, "float32"}};
  const Folder folder;
  for (const std::string& ending : endings) {
    for (const Case& given : cases) {
      const auto path = folder / ("x" + ending);
      fixtures::write_arrow(path, {{"a", given.types[0], counted(9), {}}, {"b", given.types[1], counted(9, 20), {}}},
                            {.part_rows = 4});
      EXPECT_EQ(io::RowFiles({path.string()}).type(), given.read_as);
      const Block<double> rows = read({path.string()});
      for (Index i = 0; i < 9; ++i) {
        EXPECT_EQ(rows(i, 0), double(i));
        EXPECT_EQ(rows(i, 1), double(20 + i));
      }
    }
  }
}

TEST(ArrowRows, ANullIsNamedByFileRowAndColumn) {
  const Folder folder;
  for (const std::string& ending : endings) {
    for (const std::string type : {"float", "double", "int32"}) {
      const auto path = folder / ("x" + ending);
      fixtures::write_arrow(path, {{"a", type, counted(40), {}}, {"b", type, counted(40), {23, 30}}},
                            {.part_rows = 16});
      for (const Index piece : {1, 7, 40}) {
        const auto source = io::RowFiles({path.string()}).source<double>();
        Block<double> rows(piece, 2);
        expect_misuse(
            [&] {
              while (source->read(rows) > 0) {
              }
            },
            {"x" + ending, "row 23, column 1 is null"});
      }
    }
  }
}

TEST(ArrowRows, NullsOfListsAreNamedToo) {
  const Folder folder;
  for (const std::string& ending : endings) {
    const auto element = folder / ("element" + ending), row = folder / ("row" + ending);
    fixtures::write_arrow_lists(element, {"v", "float", counted(120), {3 * 29 + 2}}, 3, {}, {.part_rows = 16});
    expect_misuse([&] { read<float>({element.string()}); }, {"element" + ending, "row 29, column 2 is null"});
    if (ending == ".arrow") {
      fixtures::write_arrow_lists(row, {"v", "float", counted(120), {}}, 3, {29}, {.part_rows = 16});
      expect_misuse([&] { read<float>({row.string()}); }, {"row" + ending, "row 29 is null"});
    }
  }
}

TEST(ArrowRows, ColumnsThatAreNoNumbersAreNamed) {
  const Folder folder;
  for (const std::string& ending : endings) {
    const auto path = folder / ("x" + ending);
    for (const std::string type : {"string", "bool"}) {
      fixtures::write_arrow(path, {{"a", "float", counted(5), {}}, {"label", type, counted(5), {}}});
      expect_refused([&] { io::RowFiles({path.string()}); },
                     {"column 'label'", "x" + ending, type, "columns of numbers", "lists of a fixed length"});
    }
    fixtures::write_arrow(path, {});
    expect_refused([&] { io::RowFiles({path.string()}); }, {"x" + ending, "no columns"});
    fixtures::write_arrow_lists(path, {"v", "bool", counted(6), {}}, 3);
    expect_refused([&] { io::RowFiles({path.string()}); }, {"column 'v'", "x" + ending, "fixed_size_list"});
  }
}

// The same columns in another order would be other features under the same numbers.
TEST(ArrowRows, FilesWithOtherNamesOfColumnsDoNotBelongTogether) {
  const Folder folder;
  const auto a = folder / "a.parquet", b = folder / "b.arrow";
  fixtures::write_arrow(a, {{"x", "float", counted(5), {}}, {"y", "float", counted(5), {}}});
  fixtures::write_arrow(b, {{"y", "float", counted(5), {}}, {"x", "float", counted(5), {}}});
  expect_refused(
      [&] {
        io::RowFiles({a.string(), b.string()});
      },
      {"column 0 of", "b.arrow' is 'y'", "a.parquet' it is 'x'", "same columns"});
  fixtures::write_arrow(b, {{"x", "float", counted(5, 5), {}}, {"y", "float", counted(5, 5), {}}});
  EXPECT_EQ(read({a.string(), b.string()})(9, 1), 9);
}

TEST(ArrowRows, KindsAreKnownByTheirNames) {
  const Folder folder;
  const std::vector<ArrowColumnOf> columns{{"a", "float", counted(5), {}}};
  fixtures::write_arrow(folder / "x.parquet", columns);
  fixtures::write_arrow(folder / "x.arrow", columns);
  const std::string parquet = fixtures::read(folder / "x.parquet"), arrow = fixtures::read(folder / "x.arrow");
  for (const std::string name : {"y.pq", "y.PARQUET"})
    EXPECT_EQ(read({folder.write(name, parquet).string()}).rows(), 5);
  for (const std::string name : {"y.feather", "y.ipc", "y.Arrow"}) {
    EXPECT_EQ(read({folder.write(name, arrow).string()}).rows(), 5);
  }
  const auto refused = [&](const std::string& name, const std::string& content,
                           std::initializer_list<std::string_view> parts) {
    const auto path = folder.write(name, content);
    expect_refused([&] { io::RowFiles({path.string()}); }, parts);
  };
  refused("z.parquet", arrow, {"z.parquet", "name says Parquet", "Arrow IPC", ".arrow"});
  refused("z.arrow", parquet, {"z.arrow", "name says Arrow IPC", "Parquet", ".parquet"});
  refused("z.feather", "FEA1" + std::string(60, '\0') + "FEA1", {"z.feather", "version 1", "version 2"});
  refused("z.parquet", "PARE" + std::string(60, '\0') + "PARE", {"z.parquet", "encrypted"});
  refused("z.npy", parquet, {"z.npy", "no .npy", "PAR1", ".parquet"});
  EXPECT_TRUE(io::names_row_files("a.parquet"));
  EXPECT_TRUE(io::names_row_files("a.Feather"));
  EXPECT_FALSE(io::names_row_files("a.npy"));
}

TEST(ArrowRows, AValueBeyondFloat32IsNamedByRowAndColumn) {
  const Folder folder;
  for (const std::string& ending : endings) {
    std::vector<double> values = counted(40);
    values[33] = 1e300;
    const auto path = folder / ("x" + ending);
    fixtures::write_arrow(path, {{"a", "double", counted(40), {}}, {"b", "double", values, {}}}, {.part_rows = 16});
    expect_refused([&] { read<float>({path.string()}); }, {"x" + ending, "[33, 1]", "float32"});
  }
}

// What is said to be held is enough for any way of writing, and more is not taken: it is the limit of the pool.
TEST(ArrowRows, WhatIsHeldSufficesForAllPagesAndRowGroups) {
  const Folder folder;
  for (const std::string& ending : endings) {
    for (const std::int64_t part_rows : {1, 700, 40000}) {
      for (const std::int64_t page_bytes : {100, 1 << 20}) {
        for (const bool packed : {false, true}) {
          for (const std::string type : {"float", "double", "int8", "uint16"}) {
            const std::size_t rows = part_rows == 1 ? 50 : 40000;
            const ArrowWriting writing{part_rows, packed, page_bytes};
            const auto columns = folder / ("columns" + ending), lists = folder / ("lists" + ending);
            std::vector<double> values(rows);
            for (std::size_t i = 0; i < rows; ++i) values[i] = double(i * 7919 % 101);
            fixtures::write_arrow(columns, {{"a", type, values, {}}, {"b", type, values, {}}, {"c", type, values, {}}},
                                  writing);
            const Block<double> found = read({columns.string()});
            EXPECT_EQ(found(Index(rows) - 1, 2), values.back());
            fixtures::write_arrow_lists(lists, {"v", type, values, {}}, 10, {}, writing);
            EXPECT_EQ(read({lists.string()})(Index(rows) / 10 - 1, 9), values.back());
          }
        }
      }
    }
  }
}

// The larger the row groups, the more is held, and no more than is said; of lists only some pages.
TEST(ArrowRows, LargeRowGroupsAreAStatedCost) {
  const Folder folder;
  constexpr std::size_t rows = 400000;
  const auto held = [&](const std::string& ending, std::int64_t part_rows, bool lists, std::size_t count) {
    const auto path = folder / ("x" + ending);
    if (lists) {
      fixtures::write_arrow_lists(path, {"v", "double", counted(count * 4), {}}, 4, {}, {.part_rows = part_rows});
    } else {
      const ArrowColumnOf column{"", "double", counted(count), {}};
      std::vector<ArrowColumnOf> columns(4, column);
      for (std::size_t j = 0; j < 4; ++j) columns[j].name = std::to_string(j);
      fixtures::write_arrow(path, columns, {.part_rows = part_rows});
    }
    return io::RowFiles({path.string()});
  };
  constexpr std::uint64_t values = rows * 4 * sizeof(double);
  for (const std::string& ending : endings) {
    const auto small = held(ending, 1000, false, rows), large = held(ending, rows, false, rows);
    EXPECT_LT(small.reader_bytes(), 30U << 20) << ending;  // most of it is Arrow itself
    EXPECT_GT(large.reader_bytes(), values) << ending;
    EXPECT_EQ(read({(folder / ("x" + ending)).string()})(rows - 1, 3), rows - 1) << ending;  // and it suffices
    EXPECT_LT(large.reader_bytes(), (30U << 20) + 4 * values) << ending;
    EXPECT_NE(large.reader_holds().find("of up to 400000 rows"), std::string::npos) << large.reader_holds();
    EXPECT_NE(large.reader_remedy().find("smaller"), std::string::npos) << large.reader_remedy();
  }
  EXPECT_EQ(held(".parquet", rows, true, rows).reader_remedy(), "");
  const auto tiny = held(".parquet", 5, false, 20000);
  EXPECT_NE(tiny.reader_holds().find("4000 row groups of 4 columns"), std::string::npos) << tiny.reader_holds();
  EXPECT_NE(tiny.reader_remedy().find("larger"), std::string::npos) << tiny.reader_remedy();
}

TEST(ArrowRows, PagesLargerThanPlannedAreRefused) {
  const Folder folder;
  const auto path = folder / "x.parquet";
  const std::vector<double> values = counted(8U << 20);
  fixtures::write_arrow_lists(path, {"v", "double", values, {}}, 1 << 10, {}, {.page_bytes = 96 << 20});
  expect_refused([&] { read({path.string()}); }, {"x.parquet", "pages", "planned", "data_page_size"});
  fixtures::write_arrow_lists(path, {"v", "double", values, {}}, 1 << 10);
  EXPECT_EQ(read({path.string()})(3, 5), 3077);
}

// Whatever byte of a file is wrong: other values, or a word. Not a crash, and no other kind of exception.
TEST(ArrowRows, DamagedFilesAreRefusedOrRead) {
  const Folder folder;
  std::mt19937 random(7);
  for (const std::string& ending : endings) {
    for (const bool lists : {false, true}) {
      for (const bool packed : {false, true}) {
        const auto path = folder / ("x" + ending);
        const ArrowWriting writing{.part_rows = 8, .packed = packed};
        if (lists) {
          fixtures::write_arrow_lists(path, {"v", "float", counted(60), {}}, 3, {}, writing);
        } else {
          fixtures::write_arrow(path, {{"a", "float", counted(20), {}}, {"b", "float", counted(20), {4}}}, writing);
        }
        const std::string whole = fixtures::read(path);
        int refused = 0;
        for (int times = 0; times < 800; ++times) {
          std::string content = whole;
          // Half of them in the footer.
          const std::size_t from = times % 2 == 0 ? 0 : content.size() / 2;
          content[from + random() % (content.size() - from)] ^= static_cast<char>(1U << random() % 8);
          folder.write("x" + ending, content);
          try {
            const auto source = io::RowFiles({path.string()}).source<float>();
            if (source->cols() > 1000) continue;  // what it claims is known before anything is read
            Block<float> rows(7, source->cols());
            while (source->read(rows) > 0) {
            }
          } catch (const std::runtime_error& error) {
            ++refused;
            EXPECT_NE(std::string(error.what()).find("x" + ending), std::string::npos) << error.what();
          } catch (const std::invalid_argument& error) {  // a null
            EXPECT_NE(std::string(error.what()).find("x" + ending), std::string::npos) << error.what();
          }
        }
        EXPECT_GT(refused, 0);
      }
    }
  }
}

}  // namespace
