// SPDX-License-Identifier: Apache-2.0
//
// Spaces: where blocks live.
//
// A solver moves tall d x r blocks and decides by r x r matrices; it never looks at an entry of a block. So it need not
// know where the entries are: in this machine's memory, on a device, or with their rows spread over processes. A Space
// is such a place. It makes blocks (of a global number of rows; which of them are here is its own business), hands out
// views of their columns, and offers the dozen operations below. What ends in numbers that a solver decides by (Gram
// matrices, norms) comes back in double, on the host, and is the same on every process that takes part: all of them
// then take the same way. Sums that are due together are asked for together, so that they cost one reduction, or one
// wait for a device.
//
// What else solvers decide by, trace() and version() of the target and the answer of on_step, must be the same on every
// process too.
//
// HostSpace is this machine's memory. The solvers are written once, against the concept.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>
#include <itspace/random.hpp>

#include <concepts>
#include <span>

namespace itspace {

// out = a'b. Without a b: out = a'a, symmetric to the last bit. `nearly_symmetric`: a'b should be symmetric, as Q'Sigma
// Q is, and where it has many columns, entries far below the diagonal may be those above it. Those beside the diagonal
// are made one by one, so that they show where it is not.
enum class GramSymmetry { none, nearly_symmetric, of_itself };

template <class View>
struct GramRequest {
  View a, b;
  Small* out;
  GramSymmetry symmetry = GramSymmetry::none;

  GramRequest(View left, View right, Small& result, GramSymmetry kind = GramSymmetry::none)
      : a(left), b(right), out(&result), symmetry(kind) {}
  GramRequest(View block, Small& result) : a(block), b(block), out(&result), symmetry(GramSymmetry::of_itself) {}
};

struct BlendNorms {
  double b_squared = 0;           // ||b||^2
  double difference_squared = 0;  // ||b - y||^2
};

enum class Write { assign, add };

template <class S>
concept Space = Storage<typename S::Scalar> && std::movable<typename S::Block> &&
    std::default_initializable<typename S::Block> && std::copy_constructible<typename S::View> &&
    std::copy_constructible<typename S::ConstView> && std::convertible_to<typename S::Block&, typename S::View> &&
    std::convertible_to<const typename S::Block&, typename S::ConstView> &&
    std::convertible_to<typename S::View, typename S::ConstView> &&
    requires(S& space, typename S::Block& block, typename S::View out, typename S::ConstView a, typename S::ConstView b,
             Index count, const Small& m, const SmallVector& factors, const Random& random, double alpha) {
  { a.cols() } -> std::convertible_to<Index>;
  { space.make_block(count, count) } -> std::same_as<typename S::Block>;  // rows (global), columns
  // Columns [first, first + count) of a block or of a view.
  { space.columns(block, count, count) } -> std::same_as<typename S::View>;
  { space.columns(out, count, count) } -> std::same_as<typename S::View>;
  { space.columns(a, count, count) } -> std::same_as<typename S::ConstView>;

  space.grams(std::span<const GramRequest<typename S::ConstView>>());  // all of them, in one reduction
  { space.column_norms(a) } -> std::same_as<SmallVector>;              // also where squares overflow or vanish
  { space.blend_norms(a, b) } -> std::same_as<BlendNorms>;             // of y = a and b
  space.multiply(a, m, out, Write::assign);                            // out = a m; out may share columns with a
  // The same for an `out` of other columns, with the rounding of blocks: where m has many columns, faster.
  space.multiply_roughly(a, m, out);
  space.blend(a, b, alpha, out);              // out = (1 - alpha) a + alpha b
  space.scale_columns(out, factors);          // column j times factors(j)
  space.subtract_scaled(a, b, factors, out);  // out = a - b diag(factors)
  space.copy(a, out);
  space.set_zero(out);
  space.fill_normal(random, out);  // entry (i, j) is random.normal(i cols + j), i the global row
  // Row 0 becomes NaN; later: whether it is not finite where the other rows are. An operator that adds to its output,
  // or leaves it alone, is found out this way.
  space.poison(out);
  { space.is_poisoned(a) } -> std::same_as<bool>;
};

// Whether operations return before they are done, all but those that end in numbers: `S::runs_ahead`. Solvers then ask
// for them early, so that the space works while the host does, even where a run may end before it needs them.
template <class S>
inline constexpr bool runs_ahead = false;
template <class S>
requires(S::runs_ahead) inline constexpr bool runs_ahead<S> = true;

// Gram matrices in two halves, for spaces that run ahead: such a space may have ask_grams(requests), which returns
// before they are there, and answer_grams(requests), which waits for these same ones. In between the space is asked for
// nothing else. Other spaces make them when they are to be answered.
template <Space S>
void ask_grams(S& space, std::span<const GramRequest<typename S::ConstView>> requests) {
  if constexpr (requires { space.ask_grams(requests); }) space.ask_grams(requests);
}
template <Space S>
void answer_grams(S& space, std::span<const GramRequest<typename S::ConstView>> requests) {
  if constexpr (requires { space.answer_grams(requests); }) {
    space.answer_grams(requests);
  } else {
    space.grams(requests);
  }
}

// One Gram matrix.
template <Space S>
Small gram(S& space, const typename S::ConstView& a, const typename S::ConstView& b) {
  Small out;
  const GramRequest<typename S::ConstView> request(a, b, out);
  space.grams({&request, 1});
  return out;
}

// a'a, by half of it.
template <Space S>
Small gram(S& space, const typename S::ConstView& a) {
  Small out;
  const GramRequest<typename S::ConstView> request(a, out);
  space.grams({&request, 1});
  return out;
}

// out = a m.
template <Space S>
void multiply(S& space, const typename S::ConstView& a, const Small& m, typename S::View out) {
  space.multiply(a, m, out, Write::assign);
}

// The memory of this machine. Its operations use all threads that a call may use (threads.hpp), and take Eigen's own
// r x r matrices: they are for code that is compiled as the library is.
template <Storage ScalarType>
class ITSPACE_API HostSpace {
 public:
  using Scalar = ScalarType;
  using Block = itspace::Block<Scalar>;
  using View = BlockView<Scalar>;
  using ConstView = ConstBlockView<Scalar>;

  Block make_block(Index rows, Index cols) { return Block(rows, cols); }
  View columns(Block& block, Index first, Index count) { return block.middleCols(first, count); }
  View columns(View block, Index first, Index count) { return block.middleCols(first, count); }
  ConstView columns(ConstView block, Index first, Index count) { return block.middleCols(first, count); }

  void grams(std::span<const GramRequest<ConstView>> requests);
  SmallVector column_norms(const ConstView& a);
  BlendNorms blend_norms(const ConstView& y, const ConstView& b);
  void multiply(const ConstView& a, const Small& m, View out, Write write);
  void multiply_roughly(const ConstView& a, const Small& m, View out);
  void blend(const ConstView& y, const ConstView& b, double alpha, View out);
  void scale_columns(View block, const SmallVector& factors);
  void subtract_scaled(const ConstView& a, const ConstView& b, const SmallVector& factors, View out);
  void copy(const ConstView& from, View to);
  void set_zero(View block) { block.setZero(); }
  void fill_normal(const Random& random, View out) { random.fill_normal<Scalar>(out); }
  void poison(View block);
  bool is_poisoned(const ConstView& block);
};

}  // namespace itspace
