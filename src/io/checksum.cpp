// SPDX-License-Identifier: Apache-2.0
//
// Two checksums: CRC-32, which zip files hold, and the one that ties a trace to its factor.
#include <zlib.h>

#include <bit>
#include <itspace/io.hpp>

#include "crc.hpp"
#include "error.hpp"
#include "npy_writer.hpp"

namespace itspace::io {
namespace {

// FNV-1a, 64 bits: for each byte, hash = (hash ^ byte) * prime. It finds slips, not forgeries.
class Fnv {
 public:
  void add(std::string_view bytes) {
    constexpr std::uint64_t prime = 0x100000001b3;
    for (const char c : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * prime;
    }
  }
  std::string text() const { return fmt::format("fnv1a64:{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t before) {
  if (bytes.empty()) {
    return before;  // an empty array has no address, and zlib would start anew
  }
  return static_cast<std::uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void require_crc(std::uint32_t found, std::uint32_t expected, std::string_view where) {
  if (found != expected) {
    fail("{}: checksum is {:08x}, the file says {:08x}; the data are damaged: copy or save it again", where, found,
         expected);
  }
}

template <Storage Scalar>
std::string checksum_of(const ConstBlockView<Scalar>& block) {
  static_assert(std::endian::native == std::endian::little, "the checksum is of little-endian bytes");
  Fnv hash;
  hash.add(fmt::format("{} {}x{}\n", std::same_as<Scalar, float> ? "float32" : "float64", block.rows(), block.cols()));
  for (Index i = 0; i < block.rows(); ++i) {
    hash.add(bytes_of(block.data() + i * block.outerStride(), block.cols()));
  }
  return hash.text();
}

template ITSPACE_API std::string checksum_of<float>(const ConstBlockView<float>&);
template ITSPACE_API std::string checksum_of<double>(const ConstBlockView<double>&);

std::string checksum_of(const Array& array) {
  if (array.info().type == "float32") {
    return checksum_of<float>(array.as<float>().view());
  }
  return checksum_of<double>(array.as<double>().view());
}

}  // namespace itspace::io
