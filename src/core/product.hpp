// SPDX-License-Identifier: Apache-2.0
//
// One pass over the target, and what comes back from it: the two ways to see Sigma.
//
// form() makes the pass on a basis Q and gives the r x r data of certificate.hpp. extend() makes a narrow pass on more
// columns (completion). lift() turns coefficients into B = Sigma^(1/2) X m. All blocks are made at construction.
#pragma once

#include "core/basis.hpp"
#include "core/certificate.hpp"
#include "core/run_context.hpp"

namespace itspace {

// Columns that completion draws beyond those it needs.
inline constexpr Index completion_oversampling = 8;

// W'W comes with Q'W in one sweep, and is cheap for up to so many columns; for more it is made where it is asked for.
inline constexpr Index most_for_w_gram = 48;

struct ProductData {
  Small theta;              // q x q
  Small coordinates;        // q x r
  Small w_gram;             // W'W where W = Sigma Q was formed and has few columns; empty elsewhere
  double target_norm = 0;   // an estimate of ||Sigma||_2 from below
  double seen_trace = 0;    // an estimate of tr Sigma from below: tr(Q'Sigma Q) for an orthonormal Q; 0 for another
  bool overwritten = true;  // the target wrote its product over what was in the block
};

// b = x m for the m of a certificate, by way of its directions where they are graded: each keeps its own digits, and an
// orthogonal matrix mixes them. `multiply_x(c, out)` sets out = x c.
template <Space S, class MultiplyX>
void multiply_by(S& space, const Certificate& certificate, typename S::View b, MultiplyX multiply_x) {
  if (!certificate.graded) {
    multiply_x(certificate.m, b);
    return;
  }
  const auto by_direction = space.columns(b, 0, certificate.served.cols());
  multiply_x(certificate.served, by_direction);
  multiply(space, by_direction, certificate.served_directions.transpose(), b);
}

template <Space S>
class Product {
 public:
  using View = typename S::View;
  using ConstView = typename S::ConstView;

  virtual ~Product() = default;

  // @pre q holds basis.cols columns of the basis, and perhaps more that only ride along in the pass.
  virtual void form(const ConstView& q, const Basis& basis, ProductData& data) = 0;

  // Adds z (d x m, overwritten) to the basis, Sigma-orthogonal to `seen`. Afterwards data describes q + m columns; the
  // new coordinates are zero.
  virtual void extend(const ConstView& q, View z, const Small& seen, ProductData& data) = 0;

  // data.w_gram for the W that form() made, where it did not; nothing where there is no W.
  virtual void complete_data(ProductData& /*data*/) {}

  // b = Sigma^(1/2) X m for the certificate of form(), or with more rows after extend().
  virtual void lift(const Certificate& certificate, View b) = 0;

  // The rounding of the seen energies in units of ||Sigma||: 2 eps where products with Sigma were taken, (2 eps)^2
  // where products with T were (which rounds their roots).
  virtual double energy_noise() const = 0;
};

// W = Sigma Q.
template <Space S>
class OperatorProduct final : public Product<S> {
 public:
  using typename Product<S>::View;
  using typename Product<S>::ConstView;

  // `riders`: columns that may ride along with Q. `may_extend`: keep a block for extend().
  OperatorProduct(RunContext<S>& run, Index rank, Index riders, bool may_extend);

  void form(const ConstView& q, const Basis& basis, ProductData& data) override;
  void extend(const ConstView& q, View z, const Small& seen, ProductData& data) override;
  void complete_data(ProductData& data) override;
  void lift(const Certificate& certificate, View b) override;
  double energy_noise() const override;

  // Products are with this target from here on, of the same dimension; form() follows.
  void aim_at(CountedTarget<S>& target) { target_ = &target; }

  // Sigma times the columns that form() was last given.
  View image() { return space_.columns(w_, 0, image_cols_); }

  // W, for a Q that was multiplied elsewhere. form_again() follows.
  void set_image(const ConstView& sigma_q);

  // Line search: W of the next basis without a pass, W <- W x + sigma_b x_b.
  void advance(const Small& x, const ConstView& sigma_b, const Small& x_b);
  // form() without the pass: the r x r data of the W at hand.
  void form_again(const ConstView& q, const Basis& basis, ProductData& data);

 private:
  S& space_;
  CountedTarget<S>* target_;
  typename S::Block w_, extra_;
  Index image_cols_ = 0, basis_cols_ = 0, extra_cols_ = 0;
};

// A = T'Q = Q_A R_A for a target with a factor.
template <Space S>
class FactorProduct final : public Product<S> {
 public:
  using typename Product<S>::View;
  using typename Product<S>::ConstView;

  FactorProduct(RunContext<S>& run, Index rank, bool may_extend);

  void form(const ConstView& q, const Basis& basis, ProductData& data) override;
  void extend(const ConstView& q, View z, const Small& seen, ProductData& data) override;
  void lift(const Certificate& certificate, View b) override;
  double energy_noise() const override;

 private:
  S& space_;
  CountedTarget<S>& target_;
  typename S::Block a_, q_a_, extra_;
  Basis basis_a_;
  Index extra_cols_ = 0;
};

}  // namespace itspace
