// SPDX-License-Identifier: Apache-2.0
//
// Number, mean and scatter of rows that come a few at a time.
#pragma once

#include <itspace/block.hpp>

#include <Eigen/Core>

namespace itspace {

struct RunningMean {
  Index count = 0;
  Eigen::RowVectorXd mean;  // less an origin, which is one of the rows: a large mean takes no digits
  double scatter = 0;       // sum ||z_i - mean||^2

  // What joins rows of this mean to those before: the weight of (m_c - m)(m_c - m)', and m_c - m itself.
  double join(Index rows, const Eigen::RowVectorXd& of_rows, Eigen::RowVectorXd& apart) {
    const auto n = static_cast<double>(count), n_c = static_cast<double>(rows);
    if (count == 0) {
      mean = of_rows;
      apart.setZero(of_rows.size());
    } else {
      apart = of_rows - mean;
      mean += n_c / (n + n_c) * apart;
    }
    count += rows;
    return n * n_c / (n + n_c);
  }
};

}  // namespace itspace
