// SPDX-License-Identifier: Apache-2.0
//
// NCCL, found when it is first asked for: a program built with it starts where there is none.
#pragma once

#include <nccl.h>

#include <string>

namespace itspace::nccl {

struct Library {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRank) comm_init_rank;
  decltype(&ncclCommDestroy) comm_destroy;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclGetErrorString) error_string;
};

// @throws std::runtime_error where there is none.
const Library& library();

// @throws std::runtime_error with NCCL's words unless it succeeded.
void check(ncclResult_t result, const char* what);

}  // namespace itspace::nccl
