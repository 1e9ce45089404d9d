// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>

namespace itspace::python {
namespace {

// The holder goes when the last array that looks into it goes.
template <class Value, class Holder>
nb::object hand_over(std::unique_ptr<Holder> holder, Value* data, std::initializer_list<size_t> shape) {
  nb::capsule owner(holder.get(), [](void* held) noexcept { delete static_cast<Holder*>(held); });
  holder.release();
  return nb::cast(nb::ndarray<nb::numpy, Value>(data, shape, owner));
}

}  // namespace

template <class Scalar>
nb::object to_numpy(Block<Scalar> block) {
  auto holder = std::make_unique<Block<Scalar>>(std::move(block));
  Scalar* data = holder->data();
  const auto rows = static_cast<size_t>(holder->rows()), cols = static_cast<size_t>(holder->cols());
  return hand_over(std::move(holder), data, {rows, cols});
}
template nb::object to_numpy<float>(Block<float>);
template nb::object to_numpy<double>(Block<double>);

nb::object to_numpy(Eigen::VectorXd values) {
  auto holder = std::make_unique<Eigen::VectorXd>(std::move(values));
  double* data = holder->data();
  const auto size = static_cast<size_t>(holder->size());
  return hand_over(std::move(holder), data, {size});
}

template <class Value>
nb::object to_numpy(std::vector<Value> values) {
  auto holder = std::make_unique<std::vector<Value>>(std::move(values));
  Value* data = holder->data();
  const size_t size = holder->size();
  return hand_over(std::move(holder), data, {size});
}
template nb::object to_numpy<double>(std::vector<double>);
template nb::object to_numpy<std::int64_t>(std::vector<std::int64_t>);
template nb::object to_numpy<std::uint8_t>(std::vector<std::uint8_t>);

}  // namespace itspace::python
