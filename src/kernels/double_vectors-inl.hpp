// SPDX-License-Identifier: Apache-2.0
//
// Vectors of double, loaded from and stored to blocks of either type, for one instruction set; included anew for each
// (Highway's manner: no include guard, but one for each target).
#if defined(ITSPACE_KERNELS_DOUBLE_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ITSPACE_KERNELS_DOUBLE_VECTORS_INL
#undef ITSPACE_KERNELS_DOUBLE_VECTORS_INL
#else
#define ITSPACE_KERNELS_DOUBLE_VECTORS_INL
#endif

#include <itspace/block.hpp>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace itspace::kernels {
namespace HWY_NAMESPACE {
namespace {  // the other kernels are in this namespace too

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;

constexpr Index lanes = static_cast<Index>(HWY_LANES(double));

HWY_INLINE Vector load(const double* from) {
  return hn::LoadU(Tag(), from);
}
HWY_INLINE Vector load(const float* from) {
  return hn::PromoteTo(Tag(), hn::LoadU(hn::Rebind<float, Tag>(), from));
}
HWY_INLINE void store(Vector value, double* to) {
  hn::StoreU(value, Tag(), to);
}
HWY_INLINE void store(Vector value, float* to) {
  const hn::Rebind<float, Tag> tag;
  hn::StoreU(hn::DemoteTo(tag, value), tag, to);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace itspace::kernels
HWY_AFTER_NAMESPACE();

#endif
