// SPDX-License-Identifier: Apache-2.0
#include <itspace/cuda/space.hpp>

#include "core/require.hpp"
#include "cuda/views.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itspace::cuda {

template <Storage Scalar>
Block<Scalar>::Block(Device device, Index rows, Index cols) : rows_(rows), cols_(cols) {
  require(rows >= 0 && cols >= 0, "a block of ", rows, " x ", cols, " was asked for; neither may be negative");
  if (rows == 0 || cols == 0) return;
  require(rows <= std::numeric_limits<Index>::max() / cols, "a block of ", rows, " x ", cols,
          " has more values than there are addresses");
  device_ = std::make_shared<Device>(std::move(device));
  const UseDevice use(device_->ordinal());
  data_ = static_cast<Scalar*>(device_->state().allocate(DeviceState::bytes_of<Scalar>(rows * cols)));
}

template <Storage Scalar>
Block<Scalar>::~Block() {
  if (data_ != nullptr) device_->state().give_back(data_, DeviceState::bytes_of<Scalar>(rows_ * cols_));
}

namespace {

template <Storage Scalar>
void copy_rows(const Device& device, const Scalar* from, Index from_stride, Scalar* to, Index to_stride, Index rows,
               Index cols, cudaMemcpyKind kind) {
  if (rows == 0 || cols == 0) return;
  const UseDevice use(device.ordinal());
  // A single row may have any stride, and CUDA wants one that is no less than the width.
  const auto bytes = [](Index count) { return static_cast<std::size_t>(count) * sizeof(Scalar); };
  check(cudaMemcpy2DAsync(to, bytes(std::max(to_stride, cols)), from, bytes(std::max(from_stride, cols)), bytes(cols),
                          static_cast<std::size_t>(rows), kind, device.state().stream()),
        kind == cudaMemcpyHostToDevice ? "copying to the device" : "copying to the host");
  device.state().synchronize();
}

}  // namespace

template <Storage Scalar>
void copy_to_device(const Device& device, const std::type_identity_t<ConstBlockView<Scalar>>& from, View<Scalar> to) {
  require(from.rows() == to.rows && from.cols() == to.cols(), "a block of ", from.rows(), " x ", from.cols(),
          " is to be copied to one of ", to.rows, " x ", to.cols(), "; give one of the same size");
  copy_rows<Scalar>(device, from.data(), from.outerStride(), to.data, to.stride, to.rows, to.cols(),
                    cudaMemcpyHostToDevice);
}

template <Storage Scalar>
void copy_to_host(const Device& device, const ConstView<Scalar>& from, std::type_identity_t<BlockView<Scalar>> to) {
  require(from.rows == to.rows() && from.cols() == to.cols(), "a block of ", from.rows, " x ", from.cols(),
          " is to be copied to one of ", to.rows(), " x ", to.cols(), "; give one of the same size");
  copy_rows<Scalar>(device, from.data, from.stride, to.data(), to.outerStride(), from.rows, from.cols(),
                    cudaMemcpyDeviceToHost);
}

template <Storage Scalar>
void Space<Scalar>::grams(std::span<const GramRequest<ConstView>> requests) {
  for (std::size_t first = 0; first < requests.size(); first += kernels::most_jobs) {
    const auto batch = requests.subspan(first, std::min<std::size_t>(kernels::most_jobs, requests.size() - first));
    ask_grams(batch);
    answer_grams(batch);
  }
}

namespace {

template <class Request>
Index entries_of(const Request& request) {
  return request.a.rows > 0 ? request.a.cols() * request.b.cols() : 0;
}

}  // namespace

