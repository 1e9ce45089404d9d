// SPDX-License-Identifier: Apache-2.0
//
// Stands in for ranks_mpi.cpp in a build without itspace::mpi.
#include "ranks.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace itspace::cli {

int align_on_ranks(const SpreadAlign&) {
  throw std::runtime_error(fmt::format(
      "mpirun started {} copies of this itspace, which was built without MPI: they would do the same work and "
      "overwrite "
      "one another's results\nleave out mpirun, or configure with -DITSPACE_MPI=ON where Open MPI is installed",
      job().size));
}

}  // namespace itspace::cli
