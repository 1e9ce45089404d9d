// SPDX-License-Identifier: Apache-2.0
//
// Loads the module that reads Parquet and Arrow files, which lies beside this library.
#include <dlfcn.h>

#include <filesystem>

#include "arrow_file.hpp"
#include "error.hpp"

namespace itspace::io {
namespace {

std::filesystem::path module_path() {
  Dl_info self = {};
  ::dladdr(reinterpret_cast<const void*>(&module_path), &self);
  const std::filesystem::path library = self.dli_fname == nullptr ? "" : self.dli_fname;
  return library.parent_path() / ITSPACE_ARROW_MODULE;
}

// For as long as the process lives: Arrow has threads of its own.
OpenArrowFile* load() {
  const std::filesystem::path path = module_path();
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void* const found = opened == nullptr ? nullptr : ::dlsym(opened, open_arrow_file_symbol);
  if (found == nullptr) {
    const char* const why = ::dlerror();
    fail(
        "Parquet and Arrow files are read by Arrow, which cannot be loaded ({}); install the Arrow that this itspace "
        "was "
        "built with, or name its folder in LD_LIBRARY_PATH",
        why == nullptr ? "no reason is known" : why);
  }
  return reinterpret_cast<OpenArrowFile*>(found);
}

OpenArrowFile* loaded() {
  static OpenArrowFile* const open = load();  // tried again where it failed
  return open;
}

}  // namespace

std::unique_ptr<ArrowFile> open_arrow_file(const ArrowRequest& request) {
  return std::unique_ptr<ArrowFile>(loaded()(request));
}

bool reads_arrow_files() {
  return loaded() != nullptr;
}

}  // namespace itspace::io
