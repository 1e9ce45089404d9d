// SPDX-License-Identifier: Apache-2.0
//
// What src/nccl calls of NCCL, for GPUs that are played on the host's memory (tests/cuda/stand_in): sums by MPI. Each
// rank must say the same name of the job, and the sum must be asked for in the same size by all.
#include <nccl.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <cstring>

struct ncclComm {
  MPI_Comm comm;
};

namespace {
constexpr char name_of_the_job[] = "the stand-in's";
}

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, name_of_the_job, sizeof name_of_the_job);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* made, int count, ncclUniqueId id, int rank) {
  int size = 0, own = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (size != count || own != rank || std::strcmp(id.internal, name_of_the_job) != 0) return ncclInvalidArgument;
  *made = new ncclComm{MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &(*made)->comm);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended == 0) MPI_Comm_free(&comm->comm);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t) {
  if (op != ncclSum || (type != ncclFloat32 && type != ncclFloat64)) return ncclInvalidArgument;
  long long sizes[] = {static_cast<long long>(count), -static_cast<long long>(count)};
  MPI_Allreduce(MPI_IN_PLACE, sizes, 2, MPI_LONG_LONG, MPI_MAX, comm->comm);
  if (sizes[0] != -sizes[1]) return ncclInvalidUsage;
  if (from != to) return ncclInvalidArgument;
  MPI_Allreduce(MPI_IN_PLACE, to, static_cast<int>(count), type == ncclFloat32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM,
                comm->comm);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t) {
  return "an error of the stand-in";
}

}  // extern "C"
