// SPDX-License-Identifier: Apache-2.0
//
// The targets of targets.hpp on a GPU: a dense symmetric matrix, the covariance of a feature set, low rank plus
// diagonal, an explicit factor, and any of them plus delta*I.
//
// The data comes from the host, and is copied; from a cuda::Block that is moved in; or from device memory that the
// caller owns (a View of a tensor), which is used where it lies: it must stay as it is, and alive, for as long as the
// target and its copies, and what writes it must be ordered before the device's stream. Sums over it (mean, trace) are
// made at construction. A target works on its Device, for one thread at a time.
#pragma once

#include <itspace/cuda/align.hpp>
#include <itspace/cuda/space.hpp>

#include <Eigen/Core>
#include <concepts>
#include <memory>
#include <utility>

namespace itspace::cuda {

// The data of a target, shared with its copies.
template <Storage Scalar>
class DeviceData {
 public:
  DeviceData(Block<Scalar>&& owned)  // NOLINT(google-explicit-constructor): the conversions are the point
      : DeviceData(std::make_shared<const Block<Scalar>>(std::move(owned))) {}
  // Memory of the caller's.
  DeviceData(const ConstView<Scalar>& borrowed) : view_(borrowed) {}  // NOLINT(google-explicit-constructor)
  DeviceData(const View<Scalar>& borrowed) : view_(borrowed) {}       // NOLINT(google-explicit-constructor)

  Index rows() const { return view_.rows; }
  Index cols() const { return view_.cols(); }
  const ConstView<Scalar>& view() const { return view_; }

 private:
  explicit DeviceData(std::shared_ptr<const Block<Scalar>> block) : keeper_(block), view_(*block) {}

  std::shared_ptr<const void> keeper_;
  ConstView<Scalar> view_;
};

// Values of another type, converted as they are copied.
template <Storage Scalar, Storage Data>
ITSPACE_API Block<Scalar> to_device_as(const Device& device, const std::type_identity_t<ConstBlockView<Data>>& from);

// Sigma given by its entries; it must be symmetric. Products read all of it.
template <Storage Scalar>
class ITSPACE_API DenseTarget {
 public:
  DenseTarget(Device device, DeviceData<Scalar> sigma);
  DenseTarget(const Device& device, const ConstBlockView<Scalar>& sigma)
      : DenseTarget(device, to_device<Scalar>(device, sigma)) {}

  const Device& device() const { return device_; }
  Index dim() const { return sigma_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;
  const ConstView<Scalar>& entries() const { return sigma_.view(); }

 private:
  Device device_;
  DeviceData<Scalar> sigma_;
  double trace_;
};

// Sigma = (1/c) sum_i w_i (z_i - mu)(z_i - mu)' of the rows z_i of an n x d feature set; c and the weights as on the
// host. A product reads Z once from memory: in one sweep (kernels::features_product) where that is possible, else a
// piece at a time that stays in the cache for its second use.
template <Storage Scalar>
class ITSPACE_API FeaturesTarget {
 public:
  FeaturesTarget(Device device, DeviceData<Scalar> features, const Eigen::VectorXd& weights = {});
  FeaturesTarget(const Device& device, const ConstBlockView<Scalar>& features, const Eigen::VectorXd& weights = {})
      : FeaturesTarget(device, to_device<Scalar>(device, features), weights) {}

  const Device& device() const { return device_; }
  Index dim() const { return features_.cols(); }
  Index samples() const { return features_.rows(); }
  const Vector& mean() const { return mean_; }
  double trace() const { return trace_; }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

  Index factor_cols() const { return features_.rows(); }
  void apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const;
  void apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const;
  CentredRows<Scalar> centred_rows() const;

 private:
  bool apply_in_one_sweep(const ConstView<Scalar>& y, const View<Scalar>& out) const;

  Device device_;
  DeviceData<Scalar> features_;
  Vector mean_;
  double trace_ = 0;
  double scale_ = 1;  // 1/c, where all rows weigh the same
  double total_ = 0;  // sum w / c
  // On the device: s = mu rounded to Scalar, delta = mu - s, powers of four for CentredRows, and with weights w_i/c and
  // its root.
  std::shared_ptr<const Block<Scalar>> shift_, column_scale_;
  std::shared_ptr<const Block<double>> shift_error_, scales_, root_scales_;
};

// Sigma = U diag(lambda) U' + diag(diagonal); U is d x k and need not be orthonormal.
template <Storage Scalar>
class ITSPACE_API LowRankDiagonalTarget {
 public:
  // @pre lambda >= 0 (k entries), diagonal >= 0 (d entries).
  LowRankDiagonalTarget(Device device, DeviceData<Scalar> u, const Eigen::VectorXd& lambda,
                        const Eigen::VectorXd& diagonal);
  LowRankDiagonalTarget(const Device& device, const ConstBlockView<Scalar>& u, const Eigen::VectorXd& lambda,
                        const Eigen::VectorXd& diagonal)
      : LowRankDiagonalTarget(device, to_device<Scalar>(device, u), lambda, diagonal) {}

  const Device& device() const { return device_; }
  Index dim() const { return u_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

 private:
  Device device_;
  DeviceData<Scalar> u_;
  double trace_;
  std::shared_ptr<const Block<double>> lambda_, diagonal_;  // on the device
};

// Sigma = T T' for an explicit d x m factor T.
template <Storage Scalar>
class ITSPACE_API FactorTarget {
 public:
  FactorTarget(Device device, DeviceData<Scalar> factor);
  FactorTarget(const Device& device, const ConstBlockView<Scalar>& factor)
      : FactorTarget(device, to_device<Scalar>(device, factor)) {}

  const Device& device() const { return device_; }
  Index dim() const { return factor_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

  Index factor_cols() const { return factor_.cols(); }
  void apply_factor_transposed(const ConstView<Scalar>& in, const View<Scalar>& out) const;
  void apply_factor(const ConstView<Scalar>& in, const View<Scalar>& out) const;

 private:
  Device device_;
  DeviceData<Scalar> factor_;
  double trace_;
};

// Sigma + delta*I of any target, which it holds a copy of.
template <Storage Scalar>
class ITSPACE_API ShiftedTarget {
 public:
  // @pre delta >= 0 and finite.
  template <Target<Scalar> T>
  ShiftedTarget(T base, double delta) : ShiftedTarget(std::make_shared<const T>(std::move(base)), delta) {}

  const Device& device() const { return device_; }
  Index dim() const { return base_.dim(); }
  double trace() const { return base_.trace() + delta_ * static_cast<double>(base_.dim()); }
  std::uint64_t version() const { return base_.version(); }
  void apply(const ConstView<Scalar>& y, const View<Scalar>& out) const;

 private:
  template <class T>
  ShiftedTarget(std::shared_ptr<const T> base, double delta)
      : keeper_(base), base_(*base), device_(base->device()), delta_(delta) {
    check_shift(delta);
  }
  static void check_shift(double delta);

  std::shared_ptr<const void> keeper_;
  TargetRef<Scalar> base_;
  Device device_;
  double delta_;
};

}  // namespace itspace::cuda
