// SPDX-License-Identifier: Apache-2.0
//
// Where a write goes, and whether it can.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <itspace/io.hpp>

#include "atomic_file.hpp"
#include "error.hpp"

namespace itspace::io {
namespace {

// /dev/stdout, /dev/stderr, /dev/fd/N and what they link to. Opening these anew would start at byte 0 of a redirected
// file and lose what was printed before, so the descriptor itself is used.
int named_descriptor(const std::filesystem::path& path) {
  const std::string& text = path.native();
  if (text == "/dev/stdout") {
    return STDOUT_FILENO;
  }
  if (text == "/dev/stderr") {
    return STDERR_FILENO;
  }
  for (const std::string_view prefix : {"/dev/fd/", "/proc/self/fd/"}) {
    int number = -1;
    if (text.starts_with(prefix)) {
      const char* const end = text.data() + text.size();
      const auto [rest, error] = std::from_chars(text.data() + prefix.size(), end, number);
      if (error == std::errc{} && rest == end) {
        return number;
      }
    }
  }
  return -1;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

void require_folder(const Destination& destination) {
  const std::filesystem::path& folder = destination.folder;
  struct stat status = {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT) {
      fail("{} cannot be written: the folder {} does not exist; create it first", in_quotes(destination.as_written),
           in_quotes(folder));
    }
    fail("{} cannot be written: the folder {} cannot be reached: {}", in_quotes(destination.as_written),
         in_quotes(folder), reason(errno));
  }
  if (!S_ISDIR(status.st_mode)) {
    fail("{} cannot be written: {} is not a folder; choose another place", in_quotes(destination.as_written),
         in_quotes(folder));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    fail("{} cannot be written: nothing can be created in the folder {}: {}; choose another place",
         in_quotes(destination.as_written), in_quotes(folder), reason(errno));
  }
}

// The path that a write to `path` ends at, symbolic links followed even where the last one dangles; or the descriptor.
Destination follow_links(const std::filesystem::path& path) {
  Destination result;
  result.path = path;
  result.as_written = path;
  constexpr int most_links = 40;  // the kernel's own limit
  for (int links = 0;; ++links) {
    result.descriptor = named_descriptor(result.path);
    if (result.descriptor >= 0) {
      result.direct = true;
      break;
    }
    std::error_code not_a_link;
    const std::filesystem::path next = std::filesystem::read_symlink(result.path, not_a_link);
    if (not_a_link) {
      break;
    }
    if (links == most_links) {
      fail("{} cannot be written: more than {} symbolic links follow each other; name the file itself", in_quotes(path),
           most_links);
    }
    result.path = folder_of(result.path) / next;  // an absolute link replaces the whole
  }
  result.folder = folder_of(result.path);
  return result;
}

}  // namespace

Destination find_destination(const std::filesystem::path& path) {
  if (path.empty()) {
    fail("an output file has an empty name; name a file");
  }
  Destination result = follow_links(path);
  if (result.direct) {
    return result;
  }
  struct stat status = {};
  const bool exists = ::stat(result.path.c_str(), &status) == 0;
  if ((exists && S_ISDIR(status.st_mode)) || !result.path.has_filename()) {
    fail("{} cannot be written: it is a folder; name a file inside it", in_quotes(path));
  }
  if (exists && ::access(result.path.c_str(), W_OK) != 0) {
    fail("{} cannot be written: {}; change its permissions or choose another name", in_quotes(path), reason(errno));
  }
  result.direct = exists && !S_ISREG(status.st_mode);
  if (!result.direct) {
    require_folder(result);
    if (exists) {
      result.mode = status.st_mode & static_cast<mode_t>(07777);
    }
  }
  return result;
}

std::optional<FileIdentity> identity_of(const std::filesystem::path& path) {
  const Destination place = follow_links(path);
  struct stat status = {};
  const bool exists =
      place.descriptor >= 0 ? ::fstat(place.descriptor, &status) == 0 : ::stat(place.path.c_str(), &status) == 0;
  if (exists) {
    if (!S_ISREG(status.st_mode)) {
      return std::nullopt;
    }
    return FileIdentity{status.st_dev, status.st_ino, "", place.descriptor >= 0};
  }
  if (place.descriptor >= 0 || ::stat(place.folder.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return FileIdentity{status.st_dev, status.st_ino, place.path.filename().native(), false};
}

bool same_file(const std::optional<FileIdentity>& a, const std::optional<FileIdentity>& b) {
  return a && b && a->device == b->device && a->inode == b->inode && a->name == b->name &&
         !(a->open_descriptor && b->open_descriptor);
}

}  // namespace itspace::io
