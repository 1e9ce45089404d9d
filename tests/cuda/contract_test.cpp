// SPDX-License-Identifier: Apache-2.0
//
// The targets on a device under the contract of every target. They are seen through an adapter that brings blocks to
// the device, with strides, and back.
#include "contract_suite.hpp"
#include "on_device.hpp"

#include <algorithm>
#include <utility>

namespace itspace::test {
namespace {

template <class T>
concept cuda_factored = requires(const T& target) {
  target.factor_cols();
};

template <Storage ScalarType, class DeviceTarget>
class Brought {
 public:
  using Scalar = ScalarType;
  explicit Brought(DeviceTarget target) : target_(std::move(target)) {}

  Index dim() const { return target_.dim(); }
  double trace() const { return target_.trace(); }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const {
    through(y, out, [&](const auto& in, const auto& to) { target_.apply(in, to); });
  }
  Index factor_cols() const requires cuda_factored<DeviceTarget> { return target_.factor_cols(); }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in,
                               BlockView<Scalar> out) const requires cuda_factored<DeviceTarget> {
    through(in, out, [&](const auto& x, const auto& to) { target_.apply_factor_transposed(x, to); });
  }
  void apply_factor(const ConstBlockView<Scalar>& in,
                    BlockView<Scalar> out) const requires cuda_factored<DeviceTarget> {
    through(in, out, [&](const auto& x, const auto& to) { target_.apply_factor(x, to); });
  }

 private:
  template <class Product>
  static void through(const ConstBlockView<Scalar>& in, BlockView<Scalar> out, Product product) {
    Strided<Scalar> from{Block<Scalar>(in)}, to{Block<Scalar>(out)};
    product(cuda::ConstView<Scalar>(from.view()), to.view());
    out = to.values();
    EXPECT_TRUE(to.is_clean());
  }
  DeviceTarget target_;
};

template <Storage Scalar, class DeviceTarget>
Made<Scalar> brought(DeviceTarget target, RealMatrix sigma) {
  return made<Scalar>(Brought<Scalar, DeviceTarget>(std::move(target)), std::move(sigma));
}

struct OnDevice {
  static std::string why_not_here() { return cuda::why_no_device(); }
};

template <class T>
struct Dense : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    const Block<T> sigma = make_problem<T>({.dim = dim, .rank = 1, .seed = 1}).sigma;
    return brought<T>(cuda::DenseTarget<T>(device(), sigma), real(sigma));
  }
};

// Memory of the caller's, with a stride.
template <class T>
struct BorrowedDense : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    const Block<T> sigma = make_problem<T>({.dim = dim, .rank = 1, .seed = 2}).sigma;
    const auto memory = std::make_shared<Strided<T>>(sigma);
    Made<T> it = brought<T>(cuda::DenseTarget<T>(device(), memory->view()), real(sigma));
    it.keep_alive = std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        it.keep_alive, memory);
    return it;
  }
};

template <class T, int mean_size, bool weighted, bool wide_set>
struct Features : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    Draw draw(3);
    const Index samples = wide_set ? std::max<Index>(2, dim / 2) : 3 * dim + 5;
    const Block<T> z = block<T>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean_size, draw));
    const Vector weights = weighted ? Vector(Vector::LinSpaced(samples, 0.25, 2)) : Vector();
    return brought<T>(cuda::FeaturesTarget<T>(device(), z, weights), square(centred_factor_of(wide(z), weights)));
  }
};

template <class T>
struct LowRank : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    Draw draw(4);
    const Index k = std::max<Index>(1, dim / 3);
    const Block<T> u = block<T>(draw.gaussian(dim, k));
    Vector lambda = eigenvalues_of(Spectrum::power_law, k);
    lambda(k - 1) = k > 1 ? 0 : 1;
    const Vector diagonal = Vector::LinSpaced(dim, 0, 1);
    return brought<T>(cuda::LowRankDiagonalTarget<T>(device(), u, lambda, diagonal),
                      real(u) * real(lambda).col(0).asDiagonal() * real(u).transpose() +
                          RealMatrix(real(diagonal).col(0).asDiagonal()));
  }
};

template <class T, bool wide_factor>
struct Factored : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    Draw draw(5);
    const Block<T> factor = block<T>(draw.gaussian(dim, wide_factor ? 2 * dim + 1 : std::max<Index>(1, dim / 2)));
    return brought<T>(cuda::FactorTarget<T>(device(), factor), square(real(factor)));
  }
};

template <class T>
struct Shifted : OnDevice {
  using Scalar = T;
  static Made<T> make(Index dim) {
    const Block<T> sigma = make_problem<T>({.dim = dim, .rank = 1, .seed = 1}).sigma;
    return brought<T>(cuda::ShiftedTarget<T>(cuda::DenseTarget<T>(device(), sigma), 0.25),
                      real(sigma) + 0.25L * RealMatrix::Identity(dim, dim));
  }
};

template <class T>
using Makers =
    ::testing::Types<Dense<T>, BorrowedDense<T>, Features<T, 0, false, false>, Features<T, 3, false, true>,
                     Features<T, 3, true, false>, Features<T, 1000, false, false>, Features<T, 1000, true, true>,
                     LowRank<T>, Factored<T, false>, Factored<T, true>, Shifted<T>>;
INSTANTIATE_TYPED_TEST_SUITE_P(CudaFloat, Contract, Makers<float>);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaDouble, Contract, Makers<double>);

}  // namespace
}  // namespace itspace::test
