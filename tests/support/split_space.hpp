// SPDX-License-Identifier: Apache-2.0
//
// A space whose blocks have their rows split into P parts: nothing is shared between the parts but sums over them. What
// runs here looks at no entry of a block, and would run with the parts on P machines.
#pragma once

#include <itspace/space.hpp>

#include "core/stable_length.hpp"

#include <memory>
#include <span>
#include <vector>

namespace itspace::test {

template <class PartView>
struct SplitView {
  std::vector<PartView> parts;
  Index width = 0;

  Index cols() const { return width; }
};

template <Storage ScalarType>
class SplitSpace {
 public:
  using Scalar = ScalarType;
  using View = SplitView<BlockView<Scalar>>;
  static constexpr bool runs_ahead = true;  // it does not, but solvers take the way of those that do

  struct ConstView : SplitView<ConstBlockView<Scalar>> {
    ConstView() = default;
    ConstView(const View& view) {  // NOLINT(google-explicit-constructor): as with every view
      for (const auto& part : view.parts) this->parts.emplace_back(part);
      this->width = view.width;
    }
  };

  struct Block {
    std::vector<itspace::Block<Scalar>> parts;
    Index width = 0;

    Index cols() const { return width; }
    operator View() {  // NOLINT(google-explicit-constructor)
      View view;
      for (auto& part : parts) view.parts.emplace_back(part);
      view.width = width;
      return view;
    }
    operator ConstView() const {  // NOLINT(google-explicit-constructor)
      ConstView view;
      for (const auto& part : parts) view.parts.emplace_back(part);
      view.width = width;
      return view;
    }
  };

  explicit SplitSpace(Index parts) : parts_(parts), places_(static_cast<std::size_t>(parts)) {}

  Block make_block(Index rows, Index cols) {
    Block block;
    for (Index p = 0; p < parts_; ++p) block.parts.emplace_back(first_row(p + 1, rows) - first_row(p, rows), cols);
    block.width = cols;
    return block;
  }
  View columns(Block& block, Index first, Index count) { return columns(View(block), first, count); }
  View columns(const View& block, Index first, Index count) {
    View view;
    for (auto part : block.parts) view.parts.emplace_back(part.middleCols(first, count));
    view.width = count;
    return view;
  }
  ConstView columns(const ConstView& block, Index first, Index count) {
    ConstView view;
    for (const auto& part : block.parts) view.parts.emplace_back(part.middleCols(first, count));
    view.width = count;
    return view;
  }

  void grams(std::span<const GramRequest<ConstView>> requests) {
    for (const auto& request : requests) {
      for (std::size_t p = 0; p < places_.size(); ++p) {
        Small part;
        using Request = GramRequest<ConstBlockView<Scalar>>;
        const Request of_part(request.a.parts[p], request.b.parts[p], part, request.symmetry);
        places_[p].grams({&of_part, 1});
        if (p == 0) {
          *request.out = part;
        } else {
          *request.out += part;
        }
      }
    }
  }
  SmallVector column_norms(const ConstView& a) {
    Small norms(a.cols(), parts_);
    for (std::size_t p = 0; p < places_.size(); ++p)
      norms.col(static_cast<Index>(p)) = places_[p].column_norms(a.parts[p]);
    if (parts_ == 1) return norms.col(0);
    SmallVector out(a.cols());
    for (Index j = 0; j < a.cols(); ++j) out(j) = stable_length(norms.row(j).transpose());
    return out;
  }
  BlendNorms blend_norms(const ConstView& y, const ConstView& b) {
    BlendNorms sum;
    for (std::size_t p = 0; p < places_.size(); ++p) {
      const BlendNorms part = places_[p].blend_norms(y.parts[p], b.parts[p]);
      sum.b_squared += part.b_squared;
      sum.difference_squared += part.difference_squared;
    }
    return sum;
  }
  void multiply(const ConstView& a, const Small& m, const View& out, Write write) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].multiply(a.parts[p], m, out.parts[p], write);
  }
  void multiply_roughly(const ConstView& a, const Small& m, const View& out) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].multiply_roughly(a.parts[p], m, out.parts[p]);
  }
  void blend(const ConstView& y, const ConstView& b, double alpha, const View& out) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].blend(y.parts[p], b.parts[p], alpha, out.parts[p]);
  }
  void scale_columns(const View& block, const SmallVector& factors) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].scale_columns(block.parts[p], factors);
  }
  void subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, const View& out) {
    for (std::size_t p = 0; p < places_.size(); ++p)
      places_[p].subtract_scaled(a.parts[p], b.parts[p], factors, out.parts[p]);
  }
  void copy(const ConstView& from, const View& to) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].copy(from.parts[p], to.parts[p]);
  }
  void set_zero(const View& block) {
    for (std::size_t p = 0; p < places_.size(); ++p) places_[p].set_zero(block.parts[p]);
  }
  void fill_normal(const Random& random, const View& out) {
    std::uint64_t counter = 0;  // goes on from part to part: that of the global row
    for (BlockView<Scalar> part : out.parts)
      for (Index i = 0; i < part.rows(); ++i)
        for (Index j = 0; j < part.cols(); ++j) part(i, j) = static_cast<Scalar>(random.normal(counter++));
  }
  void poison(const View& block) { places_[0].poison(block.parts[owner_of_first_row(block)]); }
  bool is_poisoned(const ConstView& block) {
    const itspace::Block<Scalar> whole = gather(block);
    return places_[0].is_poisoned(whole);
  }

  // What only targets and results need: all rows in one place.
  itspace::Block<Scalar> gather(const ConstView& view) const {
    Index rows = 0;
    for (const auto& part : view.parts) rows += part.rows();
    itspace::Block<Scalar> whole(rows, view.cols());
    Index first = 0;
    for (const auto& part : view.parts) {
      whole.middleRows(first, part.rows()) = part;
      first += part.rows();
    }
    return whole;
  }
  void scatter(const itspace::Block<Scalar>& whole, const View& view) const {
    Index first = 0;
    for (BlockView<Scalar> part : view.parts) {
      part = whole.middleRows(first, part.rows());
      first += part.rows();
    }
  }

 private:
  Index first_row(Index part, Index rows) const { return rows * part / parts_; }
  std::size_t owner_of_first_row(const View& view) const {
    std::size_t p = 0;
    while (p + 1 < view.parts.size() && view.parts[p].rows() == 0) ++p;
    return p;
  }

  Index parts_;
  std::vector<HostSpace<Scalar>> places_;
};

}  // namespace itspace::test
