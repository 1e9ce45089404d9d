// SPDX-License-Identifier: Apache-2.0
//
// Inflating with zlib. zlib counts in 32 bits, so both ends are fed in pieces.
#include "inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "crc.hpp"
#include "error.hpp"

namespace itspace::io {
namespace {

constexpr std::size_t largest_piece = std::size_t{1} << 30;

}  // namespace

void require_plausible_expansion(std::uint64_t compressed_bytes, std::uint64_t promised_bytes, std::string_view where) {
  constexpr std::uint64_t best_ratio = 1032;
  constexpr std::uint64_t slack_bytes = 65536;
  // compressed_bytes lie in the file, so the product is far from 2^64.
  const std::uint64_t limit = best_ratio * compressed_bytes + slack_bytes;
  if (promised_bytes > limit) {
    fail("{}: promises {} bytes from {} compressed ones, deflate can give at most {}; the file is damaged or hostile",
         where, promised_bytes, compressed_bytes, limit);
  }
}

struct Inflater::Stream {
  z_stream z = {};
};

Inflater::Inflater(std::span<const std::byte> compressed, std::string_view where)
    : stream_(std::make_unique<Stream>()), compressed_(compressed), where_(where) {
  if (::inflateInit2(&stream_->z, -MAX_WBITS) != Z_OK) {  // negative: raw deflate, as zip members are
    throw std::bad_alloc();
  }
}

Inflater::~Inflater() {
  ::inflateEnd(&stream_->z);
}

// One call of zlib; returns how many bytes of `out` it filled.
std::size_t Inflater::inflate_some(std::span<std::byte> out) {
  z_stream& z = stream_->z;
  if (z.avail_in == 0) {
    const auto piece = compressed_.first(std::min(compressed_.size(), largest_piece));
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));  // zlib's interface lacks the const
    z.avail_in = static_cast<uInt>(piece.size());
    compressed_ = compressed_.subspan(piece.size());
  }
  const std::size_t room = std::min(out.size(), largest_piece);
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(room);
  const int result = ::inflate(&z, Z_NO_FLUSH);
  const std::size_t filled = room - z.avail_out;
  if (result == Z_STREAM_END) {
    ended_ = true;
  } else if (result == Z_MEM_ERROR) {
    throw std::bad_alloc();
  } else if (result != Z_OK || (filled == 0 && z.avail_in == 0 && compressed_.empty())) {
    fail("{}: its compressed data are damaged after {} bytes ({}); copy or save it again", where_, produced_ + filled,
         z.msg != nullptr ? z.msg : "they end too early");
  }
  crc_ = crc_of(out.first(filled), crc_);
  produced_ += filled;
  return filled;
}

void Inflater::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (ended_) {
      fail("{}: its compressed data end after {} bytes, {} more were promised; copy or save it again", where_,
           produced_, out.size());
    }
    out = out.subspan(inflate_some(out));
  }
}

void Inflater::finish(std::uint32_t expected_crc) {
  std::byte excess{};
  while (!ended_) {
    if (inflate_some({&excess, 1}) != 0) {
      fail("{}: its compressed data go on after the {} bytes that its header promises; the file is damaged", where_,
           produced_ - 1);
    }
  }
  require_crc(crc_, expected_crc, where_);
}

}  // namespace itspace::io
