// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "own_eigen: %s\n", what);
  std::exit(EXIT_FAILURE);
}

template <class Matrix>
void own_products(const char* what) {
  using Scalar = typename Matrix::Scalar;
  const Matrix a = Matrix::Random(300, 200), g = a.transpose() * a, lifted = a * g;
  Scalar worst = 0;
  for (Eigen::Index i = 0; i < 200; i += 7)
    for (Eigen::Index j = 0; j < 200; j += 11) {
      Scalar sum = 0;
      for (Eigen::Index k = 0; k < 300; ++k) sum += a(k, i) * a(k, j);
      worst = std::max(worst, std::abs(sum - g(i, j)));
    }
  expect(worst < Scalar(1e5) * Eigen::NumTraits<Scalar>::epsilon(), what);
  const Eigen::LLT<Eigen::MatrixXd> llt(g.template cast<double>() + Eigen::MatrixXd::Identity(200, 200));
  expect(llt.info() == Eigen::Success && lifted.allFinite(), what);
}

inline void own_products_of_all_kinds() {
  own_products<Eigen::MatrixXd>("a product of double, by columns");
  own_products<Eigen::MatrixXf>("a product of float, by columns");
  own_products<Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>("a product of double, by rows");
}
