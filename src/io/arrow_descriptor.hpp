// SPDX-License-Identifier: Apache-2.0
//
// Reads in the thread that asks. Arrow's own file has threads for what is read ahead, and they let go of memory when
// its pool may be gone.
#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/util/future.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace itspace::io {

class Descriptor : public arrow::io::RandomAccessFile {
 public:
  using Bytes = std::shared_ptr<arrow::Buffer>;
  using RandomAccessFile::ReadAsync;

  Descriptor(int descriptor, arrow::MemoryPool* pool) : descriptor_(descriptor), pool_(pool) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  arrow::Result<std::int64_t> GetSize() override {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) return failure();
    return static_cast<std::int64_t>(status.st_size);
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position_, count, out));
    position_ += held;
    return held;
  }
  arrow::Result<Bytes> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(Bytes bytes, ReadAt(position_, count));
    position_ += bytes->size();
    return bytes;
  }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* out) override {
    if (position < 0 || count < 0) return arrow::Status::IOError("a place before its beginning was asked for");
    std::int64_t filled = 0;
    while (filled < count) {
      const ssize_t held = ::pread(descriptor_, static_cast<char*>(out) + filled,
                                   static_cast<std::size_t>(count - filled), position + filled);
      if (held == 0) break;
      if (held < 0 && errno != EINTR) return failure();
      filled += std::max<std::int64_t>(0, held);
    }
    return filled;
  }
  // No more than the file has: a damaged one asks for any number.
  arrow::Result<Bytes> ReadAt(std::int64_t position, std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, GetSize());
    const std::int64_t most =
        std::clamp<std::int64_t>(size - std::min(size, position), 0, std::max<std::int64_t>(0, count));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> bytes, arrow::AllocateResizableBuffer(most, pool_));
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position, most, bytes->mutable_data()));
    ARROW_RETURN_NOT_OK(bytes->Resize(held, /*shrink_to_fit=*/false));
    return Bytes(std::move(bytes));
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, std::int64_t position, std::int64_t count) override {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, count));
  }

  // Newer versions of Arrow have these as well: without override, for those that have not.
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, bool short_is_fine, void* out) {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position, count, out));
    if (held < count && !short_is_fine) return cut_short();
    return held;
  }
  arrow::Result<Bytes> ReadAt(std::int64_t position, std::int64_t count, bool short_is_fine) {
    ARROW_ASSIGN_OR_RAISE(Bytes bytes, ReadAt(position, count));
    if (bytes->size() < count && !short_is_fine) return cut_short();
    return bytes;
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, std::int64_t position, std::int64_t count,
                                 bool short_is_fine) {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, count, short_is_fine));
  }

 private:
  static arrow::Status failure() { return arrow::Status::IOError(std::strerror(errno)); }
  static arrow::Status cut_short() { return arrow::Status::IOError("it ends before its last values"); }

  int descriptor_;
  arrow::MemoryPool* pool_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace itspace::io
