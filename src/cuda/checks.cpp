// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/checks.hpp>

#include <itspace/covariance.hpp>

#include "core/require.hpp"
#include "cuda/linear_algebra.hpp"
#include "cuda/views.hpp"

#include <cmath>

namespace itspace::cuda {

template <Storage Scalar>
void check_finite(const Device& device, const std::type_identity_t<ConstView<Scalar>>& block, std::string_view what) {
  if (block.rows == 0 || block.cols() == 0) return;
  const UseDevice use(device.ordinal());
  const NotFinite found = find_not_finite<Scalar>(device.state(), block);
  require(!found.in_first_row && !found.in_others, what,
          " has a value that is NaN or Inf; remove or replace such values first");
}

template <Storage Scalar>
double check_symmetric(const Device& device, const std::type_identity_t<ConstView<Scalar>>& sigma,
                       std::string_view what) {
  require(sigma.rows == sigma.cols() && sigma.rows > 0, what, " is ", sigma.rows, " x ", sigma.cols(),
          "; a covariance is square and not empty. If its rows are samples, pass it as features");
  const UseDevice use(device.ordinal());
  DeviceState& state = device.state();
  constexpr Index facts = 3;
  auto* found = state.scratch<unsigned long long>(Scratch::flags, facts);
  double* read = state.results(facts);
  check(cudaMemsetAsync(found, 0, facts * sizeof(double), state.stream()), "clearing what is known of a covariance");
  kernels::covariance_facts<Scalar>(state.stream(), in(sigma), found);
  check(cudaMemcpyAsync(read, found, facts * sizeof(double), cudaMemcpyDeviceToHost, state.stream()),
        "reading what is known of a covariance");
  state.synchronize();
  const double asymmetry = read[0], largest = read[1], negative = read[2];
  require(std::isfinite(largest), what, " has a value that is NaN or Inf; remove or replace such values first");
  const double limit = static_cast<double>(sigma.rows) * rounded_to_float * largest;
  require(asymmetry <= limit, what, " is not symmetric: two entries [i, j] and [j, i] differ by ", asymmetry,
          " (limit ", limit, "). Pass a covariance, average it with its transpose, or pass the features it came from");
  require(negative <= limit, what, " is indefinite: it has a variance of ", -negative,
          ", and no variance is negative (limit ", -limit, "). Pass a covariance, or add a ridge of at least ",
          negative, " to its diagonal");
  return asymmetry;
}

template <Storage Scalar>
bool is_semidefinite(const Device& device, const std::type_identity_t<ConstView<Scalar>>& sigma) {
  const Index d = sigma.rows;
  if (d > most_square_dim) return false;
  const UseDevice use(device.ordinal());
  DeviceState& state = device.state();
  Block<double> shifted(device, d, d);
  kernels::widen_symmetric<Scalar>(state.stream(), in(sigma), shifted.data());
  const itspace::Block<double> variances = diagonal_of(device, shifted.data(), d);
  const double shift = static_cast<double>(d) * rounded_to_float * variances.maxCoeff();
  kernels::combine(state.stream(), 0, shifted.data(), 1, shift, shifted.data(), d);
  return LinearAlgebra::of(state).cholesky(state, {shifted.data()}, d);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                    \
  template void check_finite<Scalar>(const Device&, const std::type_identity_t<ConstView<Scalar>>&, std::string_view); \
  template double check_symmetric<Scalar>(const Device&, const std::type_identity_t<ConstView<Scalar>>&,               \
                                          std::string_view);                                                           \
  template bool is_semidefinite<Scalar>(const Device&, const std::type_identity_t<ConstView<Scalar>>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
