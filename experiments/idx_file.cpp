// SPDX-License-Identifier: Apache-2.0
#include "idx_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace itspace::experiments {
namespace {

// Deflate never makes more than about 1030 bytes out of one.
constexpr std::uint64_t largest_inflation = 1032;
constexpr std::uint8_t unsigned_bytes = 0x08;

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    bytes_in_file_ = std::filesystem::file_size(path, error);
    if (error) fail(error.message());
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    if (!file_) fail(errno ? std::strerror(errno) : "out of memory");
  }

  std::uint64_t bytes_in_file() const { return bytes_in_file_; }

  void read(std::uint8_t* out, std::size_t count) {
    while (count > 0) {
      const auto chunk = static_cast<unsigned>(std::min<std::size_t>(count, 1u << 30));
      const int got = gzread(file_.get(), out, chunk);
      if (got < 0) fail(message());
      if (got == 0) fail(fmt::format("the file ends {} bytes too early", count));
      out += got;
      count -= static_cast<std::size_t>(got);
    }
  }

  // Reading on to the end is also what makes zlib compare the checksum.
  void expect_end() {
    std::uint8_t more;
    const int got = gzread(file_.get(), &more, 1);
    if (got < 0) fail(message());
    if (got > 0) fail("there is more data than its header says");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(fmt::format("{}: {}", path_.string(), what));
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose_r(file); }
  };

  std::string message() const {
    int code = 0;
    const char* text = gzerror(file_.get(), &code);
    return code == Z_ERRNO ? std::strerror(errno) : text;
  }

  std::filesystem::path path_;
  std::uint64_t bytes_in_file_ = 0;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Close> file_;
};

}  // namespace

IdxArray read_idx(const std::filesystem::path& path) {
  Reader reader(path);

  std::array<std::uint8_t, 4> magic;  // 0, 0, type, number of dimensions
  reader.read(magic.data(), magic.size());
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != unsigned_bytes || magic[3] < 1 || magic[3] > 3)
    reader.fail("not an IDX file of unsigned bytes in 1 to 3 dimensions");

  IdxArray array;
  std::uint64_t total = 1;
  const std::uint64_t limit = largest_inflation * reader.bytes_in_file();
  for (int k = 0; k < magic[3]; ++k) {
    std::array<std::uint8_t, 4> size;  // big-endian
    reader.read(size.data(), size.size());
    const std::uint64_t extent =
        std::uint64_t{size[0]} << 24 | std::uint64_t{size[1]} << 16 | std::uint64_t{size[2]} << 8 | size[3];
    // Compared by division: the product itself could wrap.
    if (extent == 0 || total > limit / extent)
      reader.fail(fmt::format("its header promises a size of {} in dimension {}, which its {} bytes cannot hold",
                              extent, k, reader.bytes_in_file()));
    total *= extent;
    array.shape.push_back(extent);
  }

  array.values.resize(total);
  reader.read(array.values.data(), array.values.size());
  reader.expect_end();
  return array;
}

}  // namespace itspace::experiments