// Partial sums of all requests, and their sums into pinned memory, one request after the other.
template <Storage Scalar>
void Space<Scalar>::ask_grams(std::span<const GramRequest<ConstView>> requests) {
  require(requests.size() <= kernels::most_jobs, requests.size(),
          " Gram matrices were asked for at once; no more than ", kernels::most_jobs, " can be");
  const auto parts_of = [](const GramRequest<ConstView>& request) {
    return kernels::gram_parts(request.a.rows, request.a.cols(), request.b.cols());
  };
  Index partial_count = 0, result_count = 0;
  for (const auto& request : requests) {
    const Index entries = entries_of(request);
    if (entries > 0) partial_count += entries * parts_of(request);
    result_count += entries;
  }
  if (result_count == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  double* partials = state.scratch<double>(Scratch::partials, partial_count);
  double* results = state.results(result_count);
  kernels::GramJobs<Scalar> jobs{};
  kernels::PartsList list{};
  for (const auto& request : requests) {
    const Index entries = entries_of(request);
    if (entries == 0) continue;
    jobs.of[jobs.jobs++] = {in(request.a), in(request.b), partials};
    list.of[list.jobs++] = {partials, parts_of(request), entries, results};
    partials += entries * parts_of(request);
    results += entries;
  }
  kernels::gram_partials<Scalar>(state.stream(), jobs);
  kernels::add_parts(state.stream(), list, kernels::Combine::sum);
}

template <Storage Scalar>
void Space<Scalar>::answer_grams(std::span<const GramRequest<ConstView>> requests) {
  Index result_count = 0;
  for (const auto& request : requests) result_count += entries_of(request);
  const double* result = nullptr;
  if (result_count > 0) {
    const UseDevice use(device_.ordinal());
    DeviceState& state = device_.state();
    state.synchronize();
    result = state.results(result_count);
  }
  for (const auto& request : requests) {
    const Index p = request.a.cols(), q = request.b.cols();
    if (entries_of(request) == 0) {
      request.out->setZero(p, q);
      continue;
    }
    using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    *request.out = Eigen::Map<const RowMajor>(result, p, q);
    result += p * q;
  }
}

template <Storage Scalar>
SmallVector Space<Scalar>::column_norms(const ConstView& a) {
  using kernels::ColumnSum;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  SmallVector norms = column_sums<Scalar>(state, ColumnSum::square, a);
  // Squares leave double's range before lengths do.
  constexpr double smallest = std::numeric_limits<double>::min() / std::numeric_limits<double>::epsilon();
  const auto in_range = [&](double square) {
    return square >= smallest && square <= std::numeric_limits<double>::max();
  };
  if (std::all_of(norms.begin(), norms.end(), in_range)) return norms.cwiseSqrt();
  const SmallVector largest = column_sums<Scalar>(state, ColumnSum::largest, a);
  SmallVector scales = SmallVector::Ones(a.cols()), lengths = SmallVector::Ones(a.cols());
  for (Index j = 0; j < a.cols(); ++j) {
    if (!(largest(j) > 0) || !std::isfinite(largest(j))) continue;
    int exponent = 0;
    std::frexp(largest(j), &exponent);
    // 2^1074 is out of range; the smallest numbers are brought up far enough by less.
    exponent = std::max(exponent, -1020);
    scales(j) = std::ldexp(1.0, -exponent);
    lengths(j) = std::ldexp(1.0, exponent);
  }
  kernels::ColumnTerms<Scalar> terms;
  terms.columns = state.upload(scales.data(), scales.size());
  const SmallVector scaled = column_sums<Scalar>(state, ColumnSum::scaled_square, a, terms);
  for (Index j = 0; j < a.cols(); ++j)
    norms(j) = in_range(norms(j)) ? std::sqrt(norms(j)) : std::sqrt(scaled(j)) * lengths(j);
  return norms;
}

template <Storage Scalar>
BlendNorms Space<Scalar>::blend_norms(const ConstView& y, const ConstView& b) {
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  const Index parts = kernels::blend_parts(b.rows);
  double* partials = state.scratch<double>(Scratch::partials, 2 * parts);
  double* results = state.results(2);
  kernels::blend_norm_partials<Scalar>(state.stream(), in(y), in(b), partials);
  kernels::add_parts(state.stream(), {{{partials, parts, 2, results}}, 1}, kernels::Combine::sum);
  state.synchronize();
  return {results[0], results[1]};
}

template <Storage Scalar>
void Space<Scalar>::multiply(const ConstView& a, const Small& m, const View& to, Write write) {
  if (to.rows == 0 || to.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  if (a.cols() == 0) {
    if (write == Write::assign) kernels::fill<Scalar>(state.stream(), out(to), Scalar(0));
    return;
  }
  const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> by_rows = m;
  const double* factors = state.upload(by_rows.data(), by_rows.size());
  const bool add = write == Write::add;
  if (kernels::multiply<Scalar>(state.stream(), in(a), factors, out(to), add)) return;
  // Rows too long for the chip, and in the memory that is written to: from a copy.
  const kernels::Out<Scalar> copy{state.scratch<Scalar>(Scratch::wide_rows, a.rows * a.cols()), a.rows, a.cols(),
                                  a.cols()};
  kernels::copy<Scalar>(state.stream(), in(a), copy);
  kernels::multiply<Scalar>(state.stream(), {copy.data, copy.rows, copy.cols, copy.stride}, factors, out(to), add);
}

template <Storage Scalar>
void Space<Scalar>::blend(const ConstView& y, const ConstView& b, double alpha, const View& to) {
  const UseDevice use(device_.ordinal());
  kernels::blend<Scalar>(device_.state().stream(), in(y), in(b), alpha, out(to));
}

template <Storage Scalar>
void Space<Scalar>::scale_columns(const View& block, const SmallVector& factors) {
  if (block.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  kernels::scale_columns<Scalar>(state.stream(), state.upload(factors.data(), factors.size()), out(block));
}

template <Storage Scalar>
void Space<Scalar>::subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors,
                                    const View& to) {
  if (to.cols() == 0) return;
  const UseDevice use(device_.ordinal());
  DeviceState& state = device_.state();
  kernels::subtract_scaled<Scalar>(state.stream(), in(a), in(b), state.upload(factors.data(), factors.size()), out(to));
}

template <Storage Scalar>
void Space<Scalar>::copy(const ConstView& from, const View& to) {
  const UseDevice use(device_.ordinal());
  kernels::copy<Scalar>(device_.state().stream(), in(from), out(to));
}

template <Storage Scalar>
void Space<Scalar>::set_zero(const View& block) {
  const UseDevice use(device_.ordinal());
  kernels::fill<Scalar>(device_.state().stream(), out(block), Scalar(0));
}

template <Storage Scalar>
void Space<Scalar>::fill_normal(const Random& random, const View& to) {
  const UseDevice use(device_.ordinal());
  kernels::fill_normal<Scalar>(device_.state().stream(), random.key(), out(to));
}

template <Storage Scalar>
void Space<Scalar>::poison(const View& block) {
  if (block.rows == 0) return;
  const UseDevice use(device_.ordinal());
  kernels::fill<Scalar>(device_.state().stream(), {block.data, 1, block.cols(), block.stride},
                        std::numeric_limits<Scalar>::quiet_NaN());
}

template <Storage Scalar>
bool Space<Scalar>::is_poisoned(const ConstView& block) {
  if (block.rows <= 1 || block.cols() == 0) return false;
  const UseDevice use(device_.ordinal());
  const NotFinite found = find_not_finite<Scalar>(device_.state(), block);
  return found.in_first_row && !found.in_others;
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                        \
  template class Block<Scalar>;                                                                            \
  template class Space<Scalar>;                                                                            \
  template void copy_to_device<Scalar>(const Device&, const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                       View<Scalar>);                                                      \
  template void copy_to_host<Scalar>(const Device&, const ConstView<Scalar>&, std::type_identity_t<BlockView<Scalar>>);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda
