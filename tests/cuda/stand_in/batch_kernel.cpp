// SPDX-License-Identifier: Apache-2.0
//
// The kernel of cuda/batch.hpp as a loop of the host, from the comments there and in fused.hpp: roots by a
// decomposition instead of products.
#include "cuda/batch.hpp"

#include "cuda/kernels.hpp"
#include "stand_in/runtime.hpp"

#include <Eigen/Eigenvalues>

#include <cmath>
#include <limits>

namespace itspace::cuda::kernels {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Of = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// To the numbers that T has.
template <class T>
Matrix rounded(const Matrix& values) {
  return values.cast<T>().template cast<double>();
}

bool in_range(double size) {
  return size > 1e-30 && size < 1e30;
}

// What is logged at y, and B.
template <class T>
FusedRow evaluate(const Matrix& sigma, const Matrix& y, Matrix& b) {
  const double eps = std::numeric_limits<T>::epsilon(), trace = sigma.trace();
  FusedRow row;
  row.y_squared = y.squaredNorm();
  const Matrix w = rounded<T>(sigma * y), yw = y.transpose() * w, g = 0.5 * (yw + yw.transpose());
  if (!g.allFinite() || !in_range(trace) || !in_range(row.y_squared)) return row;
  const Eigen::SelfAdjointEigenSolver<Matrix> parts(g);
  if (!(parts.eigenvalues().minCoeff() > 0)) return row;
  const Matrix m = parts.operatorInverseSqrt();
  b = rounded<T>(w * m);
  row.nuclear_norm = (m * g).trace();
  row.objective = std::max(0.0, row.y_squared + trace - 2 * row.nuclear_norm);
  row.b_squared = b.squaredNorm();
  row.difference_squared = (b - y).squaredNorm();
  row.orthogonality = (m.transpose() * g * m - Matrix::Identity(m.rows(), m.cols())).norm();
  row.asymmetry = 0.5 * (m * g - g.transpose() * m).norm();
  row.root_norm_squared = m.squaredNorm();
  row.root_trace = m.trace();
  row.doubtful_image = (b * m).squaredNorm();
  row.g_norm = parts.eigenvalues().maxCoeff();
  row.target_norm =
      std::max(std::sqrt((w.colwise().squaredNorm().array() / y.colwise().squaredNorm().array()).maxCoeff()),
               trace / std::sqrt(static_cast<double>(y.rows())));
  row.longest_squared = (y.transpose() * y).norm();
  const double doubt = 2 * eps * row.target_norm * row.longest_squared * row.root_norm_squared;
  row.certifiable = row.orthogonality < 1e-10 && doubt <= 5e-2;
  return row;
}

template <class T>
void solve(const BatchJob<T>& job, int problem, FusedRow* rows, double& trace) {
  const auto place = [&](const T* data, int cols) {
    return Eigen::Map<const Of<T>>(data, job.dim, cols).template cast<double>();
  };
  Matrix sigma = place(job.sigma + Index(problem) * job.dim * job.dim, job.dim);
  Matrix y = place(job.start + (job.is_multiplied ? 0 : Index(problem) * job.dim * job.rank), job.rank), b;
  const double limit = job.dim * double(std::numeric_limits<float>::epsilon()) * sigma.cwiseAbs().maxCoeff();
  rows[0] = {};
  trace = sigma.trace();
  if (!sigma.allFinite() || (sigma - sigma.transpose()).cwiseAbs().maxCoeff() > limit ||
      sigma.diagonal().minCoeff() < -limit)
    return;
  sigma = rounded<T>(0.5 * (sigma + sigma.transpose()));
  if (job.is_multiplied) {
    y = sigma * y;
    y = rounded<T>(y * (std::sqrt(trace) / y.norm()));
  }
  double best = std::numeric_limits<double>::infinity();
  for (int k = 0; k <= job.steps; ++k) {
    rows[k] = evaluate<T>(sigma, y, b);
    if (!rows[k].certifiable) return;
    if (rows[k].objective <= best) {
      best = rows[k].objective;
      Eigen::Map<Of<T>>(job.y + Index(problem) * job.dim * job.rank, job.dim, job.rank) = y.cast<T>();
    }
    y = rounded<T>((1 - job.alpha) * y + job.alpha * b);
  }
}

}  // namespace

template <class T>
bool takes_batch(int dim, int rank) {
  test::require_current_device();
  return dim <= 64 && rank <= most_fused_rank;
}
template <class T>
void launch_batch(cudaStream_t, const BatchJob<T>& job, const BatchLog& log) {
  test::require_current_device();
  for (int i = 0; i < job.count; ++i) solve(job, i, log.rows + Index(i) * (job.steps + 1), log.traces[i]);
}

#define ITSPACE_INSTANTIATE(T)            \
  template bool takes_batch<T>(int, int); \
  template void launch_batch<T>(cudaStream_t, const BatchJob<T>&, const BatchLog&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
