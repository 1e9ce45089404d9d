// SPDX-License-Identifier: Apache-2.0
#include "idx_file.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace itspace::experiments {
namespace {

using std::string_literals::operator""s;

class IdxFileTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return path_;
  }
  std::filesystem::path write_gzipped(const std::string& bytes) {
    const gzFile file = gzopen(path_.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path_;
  }
  std::string error_of(const std::filesystem::path& path) {
    try {
      read_idx(path);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }
  ~IdxFileTest() override { std::filesystem::remove(path_); }

  const std::filesystem::path path_ =
      testing::TempDir() + "itspace_" + testing::UnitTest::GetInstance()->current_test_info()->name() + ".idx";
  const std::string good_ = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef";
};

TEST_F(IdxFileTest, ReadsPlainAndGzipped) {
  for (const auto& path : {write(good_), write_gzipped(good_)}) {
    const IdxArray array = read_idx(path);
    EXPECT_EQ(array.shape, (std::vector<std::size_t>{2, 3}));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdef");
  }
}

TEST_F(IdxFileTest, NamesTheFileThatIsMissing) {
  EXPECT_NE(error_of("/no/such/file.gz").find("/no/such/file.gz"), std::string::npos);
}

TEST_F(IdxFileTest, RefusesAFileThatIsNotIdx) {
  EXPECT_NE(error_of(write("PK\x03\x04 something else")).find("not an IDX file"), std::string::npos);
  EXPECT_NE(error_of(write("\0\0\x0d\x01\0\0\0\x01xxxx"s)).find("not an IDX file"), std::string::npos);
  EXPECT_NE(error_of(write("")).find("too early"), std::string::npos);
}

TEST_F(IdxFileTest, RefusesTooLittleAndTooMuchData) {
  EXPECT_NE(error_of(write(good_.substr(0, good_.size() - 1))).find("too early"), std::string::npos);
  EXPECT_NE(error_of(write(good_ + "x")).find("more data"), std::string::npos);
}

TEST_F(IdxFileTest, RefusesAnImpossibleHeaderBeforeAllocating) {
  const auto huge = "\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s;
  EXPECT_NE(error_of(write(huge)).find("cannot hold"), std::string::npos);
  EXPECT_NE(error_of(write("\0\0\x08\x01\0\0\0\0"s)).find("cannot hold"), std::string::npos);
}

TEST_F(IdxFileTest, RefusesADamagedGzip) {
  const auto path = write_gzipped(good_);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);  // the checksum
  file.put('\x55');
  file.close();
  EXPECT_NE(error_of(path), "no error");
}

}  // namespace
}  // namespace itspace::experiments
