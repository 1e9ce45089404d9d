// SPDX-License-Identifier: Apache-2.0
#include "core/completion.hpp"

#include "core/lapack.hpp"
#include "core/rounding.hpp"

#include <algorithm>
#include <cmath>

namespace itspace {
namespace {

// A draw is worth filling in where its energy is this many times rounding: what it shares with the seen part is known
// no better, and a direction with less is not worth the step that it would put in doubt.
constexpr double worth_filling = 32;

}  // namespace

Index fill_null_directions(Index width, double energy_noise, const ProductData& data, Certificate& certificate) {
  const Small null = certificate.null_directions;
  const Index count = null.cols(), basis_cols = data.theta.rows() - width, r = null.rows();
  // What rounding left of Z along the seen part goes in r x r data: z - Q seen k, k = seen'Q'Sigma z, has the energies
  // of the Schur complement.
  const Small k = certificate.seen.transpose() * data.theta.topRightCorner(basis_cols, width);
  const Small rest = data.theta.bottomRightCorner(width, width) - k.transpose() * k;
  SmallVector energies;
  Small vectors;
  if (!symmetric_eigen(0.5 * (rest + rest.transpose()), energies, vectors)) return 0;
  // ||Sigma||_2 as seen so far, Z included: a Y in the null space of the target shows nothing of it. The energies are
  // those of a Gram matrix in double, whatever the products were.
  const double of_products = energy_noise * std::max(data.target_norm, energies(width - 1));
  const double noise = std::max(of_products, static_cast<double>(width) * eps64 * energies(width - 1));
  const Index found = std::min<Index>(count, (energies.array() > worth_filling * noise).count());
  if (found == 0) return 0;

  // The leading directions of the draw serve as many null directions, in any order: both are arbitrary up to rotation.
  const Index seen = certificate.rank;
  const Small filled = vectors.rightCols(found) * energies.tail(found).cwiseSqrt().cwiseInverse().asDiagonal();
  CertificateParts parts{Small::Zero(basis_cols + width, seen + found), Small(r, seen + found),
                         SmallVector::Ones(seen + found), SmallVector(seen + found), SmallVector::Zero(seen + found)};
  parts.columns.topLeftCorner(basis_cols, seen) = certificate.seen;
  parts.columns.topRightCorner(basis_cols, found) = -certificate.seen * (k * filled);
  parts.columns.bottomRightCorner(width, found) = filled;
  parts.directions << certificate.directions, null.leftCols(found);
  parts.doubt << certificate.doubt, energies.tail(found).cwiseInverse() * (4 * noise);
  // What is filled in may be any length, so it is made short enough.
  parts.margin.tail(found) = energies.tail(found).cwiseInverse() * noise;
  measure_certificate(data.theta, data.coordinates, parts, certificate);
  return found;
}

}  // namespace itspace
