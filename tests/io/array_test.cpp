// SPDX-License-Identifier: Apache-2.0
//
// Good files: every type, order, byte order, version and container gives the numbers that were put in.
#include <gtest/gtest.h>

#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::Folder;
using fixtures::Member;
using fixtures::npy;
using fixtures::npy_f8;
using fixtures::npy_of;
using fixtures::zip;

// 2 x 3, with values every type can hold.
constexpr int numbers[2][3] = {{0, 1, 1}, {1, 0, 1}};
// Values that show the sign and both bytes, where the type has them.
constexpr int signed_numbers[2][3] = {{-3, 100, 7}, {0, -128, 127}};
constexpr int wide_numbers[2][3] = {{-300, 1000, 7}, {0, -20000, 513}};

std::string half_bytes(int value, bool big_endian) {
  // Exact for small integers: built from the value's own binary logarithm.
  if (value == 0) {
    return std::string(2, '\0');
  }
  const unsigned magnitude = static_cast<unsigned>(std::abs(value));
  int exponent = 0;
  while ((magnitude >> (exponent + 1)) != 0) {
    ++exponent;
  }
  const unsigned fraction = (magnitude << 10 >> exponent) & 0x3ff;
  const unsigned bits = (value < 0 ? 0x8000U : 0U) | static_cast<unsigned>(exponent + 15) << 10 | fraction;
  return fixtures::raw(static_cast<std::uint16_t>(bits), big_endian);
}

std::string encode(std::string_view type, int value, bool big) {
  using fixtures::raw;
  if (type == "f2") return half_bytes(value, big);
  if (type == "f4") return raw(static_cast<float>(value), big);
  if (type == "f8") return raw(static_cast<double>(value), big);
  if (type == "i1") return raw(static_cast<std::int8_t>(value), big);
  if (type == "i2") return raw(static_cast<std::int16_t>(value), big);
  if (type == "i4") return raw(static_cast<std::int32_t>(value), big);
  if (type == "i8") return raw(static_cast<std::int64_t>(value), big);
  if (type == "u1" || type == "b1") return raw(static_cast<std::uint8_t>(value), big);
  if (type == "u2") return raw(static_cast<std::uint16_t>(value), big);
  if (type == "u4") return raw(static_cast<std::uint32_t>(value), big);
  return raw(static_cast<std::uint64_t>(value), big);
}

template <class Scalar>
void expect_numbers(const io::Array& array, const int (&expected)[2][3]) {
  const auto held = array.as<Scalar>();
  ASSERT_EQ(held.rows(), 2);
  ASSERT_EQ(held.cols(), 3);
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_EQ(held.view()(i, j), static_cast<Scalar>(expected[i][j])) << i << "," << j;
    }
  }
}

struct TypeCase {
  const char* code;
  const char* name;
  double epsilon;
};
constexpr TypeCase types[] = {
    {"f2", "float16", 0x1p-10}, {"f4", "float32", 0x1p-23}, {"f8", "float64", 0x1p-52}, {"i1", "int8", 0},
    {"i2", "int16", 0},         {"i4", "int32", 0},         {"i8", "int64", 0},         {"u1", "uint8", 0},
    {"u2", "uint16", 0},        {"u4", "uint32", 0},        {"u8", "uint64", 0},        {"b1", "bool", 0},
};

class EveryType : public testing::TestWithParam<TypeCase> {};

