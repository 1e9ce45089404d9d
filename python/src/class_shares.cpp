// SPDX-License-Identifier: Apache-2.0
#include <itspace/class_shares.hpp>

#include "arrays.hpp"
#include "module.hpp"

namespace itspace::python {
namespace {

template <Storage Scalar>
nb::object cluster_means_of(const Matrix<Scalar>& features, const Vector& mean, const Matrix<double>& factor,
                            std::uint64_t seed) {
  const MatrixView<Scalar> rows = view<Scalar>(features);
  const MatrixView<double> directions = view<double>(factor);
  const Eigen::VectorXd about = copy_of(mean);
  ClusterMeans found;
  {
    const nb::gil_scoped_release unlocked;
    found = cluster_means<Scalar>(rows, about, directions, seed);
  }
  return nb::make_tuple(to_numpy<double>(std::move(found.means)), to_numpy(std::move(found.noise)),
                        to_numpy(std::move(found.shares)));
}

double unexplained(const Matrix<double>& means, const Vector& noise, const Vector& source_mean,
                   const Vector& target_mean, double target_noise) {
  return unexplained_move({view<double>(means), copy_of(noise)}, copy_of(source_mean), copy_of(target_mean),
                          target_noise);
}

nb::object remixed(const Matrix<double>& means, const Vector& shares, const Vector& source_mean,
                   const Vector& target_mean) {
  const Eigen::VectorXd weights = copy_of(shares);
  return to_numpy(remixed_mean({view<double>(means), Eigen::VectorXd::Zero(weights.size()), weights},
                               copy_of(source_mean), copy_of(target_mean)));
}

}  // namespace

void add_class_shares(nb::module_& module) {
  module.def("cluster_means", &cluster_means_of<float>, nb::arg("features").noconvert(), nb::arg("mean"),
             nb::arg("factor"), nb::arg("seed"));
  module.def("cluster_means", &cluster_means_of<double>, nb::arg("features").noconvert(), nb::arg("mean"),
             nb::arg("factor"), nb::arg("seed"));
  module.def("unexplained_move", &unexplained, nb::arg("means"), nb::arg("noise"), nb::arg("source_mean"),
             nb::arg("target_mean"), nb::arg("target_noise"));
  module.def("remixed_mean", &remixed, nb::arg("means"), nb::arg("shares"), nb::arg("source_mean"),
             nb::arg("target_mean"));
}

}  // namespace itspace::python
