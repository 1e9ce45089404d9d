// SPDX-License-Identifier: Apache-2.0
#include "cuda_place.hpp"

#include <itspace/cuda/align.hpp>

#include <cstdio>
#include <cstdlib>

namespace itspace::test {
namespace {

const cuda::Device& device() {
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    std::fflush(stdout);
    std::_Exit(skipped_exit_code);
  }
  static const cuda::Device first(0);
  return first;
}

// A host's target for blocks on the device. What is in the output goes along: a target that adds to it is to be found
// out here too.
template <Storage Scalar>
class FetchedTarget {
 public:
  using In = cuda::ConstView<Scalar>;
  using Out = cuda::View<Scalar>;

  explicit FetchedTarget(TargetRef<Scalar> target) : target_(target) {}

  const cuda::Device& device() const { return test::device(); }
  Index dim() const { return target_.dim(); }
  double trace() const { return target_.trace(); }
  std::uint64_t version() const { return target_.version(); }
  void apply(const In& y, const Out& out) const {
    through(y, out, [&](const auto& in, BlockView<Scalar> to) { target_.apply(in, to); });
  }

 protected:
  template <class Product>
  void through(const In& in, const Out& out, Product product) const {
    Block<Scalar> whole = cuda::to_host<Scalar>(device(), out);
    product(cuda::to_host<Scalar>(device(), in), whole);
    cuda::copy_to_device<Scalar>(device(), whole, out);
  }
  TargetRef<Scalar> target_;
};

template <Storage Scalar>
class FetchedFactoredTarget : public FetchedTarget<Scalar> {
 public:
  using typename FetchedTarget<Scalar>::In;
  using typename FetchedTarget<Scalar>::Out;
  using FetchedTarget<Scalar>::FetchedTarget;

  Index factor_cols() const { return this->target_.factor_cols(); }
  void apply_factor_transposed(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor_transposed(x, to); });
  }
  void apply_factor(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor(x, to); });
  }
};

template <Storage Scalar, class Run>
auto fetched(TargetRef<Scalar> target, Run run) {
  if (target.has_factor()) return run(FetchedFactoredTarget<Scalar>(target));
  return run(FetchedTarget<Scalar>(target));
}

template <Storage Scalar>
cuda::OnStep<Scalar> with_host_rows(const OnStep<Scalar>& on_step) {
  if (!on_step) return {};
  return [on_step](const Step& step, const cuda::ConstView<Scalar>& y) {
    return on_step(step, cuda::to_host<Scalar>(device(), y));
  };
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align_on_cuda(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                             const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return fetched<Scalar>(target, [&](const auto& there) {
    return cuda::on_host<Scalar>(device(), cuda::align<Scalar>(there, start, options, with_host_rows<Scalar>(on_step)));
  });
}

template <Storage Scalar>
Result<Scalar> align_on_cuda(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                             const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return fetched<Scalar>(target, [&](const auto& there) {
    return cuda::on_host<Scalar>(device(), cuda::align<Scalar>(there, rank, options, with_host_rows<Scalar>(on_step)));
  });
}

template <Storage Scalar>
Evaluation<Scalar> evaluate_on_cuda(TargetRef<Scalar> target,
                                    const std::type_identity_t<ConstBlockView<Scalar>>& factor, Route route) {
  return fetched<Scalar>(target, [&](const auto& there) {
    const cuda::Block<Scalar> on_device = cuda::to_device<Scalar>(device(), factor);
    const auto at = cuda::evaluate<Scalar>(there, on_device, route);
    Evaluation<Scalar> out;
    out.certificate = at.certificate;
    out.target_trace = at.target_trace;
    out.status = at.status;
    out.reason = at.reason;
    if (!failed(at.status)) out.image = cuda::to_host<Scalar>(device(), at.image);
    return out;
  });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                \
  template Result<Scalar> align_on_cuda<Scalar>(TargetRef<Scalar>,                                                 \
                                                const std::type_identity_t<ConstBlockView<Scalar>>&,               \
                                                const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&); \
  template Result<Scalar> align_on_cuda<Scalar>(TargetRef<Scalar>, Index, const AlignOptions&,                     \
                                                const std::type_identity_t<OnStep<Scalar>>&);                      \
  template Evaluation<Scalar> evaluate_on_cuda<Scalar>(TargetRef<Scalar>,                                          \
                                                       const std::type_identity_t<ConstBlockView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::test