TEST_P(EveryType, IsReadInEveryOrderVersionAndContainer) {
  const TypeCase type = GetParam();
  const std::string code = type.code;
  const bool one_byte = code[1] == '1';
  const bool is_signed = code[0] == 'f' || code[0] == 'i';
  const auto& expected = !is_signed ? numbers : (one_byte ? signed_numbers : wide_numbers);
  const Folder folder;
  for (const bool fortran : {false, true}) {
    for (const bool big : {false, true}) {
      std::string values;
      for (int k = 0; k < 6; ++k) {
        values += encode(code, fortran ? expected[k % 2][k / 2] : expected[k / 3][k % 3], big);
      }
      const std::string descr = (one_byte ? "|" : (big ? ">" : "<")) + code;
      const std::string dictionary =
          "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (2, 3), }";
      for (const int version : {1, 2, 3}) {
        const std::string content = npy(dictionary, values, version);
        for (const char* kind : {"npy", "stored", "deflated"}) {
          SCOPED_TRACE(dictionary + " version " + std::to_string(version) + " " + kind);
          const bool plain = kind == std::string_view("npy");
          const bool deflated = kind == std::string_view("deflated");
          const auto path = folder.write("a", plain ? content : zip({{"sigma.npy", content, deflated}}));
          const auto array = io::open_array(path);
          EXPECT_EQ(array.info().path, path);
          EXPECT_EQ(array.info().key, plain ? "" : "sigma");
          EXPECT_EQ(array.info().type, type.name);
          EXPECT_EQ(array.info().shape, (std::vector<Index>{2, 3}));
          EXPECT_EQ(array.info().fortran_order, fortran);
          EXPECT_EQ(array.info().big_endian, big && !one_byte);
          EXPECT_EQ(array.info().bytes, values.size());
          EXPECT_EQ(array.epsilon(), type.epsilon);
          expect_numbers<float>(array, expected);
          expect_numbers<double>(array, expected);
          if (kind != std::string_view("stored")) {  // a stored member may lie at any address
            EXPECT_EQ(array.is_borrowed<float>(), code == "f4" && !fortran && !big);
            EXPECT_EQ(array.is_borrowed<double>(), code == "f8" && !fortran && !big);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Io, EveryType, testing::ValuesIn(types), [](const auto& test) { return test.param.name; });

TEST(Array, ScalarsVectorsAndEmptyOnesHaveTwoDimensions) {
  const Folder folder;
  struct Case {
    const char* shape;
    Index rows, cols;
  };
  for (const auto& [shape, rows, cols] :
       {Case{"()", 1, 1}, Case{"(2,)", 2, 1}, Case{"(1, 2)", 1, 2}, Case{"(0,)", 0, 1}, Case{"(0, 7)", 0, 7},
        Case{"(7, 0)", 7, 0}, Case{"(0, 9000000000000000000)", 0, 9000000000000000000},
        Case{"(9000000000000000000, 0)", 9000000000000000000, 0}}) {
    for (const char* type : {"<f8", ">f8"}) {
      const auto array = io::open_array(folder.write("a.npy", npy_of(type, shape, std::string(16, '\0'))));
      EXPECT_EQ(array.rows(), rows) << shape;
      EXPECT_EQ(array.cols(), cols) << shape;
      for (const auto& held : {array.as<double>()}) {
        EXPECT_EQ(held.rows(), rows) << shape;
        EXPECT_EQ(held.cols(), cols) << shape;
      }
      EXPECT_EQ(array.as<float>().rows(), rows) << shape;
    }
  }
  EXPECT_EQ(io::Array().as<double>().rows(), 0);
  EXPECT_EQ(io::Array().as<float>().cols(), 0);
}

TEST(Array, HeadersAreReadAsPythonReadsThem) {
  const Folder folder;
  const std::string values = fixtures::raw(1.5, false) + fixtures::raw(2.5, false);
  for (const char* text : {
           "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }",
           "{'descr':'<f8','fortran_order':False,'shape':(2,1)}",
           "{\"shape\": (2L, 1L), \"descr\": \"<f8\", \"fortran_order\": False}",
           "  { 'fortran_order' : True ,\n\t'shape' : ( 2 , 1 , ) , 'descr' : '=f8' , }  \n",
           "{'descr': 'f8', 'fortran_order': False, 'shape': (2L,)}",
       }) {
    for (const bool pad : {false, true}) {
      SCOPED_TRACE(text);
      const auto array = io::open_array(folder.write("a.npy", npy(text, values, 1, pad)));
      const auto held = array.as<double>();
      ASSERT_EQ(held.rows(), 2);
      EXPECT_EQ(held.view()(0, 0), 1.5);
      EXPECT_EQ(held.view()(1, 0), 2.5);
      EXPECT_EQ(array.as<float>().view()(1, 0), 2.5F);
    }
  }
}

TEST(Array, BytesAfterTheValuesAreIgnored) {
  const Folder folder;
  const auto array = io::open_array(folder.write("a.npy", npy_f8("(1, 2)", {1, 2}) + "more"));
  EXPECT_EQ(array.as<double>().view()(0, 1), 2);
}

TEST(Array, TheKindIsToldFromTheContent) {
  const Folder folder;
  EXPECT_EQ(io::open_array(folder.write("a.npz", npy_f8("()", {3}))).as<double>().view()(0, 0), 3);
  EXPECT_EQ(io::open_array(folder.write("a.npy", zip({{"x.npy", npy_f8("()", {4})}}))).as<double>().view()(0, 0), 4);
}

TEST(Npz, TheKeyIsNamedOrSigmaOrTheOnlyOne) {
  const Folder folder;
  const auto fid = folder.write(
      "fid.npz", zip({{"mu.npy", npy_f8("(2,)", {1, 2}), true}, {"sigma.npy", npy_f8("(1, 1)", {5}), true}}));
  EXPECT_EQ(io::array_keys(fid), (std::vector<std::string>{"mu", "sigma"}));
  EXPECT_EQ(io::open_array(fid).info().key, "sigma");
  EXPECT_EQ(io::open_array(fid, "mu").rows(), 2);
  const auto one = folder.write("one.npz", zip({{"readme.txt", "hello"}, {"x.npy", npy_f8("()", {4})}}));
  EXPECT_EQ(io::array_keys(one), (std::vector<std::string>{"x"}));
  EXPECT_EQ(io::open_array(one).info().key, "x");
  EXPECT_TRUE(io::array_keys(folder.write("a.npy", npy_f8("()", {3}))).empty());
  EXPECT_TRUE(io::array_keys(folder.write("none.npz", zip({}))).empty());
}

TEST(Npz, EveryZipVariantIsRead) {
  const Folder folder;
  const std::string content = npy_f8("(2, 2)", {1, 2, 3, 4});
  for (const bool deflated : {false, true}) {
    for (const bool zip64 : {false, true}) {
      for (const bool descriptor : {false, true}) {
        for (const bool zip64_end : {false, true}) {
          for (const char* comment : {"", "a comment PK\x05\x06 with a signature and then some text after it"}) {
            const std::vector<Member> members = {{"mu.npy", content, deflated, zip64, descriptor},
                                                 {"sigma.npy", content, deflated, zip64, descriptor}};
            const auto array = io::open_array(folder.write("a.npz", zip(members, zip64_end, comment)));
            const auto held = array.as<double>();
            ASSERT_EQ(held.rows(), 2);
            EXPECT_EQ(held.view()(1, 0), 3);
            EXPECT_EQ(array.as<float>().view()(1, 1), 4);
          }
        }
      }
    }
  }
}

TEST(Npz, StoredMembersAreBorrowedWhereTheAlignmentSuits) {
  const Folder folder;
  int borrowed = 0;
  for (const char* name :
       {"a.npy", "ab.npy", "abc.npy", "abcd.npy", "abcde.npy", "abcdef.npy", "abcdefg.npy", "abcdefgh.npy"}) {
    const auto array = io::open_array(folder.write("a.npz", zip({{name, npy_f8("(2,)", {1, 2})}})));
    borrowed += array.is_borrowed<double>() ? 1 : 0;
    EXPECT_EQ(array.as<double>().view()(1, 0), 2);
  }
  EXPECT_EQ(borrowed, 1);  // one name length of eight
}

TEST(Array, CopiesKeepTheFileMappedAfterItIsReplaced) {
  const Folder folder;
  const auto path = folder.write("a.npy", npy_f8("(2,)", {1, 2}));
  io::Array copy;
  {
    const auto array = io::open_array(path);
    copy = array;
  }
  io::save_text(path, "something else");
  ASSERT_TRUE(copy.is_borrowed<double>());
  EXPECT_EQ(copy.as<double>().view()(1, 0), 2);
}

}  // namespace
