// SPDX-License-Identifier: Apache-2.0
//
// The r x r work of a step, part by part: what is left of it however fast the products are.
//
//   itspace_small_work [MOST_COLUMNS] [THREADS]     (default 256, on one)
#include "core/basis_impl.hpp"
#include "core/evaluated_point.hpp"
#include "core/objection.hpp"
#include "core/subspace_impl.hpp"

#include <itspace/itspace.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace {

using namespace itspace;
using Clock = std::chrono::steady_clock;
using Scalar = float;
using View = ConstBlockView<Scalar>;

constexpr double eps = std::numeric_limits<Scalar>::epsilon();

template <class Work>
double median_microseconds(const Work& work) {
  constexpr std::size_t fewest = 15, most = 2000;
  constexpr double seconds = 0.1;
  std::vector<double> times;
  for (const auto begin = Clock::now();
       times.size() < fewest ||
       (times.size() < most && std::chrono::duration<double>(Clock::now() - begin).count() < seconds);) {
    const auto before = Clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Eigenvalues fall like 1/i^2, as those of features do.
Block<Scalar> covariance(Index d) {
  Block<Scalar> sigma(d, d);
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j) sigma(i, j) = Scalar(std::exp(-std::abs(double(i - j)) / 40));
  return sigma;
}

// At an iterate after five steps.
void paper_step(Index d, Index r) {
  const Block<Scalar> sigma = covariance(d);
  const DenseTarget<Scalar> target(borrow(sigma));
  const Block<Scalar> y = align<Scalar>(target, r, {.steps = 5}).factor;
  HostSpace<Scalar> space;
  Block<Scalar> q(d, r), w(d, r);
  EvaluatedPoint point;
  make_basis(space, View(y), BlockView<Scalar>(q), point.basis);
  target.apply(q, w);
  const GramRequest<View> requests[] = {{q, w, point.data.theta}, {w, point.data.w_gram}};
  space.grams(requests);
  point.data.coordinates = point.basis.r;
  point.data.target_norm = std::sqrt(point.data.w_gram.diagonal().maxCoeff());
  point.note_trace(target.trace(), d);
  const NullRule rule = point.null_rule(Route::qr, 2 * eps, eps, d);
  bool fine = true;
  const double basis = median_microseconds([&] { fine &= make_basis_stage(point.basis.y_gram).trusted; });
  const double objection = median_microseconds(
      [&] { fine &= objection_to(point.data, target.trace(), d, storage_rounding<Scalar>(d)).empty(); });
  const double certificate = median_microseconds([&] {
    make_certificate(point.data.theta, point.data.coordinates, point.basis, rule, 0, point.certificate, true);
  });
  const double doubt = median_microseconds([&] {
    point.doubt = promise_doubt(image_lengths(point.data.w_gram, point.certificate), point.basis, point.certificate);
  });
  std::printf("| paper, r = %ld | %.1f | basis %.1f, objection %.1f, certificate %.1f%s, doubt %.1f%s |\n", long(r),
              basis + objection + certificate + doubt, basis, objection, certificate,
              point.certificate.by_products ? "" : " (decomposed)", doubt, fine ? "" : " (NOT FINE)");
  std::fflush(stdout);
}

// On [V, Q, P] after two power steps of V, P random.
void ritz_step(Index d, Index r) {
  const Index width = r + 8;
  const Block<Scalar> sigma = covariance(d);
  const DenseTarget<Scalar> target(borrow(sigma));
  HostSpace<Scalar> space;
  Block<Scalar> s(d, 3 * width), sigma_s(d, 3 * width);
  Random(7).fill_normal<Scalar>(s);
  const auto part = [&](Block<Scalar>& block, Index first, Index count) { return space.columns(block, first, count); };
  const auto v = part(s, 0, width), q = part(s, width, width), p = part(s, 2 * width, width);
  const auto sigma_v = part(sigma_s, 0, width);
  for (int power = 0; power < 2; ++power) {
    target.apply(View(v), sigma_v);
    space.copy(sigma_v, v);
    orthonormalise(space, v, 1e-12, Drop::relative);
  }
  target.apply(View(v), sigma_v);
  space.copy(sigma_v, q);
  project_out(space, View(v), q);
  const Small rest_gram = gram(space, View(q), View(q)), along = gram(space, View(v), View(q));
  orthonormalise(space, q, 1e-5, Drop::relative);
  project_out(space, View(v), q);
  orthonormalise(space, q, 0.25, Drop::absolute);
  for (int round = 0; round < 2; ++round) {
    project_out(space, View(part(s, 0, 2 * width)), p);
    orthonormalise(space, p, 1e-2, Drop::absolute);
  }
  target.apply(View(s), BlockView<Scalar>(sigma_s));
  Small h, m;
  const GramRequest<View> requests[] = {{s, sigma_s, h}, {s, s, m}};
  space.grams(requests);

  RitzPairs pairs;
  bool fine = true;
  const double projected = median_microseconds([&] { fine &= ritz_pairs(h, m, width, pairs); });
  // [P, V] in coordinates, where V is the second block; then Q, of what is left of Sigma V.
  const double previous = median_microseconds([&] {
    Small turn;
    const Small c_p = columns_beyond(pairs.vectors, m, width, width, 1e-2, &turn);
    fine &= energies_beyond(pairs.values, h.block(width, width, width, width), turn).allFinite() && c_p.cols() > 0;
  });
  Small new_ones;
  const double found = median_microseconds([&] {
    new_ones = new_directions(along, rest_gram, 1e-5, 0.25);
    fine &= left_squared(along, rest_gram, new_ones.bottomRows(width), Small::Identity(width, r)) >= 0;
  });
  Block<Scalar> image(d, width);
  multiply(space, View(sigma_s), pairs.vectors, BlockView<Scalar>(image));
  const Small k = gram(space, View(image), View(image));
  Polish polish;
  const double polished = median_microseconds([&] { nystrom_polish(pairs.values, k, r, 1e-6, polish); });
  const Small inner = 0.1 * Small::Ones(width, r) + Small::Identity(width, r);
  const double turned = median_microseconds([&] { fine &= turned_closest(polish.a, inner).allFinite(); });

  EvaluatedPoint point;
  const Index cols = 2 * width;
  Small inside = 0.01 * Small::Ones(cols, r);
  for (Index i = 0; i < r; ++i) inside(i, i) += std::sqrt(pairs.values(i));
  point.basis.cols = cols;
  point.basis.r = point.data.coordinates = inside;
  point.basis.y_squared = inside.squaredNorm();
  point.data.theta = h.topLeftCorner(cols, cols);
  point.data.target_norm = pairs.values(0);
  const NullRule rule = point.null_rule(Route::qr, 2 * eps, eps, d);
  const double objection = median_microseconds(
      [&] { fine &= objection_to(point.data, target.trace(), d, storage_rounding<Scalar>(d), true).empty(); });
  const double certificate = median_microseconds([&] {
    make_certificate(point.data.theta, point.data.coordinates, point.basis, rule, 0, point.certificate, true,
                     point.certificate_work.get());
  });
  std::printf(
      "| Ritz, r = %ld | %.1f | projected problem %.1f, V before %.1f, new directions %.1f, polish %.1f, turn %.1f, "
      "objection %.1f, certificate %.1f%s%s |\n",
      long(r), projected + previous + found + polished + turned + objection + certificate, projected, previous, found,
      polished, turned, objection, certificate, point.certificate.by_products ? "" : " (decomposed)",
      fine ? "" : " (NOT FINE)");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const long most = argc > 1 ? std::atol(argv[1]) : 256;
  set_threads(argc > 2 ? std::atol(argv[2]) : 1);
  std::printf("| step | r x r work, us | of it |\n|---|---|---|\n");
  for (Index r = 8; r <= most; r *= 2) paper_step(std::max<Index>(512, 4 * r), r);
  for (Index r = 8; r <= std::min(64L, most); r *= 2) ritz_step(1024, r);
}
