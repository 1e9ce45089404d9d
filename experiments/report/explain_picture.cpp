// SPDX-License-Identifier: Apache-2.0
#include "explain_picture.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <itspace/random.hpp>

#include "baselines/sinkhorn.hpp"

namespace itspace::experiments::report {
namespace {

constexpr Index points_each = 24;
constexpr const char* source_colour = "#0072B2";
constexpr const char* target_colour = "#D55E00";

Eigen::Matrix2d root(const Eigen::Matrix2d& matrix) {
  return Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d>(matrix).operatorSqrt();
}

Eigen::MatrixX2d gaussian_points(const Eigen::Vector2d& mean, const Eigen::Matrix2d& covariance, std::uint64_t stream) {
  Block<double> normal(points_each, 2);
  Random(2, stream).fill_normal<double>(normal);
  const Eigen::Matrix2d lower = covariance.llt().matrixL();
  return (normal * lower.transpose()).rowwise() + mean.transpose();
}

// Points of the ellipse at 1.7 standard deviations.
std::vector<std::pair<double, double>> ellipse(const Eigen::Vector2d& mean, const Eigen::Matrix2d& covariance) {
  constexpr int corners = 96;
  const Eigen::Matrix2d half = root(covariance);
  std::vector<std::pair<double, double>> points;
  for (int i = 0; i <= corners; ++i) {
    const double angle = 2 * std::numbers::pi * i / corners;
    const Eigen::Vector2d at = mean + 1.7 * half * Eigen::Vector2d(std::cos(angle), std::sin(angle));
    points.emplace_back(at.x(), at.y());
  }
  return points;
}

std::vector<std::pair<double, double>> as_pairs(const Eigen::MatrixX2d& points) {
  std::vector<std::pair<double, double>> pairs;
  for (Index i = 0; i < points.rows(); ++i) pairs.emplace_back(points(i, 0), points(i, 1));
  return pairs;
}

// Every pair that carries mass, in blocks $plan0, $plan1, ... of growing mass: gnuplot's SVG has one opacity per plot.
constexpr int shades = 8;
std::string plan_blocks(const TransportExample& example) {
  std::string blocks[shades];
  const double full = 1.0 / points_each;
  for (Index i = 0; i < example.plan.rows(); ++i) {
    for (Index j = 0; j < example.plan.cols(); ++j) {
      const double share = std::min(1.0, example.plan(i, j) / full);
      if (share < 0.01) continue;
      blocks[std::min(shades - 1, static_cast<int>(shades * share))] +=
          fmt::format("{} {} {} {}\n", example.source_points(i, 0), example.source_points(i, 1),
                      example.target_points(j, 0) - example.source_points(i, 0),
                      example.target_points(j, 1) - example.source_points(i, 1));
    }
  }
  std::string text;
  for (int shade = 0; shade < shades; ++shade) {
    text += fmt::format("$plan{} << END\n{}END\n", shade, blocks[shade].empty() ? "NaN NaN NaN NaN\n" : blocks[shade]);
  }
  return text;
}

// A colour of gnuplot's has its transparency in front, 00 being opaque.
std::string plan_plots() {
  std::string text;
  for (int shade = 0; shade < shades; ++shade) {
    text += fmt::format("$plan{} using 1:2:3:4 with vectors nohead lw 1.5 lc rgb '#{:02x}777777', \\\n  ", shade,
                        255 - (255 * (shade + 1)) / shades);
  }
  return text;
}

}  // namespace

TransportExample transport_example() {
  TransportExample example;
  example.source_mean << -3, 0;
  example.target_mean << 3, 0.2;
  example.source_covariance << 0.35, 0.15, 0.15, 1.0;
  example.target_covariance << 1.0, -0.55, -0.55, 0.55;
  const Eigen::Matrix2d a = root(example.source_covariance);
  // T = A^(-1/2) (A^(1/2) B A^(1/2))^(1/2) A^(-1/2)
  example.map = a.inverse() * root(a * example.target_covariance * a) * a.inverse();
  example.source_points = gaussian_points(example.source_mean, example.source_covariance, 0);
  example.target_points = gaussian_points(example.target_mean, example.target_covariance, 1);
  const Block<double> source = example.source_points, target = example.target_points;
  baselines::Sinkhorn sinkhorn(source, target, 0.003);
  sinkhorn.iterate(2000);
  example.plan = sinkhorn.plan();
  return example;
}

Eigen::Matrix2d interpolated_covariance(const TransportExample& example, double t) {
  const Eigen::Matrix2d step = (1 - t) * Eigen::Matrix2d::Identity() + t * example.map;
  return step * example.source_covariance * step.transpose();
}

Drawing transport_picture(const TransportExample& example) {
  Drawing drawing;
  drawing.width = 1120;
  drawing.height = 360;
  std::string& out = drawing.commands;
  out = "set multiplot\nset key off\nunset border\nunset tics\nset xrange [-5.6:5.6]\nset yrange [-2.7:2.7]\n";
  out += plan_blocks(example) + data_block("from", as_pairs(example.source_points)) +
         data_block("to", as_pairs(example.target_points));
  out += fmt::format(
      "set lmargin at screen 0.01\nset rmargin at screen 0.49\nset bmargin at screen 0.02\nset tmargin at screen 0.88\n"
      "set title 'Sample OT: mass moves between points' font ',15'\n"
      "plot {2}$from using 1:2 with points pt 7 ps 0.7 lc rgb '{0}', \\\n"
      "  $to using 1:2 with points pt 5 ps 0.65 lc rgb '{1}'\n",
      source_colour, target_colour, plan_plots());

  // How points of the first ellipse travel: along straight lines, x_t = m_t + ((1-t) I + t T)(x - m_0).
  std::string travel = "$travel << END\n";
  const Eigen::Matrix2d half = root(example.source_covariance);
  for (int i = 0; i < 12; ++i) {
    const double angle = 2 * std::numbers::pi * i / 12;
    const Eigen::Vector2d from = 1.7 * half * Eigen::Vector2d(std::cos(angle), std::sin(angle));
    const Eigen::Vector2d begin = example.source_mean + from, end = example.target_mean + example.map * from;
    travel += fmt::format("{} {} {} {}\n", begin.x(), begin.y(), end.x() - begin.x(), end.y() - begin.y());
  }
  out += travel + "END\n";
  std::string ellipses;
  const double times[] = {0, 0.25, 0.5, 0.75, 1};
  for (std::size_t i = 0; i < std::size(times); ++i) {
    const double t = times[i];
    const Eigen::Vector2d mean = (1 - t) * example.source_mean + t * example.target_mean;
    out += data_block(fmt::format("e{}", i), ellipse(mean, interpolated_covariance(example, t)));
    const bool end = t == 0 || t == 1;
    ellipses += fmt::format(", \\\n  $e{} using 1:2 with lines lw {} dt {} lc rgb '{}'", i, end ? 2.6 : 1.5,
                            end ? "solid" : "(8,4)",
                            t == 0   ? source_colour
                            : t == 1 ? target_colour
                                     : "#777777");
    out += fmt::format("set label {} {} at {}, -2.5 center tc rgb 'black' font ',13'\n", i + 1,
                       t == 0   ? "'t = 0'"
                       : t == 1 ? "'t = 1'"
                                : fmt::format("'{}'", t),
                       mean.x());
  }
  out +=
      "set lmargin at screen 0.51\nset rmargin at screen 0.99\nset title 'Gaussian OT: one linear map moves the "
      "covariance' font ',15'\n"
      "plot $travel using 1:2:3:4 with vectors nohead lw 1 lc rgb '#aa777777'" +
      ellipses + "\nunset multiplot\n";
  return drawing;
}

}  // namespace itspace::experiments::report
