// SPDX-License-Identifier: Apache-2.0
//
// The targets of the library under the contract of every target.
#include "contract_suite.hpp"

#include "held_rows.hpp"

#include <itspace/streamed.hpp>

namespace itspace::test {
namespace {

// T is the type of the blocks, D that of the data: float under double is mixed precision.
template <class T, class D>
struct Dense {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Block<D> sigma = make_problem<D>({.dim = dim, .rank = 1, .seed = 1}).sigma;
    const RealMatrix exact = real(sigma);
    return made<Scalar>(DenseTarget<Scalar, D>(std::move(sigma)), exact);
  }
};

// The raw-memory constructor, with a stride.
template <class T, class D>
struct StridedDense {
  using Scalar = T;
  struct Holder {
    Block<D> memory;
    DenseTarget<Scalar, D> target;
    explicit Holder(const Block<D>& sigma)
        : memory(padded(sigma)), target(borrow(memory.data(), sigma.rows(), sigma.rows(), memory.cols())) {}
    static Block<D> padded(const Block<D>& sigma) {
      Block<D> memory = Block<D>::Constant(sigma.rows(), sigma.cols() + 3, D(1e30));
      memory.leftCols(sigma.cols()) = sigma;
      return memory;
    }
  };
  static Made<Scalar> make(Index dim) {
    const Block<D> sigma = make_problem<D>({.dim = dim, .rank = 1, .seed = 2}).sigma;
    const auto held = std::make_shared<const Holder>(sigma);
    return {held, TargetRef<Scalar>(held->target), real(sigma)};
  }
};

template <class T, class D, int mean_size, bool weighted, bool wide_set>
struct Features {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(3);
    const Index samples = wide_set ? std::max<Index>(2, dim / 2) : 3 * dim + 5;
    Block<D> z = block<D>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean_size, draw));
    const Vector weights = weighted ? Vector(Vector::LinSpaced(samples, 0.25, 2)) : Vector();
    const RealMatrix sigma = square(centred_factor_of(wide(z), weights));
    if constexpr (weighted) return made<Scalar>(FeaturesTarget<Scalar, D>(std::move(z), weights), sigma);
    return made<Scalar>(FeaturesTarget<Scalar, D>(std::move(z)), sigma);
  }
};
template <class T, class D>
using PlainFeatures = Features<T, D, 0, false, false>;
template <class T, class D>
using FewFeatures = Features<T, D, 3, false, true>;
template <class T, class D>
using WeightedFeatures = Features<T, D, 3, true, false>;
template <class T, class D>
using LargeMeanFeatures = Features<T, D, 1000, false, false>;
template <class T, class D>
using WeightedLargeMeanFeatures = Features<T, D, 1000, true, true>;

// The same rows, streamed: in many small chunks, the last one not full, or few large ones; or read anywhere, with
// memory for each thread.
template <class T, class D, int mean_size, int chunk_rows, class Rows = HeldRows<D>>
struct Streamed {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(3);
    const Index samples = 3 * dim + 37;
    const Block<D> z = block<D>(features_with(samples, eigenvalues_of(Spectrum::power_law, dim), mean_size, draw));
    const RealMatrix sigma = square(centred_factor_of(wide(z)));
    using Target = StreamedFeatures<Scalar, D>;
    return made<Scalar>(Target(std::make_shared<Rows>(z), Target::least_memory(dim) * chunk_rows / 8), sigma);
  }
};
template <class T, class D>
using SmallChunks = Streamed<T, D, 3, 8>;
template <class T, class D>
using LargeMeanChunks = Streamed<T, D, 10000, 16>;
template <class T, class D>
using ReadAnywhere = Streamed<T, D, 10000, 1 << 20, RowsAnywhere<D>>;

