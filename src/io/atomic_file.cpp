// SPDX-License-Identifier: Apache-2.0
//
// Write beside, make durable, rename.
#include "atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "error.hpp"
#include "signal_table.hpp"

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

// No two files are ever given the same name, so that removing one by name cannot hit another's: not even another
// process's of the same id in another container.
std::string fresh_name() {
  static std::atomic<unsigned> counter = 0;
  std::uint64_t random = 0;
  if (::getentropy(&random, sizeof random) != 0) {
    random = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return fmt::format(".itspace-{}-{}-{:016x}.tmp", ::getpid(), counter++, random);
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path, bool later)
    : destination_(find_destination(path)), later_(later && destination_.direct) {
  if (!destination_.direct) {
    open_temporary();
  } else if (!later_) {
    open_direct();
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    forget();
  }
}

void AtomicFile::remember(std::filesystem::path name) {
  temporary_ = std::move(name);
  row_ = temporaries().add(temporary_.c_str());
}

void AtomicFile::forget() {
  temporaries().remove(row_);
  row_ = -1;
  temporary_.clear();
}

void AtomicFile::open_direct() {
  fd_ = destination_.descriptor >= 0 ? ::fcntl(destination_.descriptor, F_DUPFD_CLOEXEC, 0)
                                     : ::open(destination_.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd_ < 0) {
    refuse(destination_, "it cannot be opened", errno);
  }
}

void AtomicFile::open_temporary() {
  // The name does not hold the target's, which may already be as long as a name can be.
  // A file that was private must not be readable while it is being replaced.
  const mode_t mode = destination_.mode ? (*destination_.mode & static_cast<mode_t>(0777)) | S_IWUSR : 0666;
  constexpr int attempts = 1000;
  for (int i = 0; i < attempts; ++i) {
    remember(destination_.folder / fresh_name());  // first: a signal may come between the two
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd_ >= 0) {
      return;
    }
    const int error_number = errno;
    forget();
    errno = error_number;
    if (errno != EEXIST) {
      break;
    }
  }
  refuse(destination_, "a temporary file beside it cannot be created", errno);
}

void AtomicFile::write(std::string_view bytes) {
  if (later_) {
    buffer_.append(bytes);
    return;
  }
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

void AtomicFile::close() {
  const int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0 && errno != EINTR) {
    refuse(destination_, "closing it failed", errno);
  }
}

void AtomicFile::finish() {
  if (destination_.direct || finished_) {
    return;
  }
  flush();
  if (destination_.mode) {
    ::fchmod(fd_, *destination_.mode);  // best effort: some file systems have no modes
  }
  if (::fsync(fd_) != 0) {
    refuse(destination_, "it could not be made durable", errno);
  }
  close();
  finished_ = true;
}

void AtomicFile::commit() {
  if (destination_.direct) {
    if (later_) {
      open_direct();
    }
    flush();
    close();
    return;
  }
  rename();
  settle();
}

void AtomicFile::rename() {
  finish();
  if (::rename(temporary_.c_str(), destination_.path.c_str()) != 0) {
    refuse(destination_, "the finished file could not be renamed", errno);
  }
  forget();
}

void AtomicFile::settle() {
  sync_folder(destination_.folder);
}

}  // namespace itspace::io
