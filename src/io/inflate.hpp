// SPDX-License-Identifier: Apache-2.0
//
// Deflated bytes, inflated a known number at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace itspace::io {

// Deflate's best case is 1032:1 (258 bytes from two bits). A member that promises more lies, and is refused before a
// byte is allocated for it.
void require_plausible_expansion(std::uint64_t compressed_bytes, std::uint64_t promised_bytes, std::string_view where);

class Inflater {
 public:
  // `where` opens every message.
  Inflater(std::span<const std::byte> compressed, std::string_view where);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` with the next bytes, or throws.
  void read(std::span<std::byte> out);

  // Throws unless the stream ends here and all that was read has this checksum.
  void finish(std::uint32_t expected_crc);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  std::span<const std::byte> compressed_;  // not yet handed to zlib
  std::string where_;
  std::uint64_t produced_ = 0;
  std::uint32_t crc_ = 0;
  bool ended_ = false;

  std::size_t inflate_some(std::span<std::byte> out);
};

}  // namespace itspace::io
