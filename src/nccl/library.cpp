// SPDX-License-Identifier: Apache-2.0
#include "nccl/library.hpp"

#include "core/require.hpp"
#include "cuda/loaded_functions.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace itspace::nccl {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  cuda::find_function(library, name, "NCCL", "libnccl.so.2; install NCCL 2.10 or newer", function);
}

}  // namespace

const Library& library() {
  static const Library found = [] {
    constexpr const char* name = "libnccl.so.2";
    void* opened = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (opened == nullptr) opened = dlopen(name, RTLD_NOW);
    if (opened == nullptr)
      throw std::runtime_error(
          "NCCL: libnccl.so.2 was not found; install it (Debian and Ubuntu: libnccl2, of NVIDIA's repository), or add "
          "its folder to LD_LIBRARY_PATH");
    Library all{};
    find(opened, "ncclGetUniqueId", all.get_unique_id);
    find(opened, "ncclCommInitRank", all.comm_init_rank);
    find(opened, "ncclCommDestroy", all.comm_destroy);
    find(opened, "ncclAllReduce", all.all_reduce);
    find(opened, "ncclGetErrorString", all.error_string);
    return all;
  }();
  return found;
}

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess)
    throw std::runtime_error(text("NCCL: ", what, " failed: ", library().error_string(result),
                                  "; NCCL_DEBUG=WARN in the environment says more"));
}

}  // namespace itspace::nccl
