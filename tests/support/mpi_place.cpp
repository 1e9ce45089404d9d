// SPDX-License-Identifier: Apache-2.0
#include "mpi_place.hpp"

#include "mpi_ranks.hpp"

#include <itspace/mpi/align.hpp>

namespace itspace::test {
namespace {

// A target of whole blocks for spread ones. What is in the output goes along: a target that adds to it is to be found
// out here too.
template <Storage Scalar>
class GatheredTarget {
 public:
  using In = mpi::ConstView<Scalar>;
  using Out = mpi::View<Scalar>;

  explicit GatheredTarget(TargetRef<Scalar> target) : target_(target) {}

  const mpi::Communicator& ranks() const { return all_ranks(); }
  Index dim() const { return target_.dim(); }
  double trace() const { return target_.trace(); }
  std::uint64_t version() const { return target_.version(); }
  void apply(const In& y, const Out& out) const {
    through(y, out, [&](const auto& in, BlockView<Scalar> to) { target_.apply(in, to); });
  }

 protected:
  template <class Product>
  void through(const In& in, const Out& out, Product product) const {
    Block<Scalar> whole = mpi::gather<Scalar>(ranks(), out);
    product(mpi::gather<Scalar>(ranks(), in), whole);
    out.local() = whole.middleRows(out.first, out.local_rows);
  }
  TargetRef<Scalar> target_;
};

template <Storage Scalar>
class GatheredFactoredTarget : public GatheredTarget<Scalar> {
 public:
  using typename GatheredTarget<Scalar>::In;
  using typename GatheredTarget<Scalar>::Out;
  using GatheredTarget<Scalar>::GatheredTarget;

  Index factor_cols() const { return this->target_.factor_cols(); }
  void apply_factor_transposed(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor_transposed(x, to); });
  }
  void apply_factor(const In& in, const Out& out) const {
    this->through(in, out, [&](const auto& x, BlockView<Scalar> to) { this->target_.apply_factor(x, to); });
  }
};

template <Storage Scalar, class Run>
auto gathering(TargetRef<Scalar> target, Run run) {
  if (target.has_factor()) return run(GatheredFactoredTarget<Scalar>(target));
  return run(GatheredTarget<Scalar>(target));
}

template <Storage Scalar>
mpi::OnStep<Scalar> with_all_rows(const OnStep<Scalar>& on_step) {
  if (!on_step) return {};
  return [on_step](const Step& step, const mpi::ConstView<Scalar>& y) {
    return on_step(step, mpi::gather<Scalar>(all_ranks(), y));
  };
}

}  // namespace

template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& start,
                            const AlignOptions& options, const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return gathering<Scalar>(target, [&](const auto& there) {
    return mpi::gathered<Scalar>(all_ranks(), mpi::align<Scalar>(there, mpi::spread<Scalar>(all_ranks(), start),
                                                                 options, with_all_rows<Scalar>(on_step)));
  });
}

template <Storage Scalar>
Result<Scalar> align_on_mpi(TargetRef<Scalar> target, Index rank, const AlignOptions& options,
                            const std::type_identity_t<OnStep<Scalar>>& on_step) {
  return gathering<Scalar>(target, [&](const auto& there) {
    return mpi::gathered<Scalar>(all_ranks(), mpi::align<Scalar>(there, rank, options, with_all_rows<Scalar>(on_step)));
  });
}

template <Storage Scalar>
Evaluation<Scalar> evaluate_on_mpi(TargetRef<Scalar> target, const std::type_identity_t<ConstBlockView<Scalar>>& factor,
                                   Route route) {
  return gathering<Scalar>(target, [&](const auto& there) {
    const auto at = mpi::evaluate<Scalar>(there, mpi::spread<Scalar>(all_ranks(), factor), route);
    Evaluation<Scalar> out;
    out.certificate = at.certificate;
    out.target_trace = at.target_trace;
    out.status = at.status;
    out.reason = at.reason;
    if (!failed(at.status)) out.image = mpi::gather<Scalar>(all_ranks(), at.image);
    return out;
  });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                    \
  template Result<Scalar> align_on_mpi<Scalar>(TargetRef<Scalar>, const std::type_identity_t<ConstBlockView<Scalar>>&, \
                                               const AlignOptions&, const std::type_identity_t<OnStep<Scalar>>&);      \
  template Result<Scalar> align_on_mpi<Scalar>(TargetRef<Scalar>, Index, const AlignOptions&,                          \
                                               const std::type_identity_t<OnStep<Scalar>>&);                           \
  template Evaluation<Scalar> evaluate_on_mpi<Scalar>(TargetRef<Scalar>,                                               \
                                                      const std::type_identity_t<ConstBlockView<Scalar>>&, Route);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::test
