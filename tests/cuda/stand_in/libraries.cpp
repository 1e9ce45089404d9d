// SPDX-License-Identifier: Apache-2.0
//
// What src/cuda calls of cuBLAS and cuSOLVER, on the memory of the host and as NVIDIA's manuals have it: columns one
// after the other, at `stride`. A stride that is too small for the matrix is status 7, an invalid value.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>

namespace {
constexpr int success = 0, invalid_value = 7, upper = 1;
char handle;
}  // namespace

extern "C" {

int cublasCreate_v2(void** made) {
  *made = &handle;
  return success;
}
int cublasDestroy_v2(void*) {
  return success;
}
int cublasSetStream_v2(void*, cudaStream_t) {
  return success;
}
// C = alpha op(A) op(B) + beta C, op(A) m x k, op(B) k x n; C is not read where beta is 0.
int cublasDgemm_v2(void*, int op_a, int op_b, int m, int n, int k, const double* alpha, const double* a, int a_stride,
                   const double* b, int b_stride, const double* beta, double* c, int c_stride) {
  if (a_stride < (op_a != 0 ? k : m) || b_stride < (op_b != 0 ? n : k) || c_stride < m) return invalid_value;
  const auto entry = [](const double* of, int stride, int op, int i, int j) {
    const auto row = static_cast<std::size_t>(op != 0 ? j : i), col = static_cast<std::size_t>(op != 0 ? i : j);
    return of[col * static_cast<std::size_t>(stride) + row];
  };
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += entry(a, a_stride, op_a, i, l) * entry(b, b_stride, op_b, l, j);
      double& to = c[static_cast<std::size_t>(j) * static_cast<std::size_t>(c_stride) + static_cast<std::size_t>(i)];
      to = *alpha * sum + (*beta != 0 ? *beta * to : 0);
    }
  return success;
}
int cublasDdot_v2(void*, int count, const double* x, int x_step, const double* y, int y_step, double* sum) {
  *sum = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) *sum += x[i * x_step] * y[i * y_step];
  return success;
}

int cusolverDnCreate(void** made) {
  *made = &handle;
  return success;
}
int cusolverDnDestroy(void*) {
  return success;
}
int cusolverDnSetStream(void*, cudaStream_t) {
  return success;
}
int cusolverDnDpotrf_bufferSize(void*, int, int n, double*, int stride, int* size) {
  *size = 3 * n;
  return stride < n ? invalid_value : success;
}
// A = U'U; the other triangle is not touched. info: 0, or the order of the minor that is not definite.
int cusolverDnDpotrf(void*, int triangle, int n, double* a, int stride, double* work, int size, int* info) {
  if (triangle != upper || stride < n || size < 3 * n) return invalid_value;
  for (int i = 0; i < size; ++i) work[i] = std::nan("");
  const auto entry = [&](int i, int j) -> double& {
    return a[static_cast<std::size_t>(j) * static_cast<std::size_t>(stride) + static_cast<std::size_t>(i)];
  };
  *info = 0;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i <= j; ++i) {
      double sum = entry(i, j);
      for (int k = 0; k < i; ++k) sum -= entry(k, i) * entry(k, j);
      if (i < j) {
        entry(i, j) = sum / entry(i, i);
      } else if (!(sum > 0)) {
        *info = j + 1;
        return success;
      } else {
        entry(j, j) = std::sqrt(sum);
      }
    }
  }
  return success;
}

}  // extern "C"
