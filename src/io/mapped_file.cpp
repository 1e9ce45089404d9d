// SPDX-License-Identifier: Apache-2.0
//
// Opening and mapping.
#include "mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "error.hpp"
#include "regular_file.hpp"
#include "signal_table.hpp"

namespace itspace::io {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const RegularFile file(path);
  size_ = static_cast<std::size_t>(file.state().size);
  void* const memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
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
