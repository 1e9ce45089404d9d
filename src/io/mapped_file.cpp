// SPDX-License-Identifier: Apache-2.0
//
// Opening and mapping, with a message for each way a path can be wrong.
#include "mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "error.hpp"
#include "signal_table.hpp"

namespace itspace::io {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe must be refused below, not waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      fail("{} does not exist; check the path", in_quotes(path));
    }
    fail("{} cannot be opened: {}; check its permissions", in_quotes(path), reason(errno));
  }
  const Descriptor descriptor{fd};
  struct stat status = {};
  if (::fstat(fd, &status) != 0) {
    fail("{} cannot be examined: {}", in_quotes(path), reason(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    fail("{} is a folder; name a file inside it", in_quotes(path));
  }
  if (!S_ISREG(status.st_mode)) {
    fail("{} is not a regular file (a pipe or a device); save its content to a file first", in_quotes(path));
  }
  if (status.st_size == 0) {
    fail("{} is empty (0 bytes); save it again", in_quotes(path));
  }
  size_ = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    fail("{} ({} bytes) cannot be mapped: {}{}", in_quotes(path), size_, reason(error),
         error == ENOMEM ? "; the limit of address space (ulimit -v) must be larger than the file: raise it, or use a "
                           "smaller file"
                         : "; copy it to a local disk");
  }
  data_ = static_cast<const std::byte*>(memory);
  name_ = path.native();
  row_ = mappings().add(name_.c_str(), data_, size_);
}

MappedFile::~MappedFile() {
  mappings().remove(row_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace itspace::io
