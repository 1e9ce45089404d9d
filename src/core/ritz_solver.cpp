// SPDX-License-Identifier: Apache-2.0
#include "core/ritz_solver_impl.hpp"

namespace itspace {

template class RitzSolver<HostSpace<float>>;
template class RitzSolver<HostSpace<double>>;

}  // namespace itspace
