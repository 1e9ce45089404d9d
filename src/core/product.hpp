// SPDX-License-Identifier: Apache-2.0
//
// One pass over the target, and what comes back from it: the two ways to see Sigma.
//
// form() makes the pass on a basis Q and gives the r x r data of certificate.hpp. extend() makes a narrow pass on more
// columns (completion). lift() turns coefficients into B = Sigma^(1/2) X m. All blocks are allocated at construction.
#pragma once

#include <itspace/target.hpp>

#include "core/basis.hpp"
#include "core/certificate.hpp"

#include <memory>

namespace itspace {

// Columns that completion draws beyond those it needs.
inline constexpr Index completion_oversampling = 8;

struct ProductData {
  Small theta;              // q x q
  Small coordinates;        // q x r
  Small w_gram;             // W'W where W = Sigma Q was formed; empty elsewhere
  double target_norm = 0;   // an estimate of ||Sigma||_2 from below
  double seen_trace = 0;    // an estimate of tr Sigma from below: tr(Q'Sigma Q) for an orthonormal Q; 0 for another
  bool overwritten = true;  // the target wrote its product over what was in the block
};

// w = Sigma q. The first row is poisoned before, so that an apply() which adds to its output, or leaves a part of it
// alone, does not go unseen: false where it was one.
template <Storage Scalar>
bool apply_over(TargetRef<Scalar> target, const ConstBlockView<Scalar>& q, BlockView<Scalar> w);

// (||w_j||)_j, also where the squares overflow (entries of Sigma beyond 1e154).
template <Storage Scalar>
SmallVector column_lengths(const ConstBlockView<Scalar>& w);

// b = x m for the m of a certificate, by way of its directions where they are graded: each keeps its own digits, and an
// orthogonal matrix mixes them. `multiply(c, out)` sets out = x c.
template <Storage Scalar, class Multiply>
void multiply_by(const Certificate& certificate, BlockView<Scalar> b, kernels::Panels& panels, Multiply multiply) {
  if (!certificate.graded) {
    multiply(certificate.m, b);
    return;
  }
  const BlockView<Scalar> by_direction = b.leftCols(certificate.served.cols());
  multiply(certificate.served, by_direction);
  kernels::multiply<Scalar>(by_direction, certificate.served_directions.transpose(), b, panels);
}

template <Storage Scalar>
class Product {
 public:
  virtual ~Product() = default;

  // @pre q holds basis.cols columns of the basis, and perhaps more that only ride along in the pass.
  virtual void form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) = 0;

  // Adds z (d x m, overwritten) to the basis, Sigma-orthogonal to `seen`. Afterwards data describes q + m columns; the
  // new coordinates are zero.
  virtual void extend(const ConstBlockView<Scalar>& q, BlockView<Scalar> z, const Small& seen, ProductData& data) = 0;

  // b = Sigma^(1/2) X m for the certificate of form(), or with more rows after extend().
  virtual void lift(const Certificate& certificate, BlockView<Scalar> b) = 0;

  // The rounding of the seen energies in units of ||Sigma||: 2 eps where products with Sigma were taken, (2 eps)^2
  // where products with T were (which rounds their roots).
  virtual double energy_noise() const = 0;
};

// W = Sigma Q.
template <Storage Scalar>
class OperatorProduct final : public Product<Scalar> {
 public:
  // `riders`: columns that may ride along with Q. `may_extend`: keep a block for extend().
  OperatorProduct(TargetRef<Scalar> target, Index rank, Index riders, bool may_extend);

  void form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) override;
  void extend(const ConstBlockView<Scalar>& q, BlockView<Scalar> z, const Small& seen, ProductData& data) override;
  void lift(const Certificate& certificate, BlockView<Scalar> b) override;
  double energy_noise() const override;

  // Sigma times the columns that form() was last given.
  BlockView<Scalar> image() { return w_.leftCols(image_cols_); }

  // W = sigma_s * coefficients, for a Q that is a combination of columns whose products are kept. form_again() follows.
  void set_image(const ConstBlockView<Scalar>& sigma_s, const Small& coefficients);

  // Line search: W of the next basis without a pass, W <- W x + sigma_b x_b.
  void advance(const Small& x, const ConstBlockView<Scalar>& sigma_b, const Small& x_b);
  // form() without the pass: the r x r data of the W at hand.
  void form_again(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data);

 private:
  TargetRef<Scalar> target_;
  Block<Scalar> w_, extra_;
  Index image_cols_ = 0, basis_cols_ = 0, extra_cols_ = 0;
  kernels::Panels panels_;
};

// A = T'Q = Q_A R_A for a target with a factor.
template <Storage Scalar>
class FactorProduct final : public Product<Scalar> {
 public:
  FactorProduct(TargetRef<Scalar> target, Index rank, bool may_extend);

  void form(const ConstBlockView<Scalar>& q, const Basis& basis, ProductData& data) override;
  void extend(const ConstBlockView<Scalar>& q, BlockView<Scalar> z, const Small& seen, ProductData& data) override;
  void lift(const Certificate& certificate, BlockView<Scalar> b) override;
  double energy_noise() const override;

 private:
  TargetRef<Scalar> target_;
  Block<Scalar> a_, q_a_, extra_;
  Basis basis_a_;
  Index extra_cols_ = 0;
  kernels::Panels panels_;
};

// The principal square root S of a target, for the reference route: Sigma = S S with S dense. O(d^3).
template <Storage Scalar>
class RootTarget {
 public:
  explicit RootTarget(TargetRef<Scalar> target);

  Index dim() const { return root_.rows(); }
  double trace() const { return trace_; }
  void apply(const ConstBlockView<Scalar>& y, BlockView<Scalar> out) const;
  Index factor_cols() const { return root_.rows(); }
  void apply_factor_transposed(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;
  void apply_factor(const ConstBlockView<Scalar>& in, BlockView<Scalar> out) const;

 private:
  Block<Scalar> root_;
  double trace_;
};

}  // namespace itspace
