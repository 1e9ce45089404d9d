// SPDX-License-Identifier: Apache-2.0
//
// Write beside, make durable, rename.
#include "atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "error.hpp"

namespace itspace::io {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

// Makes the rename itself durable. Some file systems cannot; the content is safe either way.
void sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    ::fsync(fd);
    ::close(fd);
  }
}

[[noreturn]] void refuse(const Destination& destination, std::string_view what, int error_number) {
  const std::string_view remedy = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG
                                      ? "make room or choose another place"
                                      : "choose another place";
  const std::string_view old = destination.mode ? " (the old file is untouched)" : "";
  fail("{} cannot be written: {}: {}{}; {}", in_quotes(destination.as_written), what, reason(error_number), old,
       remedy);
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path) : destination_(find_destination(path)) {
  if (destination_.direct) {
    open_direct();
  } else {
    open_temporary();
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::open_direct() {
  fd_ = destination_.descriptor >= 0 ? ::fcntl(destination_.descriptor, F_DUPFD_CLOEXEC, 0)
                                     : ::open(destination_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd_ < 0) {
    refuse(destination_, "it cannot be opened", errno);
  }
}

void AtomicFile::open_temporary() {
  // The name does not hold the target's, which may already be as long as a name can be. Threads and processes that meet
  // in one folder are kept apart by the counter and the process id; O_EXCL settles the rest.
  static std::atomic<unsigned> counter = 0;
  // A file that was private must not be readable while it is being replaced.
  const mode_t mode = destination_.mode ? (*destination_.mode & static_cast<mode_t>(0777)) | S_IWUSR : 0666;
  constexpr int attempts = 1000;
  for (int i = 0; i < attempts; ++i) {
    auto name = destination_.folder / fmt::format(".itspace-{}-{}.tmp", ::getpid(), counter++);
    fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd_ >= 0) {
      temporary_ = std::move(name);
      return;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  refuse(destination_, "a temporary file beside it cannot be created", errno);
}

void AtomicFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes) {
    flush();
  }
  if (bytes.size() > buffer_bytes) {
    write_now(bytes);
  } else {
    buffer_.append(bytes);
  }
}

void AtomicFile::flush() {
  write_now(buffer_);
  buffer_.clear();
}

void AtomicFile::write_now(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      refuse(destination_, "writing failed", written == 0 ? ENOSPC : errno);
    }
  }
}

void AtomicFile::commit() {
  flush();
  if (destination_.mode) {
    ::fchmod(fd_, *destination_.mode);  // best effort: some file systems have no modes
  }
  if (!destination_.direct && ::fsync(fd_) != 0) {
    refuse(destination_, "it could not be made durable", errno);
  }
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 && errno != EINTR) {
    refuse(destination_, "closing it failed", errno);
  }
  if (destination_.direct) {
    return;
  }
  if (::rename(temporary_.c_str(), destination_.path.c_str()) != 0) {
    refuse(destination_, "the finished file could not be renamed", errno);
  }
  temporary_.clear();
  sync_folder(destination_.folder);
}

}  // namespace itspace::io
