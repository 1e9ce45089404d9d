// SPDX-License-Identifier: Apache-2.0
#include "core/paper_solver_impl.hpp"

namespace itspace {

template class PaperSolver<HostSpace<float>>;
template class PaperSolver<HostSpace<double>>;

}  // namespace itspace
