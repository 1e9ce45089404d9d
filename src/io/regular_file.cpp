// SPDX-License-Identifier: Apache-2.0
#include "regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "error.hpp"

namespace itspace::io {

RegularFile::RegularFile(const std::filesystem::path& path, std::string_view absent) : path_(path) {
  // O_NONBLOCK: a pipe must be refused below, not waited for.
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      fail("{} {}", in_quotes(path), absent);
    }
    fail("{} cannot be opened: {}; check its permissions", in_quotes(path), reason(errno));
  }
  struct stat status = {};
  const int examined = ::fstat(fd_, &status);
  const bool regular = examined == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (regular) {
    return;
  }
  const int error = errno;
  ::close(fd_);
  if (examined != 0) {
    fail("{} cannot be examined: {}", in_quotes(path), reason(error));
  }
  if (S_ISDIR(status.st_mode)) {
    fail("{} is a folder; name a file inside it", in_quotes(path));
  }
  if (!S_ISREG(status.st_mode)) {
    fail("{} is not a regular file (a pipe or a device); save its content to a file first", in_quotes(path));
  }
  fail("{} is empty (0 bytes); save it again", in_quotes(path));
}

RegularFile::~RegularFile() {
  ::close(fd_);
}

FileState RegularFile::state() const {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) {
    fail("{} cannot be examined: {}", in_quotes(path_), reason(errno));
  }
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
          static_cast<std::uint64_t>(status.st_size), static_cast<std::int64_t>(status.st_mtim.tv_sec),
          static_cast<std::int64_t>(status.st_mtim.tv_nsec)};
}

std::size_t RegularFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  // What is in the page cache first, as far as the file system tells it apart.
  const iovec whole{out.data(), out.size()};
  const ssize_t at_hand = ::preadv2(fd_, &whole, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  std::size_t filled = at_hand > 0 ? static_cast<std::size_t>(at_hand) : 0;
  if (filled < out.size()) {
    waited_ = true;
  }
  while (filled < out.size()) {
    const ssize_t count = ::pread(fd_, out.data() + filled, out.size() - filled, static_cast<off_t>(offset + filled));
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
    } else if (count == 0) {
      break;
    } else if (errno != EINTR) {
      fail("{} cannot be read: {}; check the disk", in_quotes(path_), reason(errno));
    }
  }
  return filled;
}

void RegularFile::expect(std::uint64_t offset, std::uint64_t bytes) const {
  ::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void require_unchanged(const std::filesystem::path& path, const FileState& before, const FileState& now) {
  if (now == before) {
    return;
  }
  if (now.size != before.size) {
    fail("{} has changed while it was read: it had {} bytes and now has {}; begin again when nothing writes to it",
         in_quotes(path), before.size, now.size);
  }
  fail("{} has changed while it was read: it was {} in the meantime; begin again when nothing writes to it",
       in_quotes(path), now.inode == before.inode && now.device == before.device ? "written to" : "replaced");
}

}  // namespace itspace::io
