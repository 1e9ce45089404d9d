// SPDX-License-Identifier: Apache-2.0
//
// What only devices of compute capability 9 can launch, as it answers on others: the copy engine and clusters have no
// stand-in.
#include "cuda/fused.hpp"
#include "cuda/kernels.hpp"

namespace itspace::cuda::kernels {

template <class T>
Index dense_product_scratch(Index) {
  return 1;
}
template <class T>
bool dense_product(cudaStream_t, const In<T>&, const In<T>&, const Out<T>&, T*) {
  return false;
}
template <class T>
std::size_t features_product_scratch(Index, Index) {
  return 0;
}
template <class T>
bool features_product(cudaStream_t, const In<T>&, const FeaturesTerms<T>&, const In<T>&, const Out<T>&,
                      unsigned char*) {
  return false;
}
template <class T>
FusedPlan plan_fused(int, int, int) {
  return {};
}
template <class T>
FusedPlan plan_fused_features(int, Index, int, int) {
  return {};
}
template <class T>
bool launch_fused(cudaStream_t, const FusedJob<T>&, unsigned char*, double*) {
  return false;
}
template <class T>
bool launch_fused_features(cudaStream_t, const FusedJob<T>&, const FeaturesTerms<T>&, unsigned char*, double*) {
  return false;
}
std::vector<FusedRow> read_fused(const double*, int) {
  return {};
}

#define ITSPACE_INSTANTIATE(T)                                                                                        \
  template Index dense_product_scratch<T>(Index);                                                                     \
  template bool dense_product<T>(cudaStream_t, const In<T>&, const In<T>&, const Out<T>&, T*);                        \
  template std::size_t features_product_scratch<T>(Index, Index);                                                     \
  template bool features_product<T>(cudaStream_t, const In<T>&, const FeaturesTerms<T>&, const In<T>&, const Out<T>&, \
                                    unsigned char*);                                                                  \
  template FusedPlan plan_fused<T>(int, int, int);                                                                    \
  template FusedPlan plan_fused_features<T>(int, Index, int, int);                                                    \
  template bool launch_fused<T>(cudaStream_t, const FusedJob<T>&, unsigned char*, double*);                           \
  template bool launch_fused_features<T>(cudaStream_t, const FusedJob<T>&, const FeaturesTerms<T>&, unsigned char*,   \
                                         double*);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