template <class T, class D, bool scalar_diagonal>
struct LowRank {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(4);
    const Index k = std::max<Index>(1, dim / 3);
    Block<D> u = block<D>(draw.gaussian(dim, k));  // not orthonormal
    Vector lambda = eigenvalues_of(Spectrum::power_law, k);
    lambda(k - 1) = k > 1 ? 0 : 1;  // a zero weight is allowed
    const RealMatrix low = real(u) * real(lambda).col(0).asDiagonal() * real(u).transpose();
    if constexpr (scalar_diagonal) {
      return made<Scalar>(LowRankDiagonalTarget<Scalar, D>(std::move(u), lambda, 0.5),
                          low + 0.5L * RealMatrix::Identity(dim, dim));
    } else {
      Vector diagonal = Vector::LinSpaced(dim, 0, 1);
      const RealMatrix sigma = low + RealMatrix(real(diagonal).col(0).asDiagonal());
      return made<Scalar>(LowRankDiagonalTarget<Scalar, D>(std::move(u), lambda, diagonal), sigma);
    }
  }
};
template <class T, class D>
using LowRankScalar = LowRank<T, D, true>;
template <class T, class D>
using LowRankVector = LowRank<T, D, false>;

template <class T, class D, bool wide_factor>
struct Factored {
  using Scalar = T;
  static Made<Scalar> make(Index dim) {
    Draw draw(5);
    Block<D> factor = block<D>(draw.gaussian(dim, wide_factor ? 2 * dim + 1 : std::max<Index>(1, dim / 2)));
    const RealMatrix sigma = square(real(factor));
    return made<Scalar>(FactorTarget<Scalar, D>(std::move(factor)), sigma);
  }
};
template <class T, class D>
using TallFactor = Factored<T, D, false>;
template <class T, class D>
using WideFactor = Factored<T, D, true>;

// Sigma + delta I over any of them.
template <class Base>
struct Shifted {
  using Scalar = typename Base::Scalar;
  static Made<Scalar> make(Index dim) {
    const Made<Scalar> base = Base::make(dim);
    const auto shifted = std::make_shared<const ShiftedTarget<Scalar>>(base.ref, 0.25);
    const auto both = std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
        base.keep_alive, shifted);
    return {both, TargetRef<Scalar>(*shifted), base.sigma + 0.25L * RealMatrix::Identity(dim, dim), base.rounding};
  }
};

// A target of the user's own, as in target.hpp.
struct Diagonal {
  Eigen::VectorXd entries;
  Index dim() const { return entries.size(); }
  double trace() const { return entries.sum(); }
  void apply(const ConstBlockView<double>& y, BlockView<double> out) const { out = entries.asDiagonal() * y; }
};
struct OwnOperator {
  using Scalar = double;
  static Made<double> make(Index dim) {
    const Vector lambda = eigenvalues_of(Spectrum::graded, dim);
    return made<double>(Diagonal{lambda}, real(Matrix(lambda.asDiagonal())));
  }
};

template <class T, class D = T>
using Makers =
    ::testing::Types<Dense<T, D>, StridedDense<T, D>, PlainFeatures<T, D>, FewFeatures<T, D>, WeightedFeatures<T, D>,
                     LargeMeanFeatures<T, D>, WeightedLargeMeanFeatures<T, D>, SmallChunks<T, D>, LargeMeanChunks<T, D>,
                     ReadAnywhere<T, D>, LowRankScalar<T, D>, LowRankVector<T, D>, TallFactor<T, D>, WideFactor<T, D>,
                     Shifted<Dense<T, D>>, Shifted<PlainFeatures<T, D>>, Shifted<LargeMeanFeatures<T, D>>,
                     Shifted<LowRankVector<T, D>>, Shifted<TallFactor<T, D>>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Float, Contract, Makers<float>);
INSTANTIATE_TYPED_TEST_SUITE_P(Double, Contract, Makers<double>);
using MixedMakers = Makers<double, float>;
INSTANTIATE_TYPED_TEST_SUITE_P(Mixed, Contract, MixedMakers);
INSTANTIATE_TYPED_TEST_SUITE_P(Own, Contract, ::testing::Types<OwnOperator>);

}  // namespace
}  // namespace itspace::test
