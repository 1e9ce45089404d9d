// SPDX-License-Identifier: Apache-2.0
//
// Gram matrices of tall blocks, in double.
#include "kernels/blends.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"
#include "kernels/step_sweeps.hpp"

#include <algorithm>
#include <concepts>
#include <vector>

namespace itspace::kernels {
namespace {

constexpr Index most_columns = most_strip_columns;

// left'right, at some columns of `out` (or, exchanged, rows). The loops take most_columns on the right.
template <Storage Scalar>
struct Piece {
  ConstBlockView<Scalar> left, right;
  Index diagonal;  // as the loops take it
  Small* out;
  Index at = 0;
  bool exchanged = false;

  Index values() const { return left.cols() * small_loops<Scalar>().widths.padded(right.cols()); }
};

// Of fewer columns all is made.
constexpr Index fewest_for_half = 48;

// Of what should be symmetric so many entries below the diagonal are made, to show whether it is.
constexpr Index made_below = 8;
template <class View>
Index below(const GramRequest<View>& request) {
  return request.symmetry == GramSymmetry::nearly_symmetric ? made_below : 0;
}

template <class View>
bool is_by_half(const GramRequest<View>& request) {
  return request.symmetry == GramSymmetry::of_itself ||
         (request.symmetry == GramSymmetry::nearly_symmetric && request.a.cols() >= fewest_for_half);
}

// Where both sides have more columns than the loops take, one is cut, into narrower groups for less below a diagonal.
template <class View>
bool is_wide(const GramRequest<View>& request) {
  return request.a.cols() > most_columns && request.b.cols() > most_columns;
}
template <class View>
Index group_of(const GramRequest<View>& request) {
  return is_by_half(request) ? most_columns / 2 : most_columns;
}

template <Storage Scalar>
Piece<Scalar> whole(const GramRequest<ConstBlockView<Scalar>>& request) {
  const bool exchanged = request.b.cols() > most_columns;
  const auto &left = exchanged ? request.b : request.a, &right = exchanged ? request.a : request.b;
  return {left, right, is_by_half(request) ? below(request) : left.cols(), request.out, 0, exchanged};
}
template <Storage Scalar>
Piece<Scalar> group_at(const GramRequest<ConstBlockView<Scalar>>& request, Index at) {
  const Index count = std::min(group_of(request), request.b.cols() - at);
  const Index all = request.a.cols(), rows = is_by_half(request) ? std::min(all, at + count + below(request)) : all;
  return {request.a.leftCols(rows), request.b.middleCols(at, count), is_by_half(request) ? at + below(request) : rows,
          request.out, at};
}

// visit(first, used, width) for the slabs of so many columns.
template <Storage Scalar, class Visit>
void for_each_slab_of(Index cols, const Visit& visit) {
  const SlabWidths& widths = small_loops<Scalar>().widths;
  for (Index first = 0; first < cols;) {
    const Index width = widths.next(cols - first);
    visit(first, std::min(width, cols - first), width);
    first += width;
  }
}

// The Gram matrices in slabs, one after the other: each part's rows, with sums of its own, added up in order by all.
template <Storage Scalar, class Before>
const double* sums_by_rows(std::span<const Piece<Scalar>> pieces, Index apart, Index parts, const Before& before) {
  const auto& loops = small_loops<Scalar>();
  double* sums = thread_scratch<double, Scratch::partial_sums>(parts * apart);
  run_parts(parts, [&](Index part) {
    double* own = sums + part * apart;
    std::fill_n(own, apart, 0.0);
    for (const auto& piece : pieces) {
      const Range range = part_of(piece.left.rows(), parts, part, strip_rows);
      before(range);
      if (range.begin < range.end) loops.gram(piece.left, piece.right, range.begin, range.end, piece.diagonal, own);
      own += piece.values();
    }
  });
  const Index adders = parts > 1 ? std::min(parts, parts_for(64 * static_cast<double>(parts * apart))) : 0;
  run_parts(adders, [&](Index adder) {
    const Range range = part_of(apart, adders, adder);
    for (Index p = 1; p < parts; ++p)
      for (Index i = range.begin; i < range.end; ++i) sums[i] += sums[p * apart + i];
  });
  return sums;
}

// Blocks so short that the sums of so many values would be longer.
template <Storage Scalar>
bool is_short(std::span<const Piece<Scalar>> pieces, Index values) {
  for (const auto& piece : pieces) values -= piece.left.size() + piece.right.size();
  return values > 0;
}

// The same for short blocks: each part makes tiles of the result from all rows, and there is nothing to add up.
template <Storage Scalar>
const double* sums_by_tiles(std::span<const Piece<Scalar>> pieces, Index apart, Index threads) {
  constexpr Index tile_rows = 8;
  const auto& loops = small_loops<Scalar>();
  double* sums = thread_scratch<double, Scratch::partial_sums>(apart);
  struct Tile {
    ConstBlockView<Scalar> left, right;
    double* to;
    Index values;
  };
  std::vector<Tile> tiles;
  double* first = sums;
  for (const auto& piece : pieces) {
    const Index all = piece.left.cols();
    for_each_slab_of<Scalar>(piece.right.cols(), [&](Index at, Index used, Index width) {
      const Index rows = std::min(all, piece.diagonal + at + width);
      for (Index i = 0; i < rows; i += tile_rows) {
        const Index count = std::min(tile_rows, rows - i);
        tiles.push_back({piece.left.middleCols(i, count), piece.right.middleCols(at, used),
                         first + at * all + i * width, count * width});
      }
    });
    first += piece.values();
  }
  run_parts(std::ssize(tiles), threads, [&](Index number) {
    const Tile& tile = tiles[static_cast<std::size_t>(number)];
    std::fill_n(tile.to, tile.values, 0.0);
    loops.gram(tile.left, tile.right, 0, tile.left.rows(), tile.left.cols(), tile.to);
  });
  return sums;
}

// What was made of a piece, out of its slabs.
template <Storage Scalar>
void store(const Piece<Scalar>& piece, const double* sums) {
  Small& out = *piece.out;
  const Index all = piece.left.cols();
  for_each_slab_of<Scalar>(piece.right.cols(), [&](Index at, Index used, Index width) {
    for (Index i = 0; i < std::min(all, piece.diagonal + at + width); ++i) {
      const double* row = sums + at * all + i * width;
      for (Index j = 0; j < used; ++j) (piece.exchanged ? out(at + j, i) : out(i, piece.at + at + j)) = row[j];
    }
  });
}

// What was not made, from above the diagonal; of a block with itself, all that is below.
template <Storage Scalar>
void mirror(const GramRequest<ConstBlockView<Scalar>>& request) {
  Small& out = *request.out;
  const bool of_itself = request.symmetry == GramSymmetry::of_itself;
  const Index group = is_wide(request) ? group_of(request) : out.cols();
  for (Index start = 0; start < out.cols(); start += group)
    for_each_slab_of<Scalar>(std::min(group, out.cols() - start), [&](Index at, Index used, Index width) {
      for (Index j = start + at; j < start + at + used; ++j)
        for (Index i = of_itself ? j + 1 : start + at + width + made_below; i < out.rows(); ++i) out(i, j) = out(j, i);
    });
}

struct Nothing {
  void operator()(const Range&) const {}
};

// Before its rows of a piece are multiplied each part does before(rows).
template <Storage Scalar, class Before>
void make(std::span<const Piece<Scalar>> pieces, const Before& before) {
  double work = 0;
  Index apart = 0, at_least = 1;
  for (const auto& piece : pieces) {
    apart += piece.values();
    work += static_cast<double>(piece.left.rows()) * static_cast<double>(piece.values());
    at_least = std::max(at_least, parts_for_block(piece.left.rows(), piece.left.cols()));
  }
  const Index parts = std::max(at_least, parts_for(work));
  const bool by_tiles = parts > 1 && is_short(pieces, parts * apart);
  if constexpr (!std::same_as<Before, Nothing>)
    if (by_tiles) before({0, pieces.front().left.rows()});
  const double* sums =
      by_tiles ? sums_by_tiles<Scalar>(pieces, apart, parts) : sums_by_rows<Scalar>(pieces, apart, parts, before);
  for (const auto& piece : pieces) {
    store(piece, sums);
    sums += piece.values();
  }
}

}  // namespace

template <Storage Scalar>
void grams(std::span<const GramRequest<ConstBlockView<Scalar>>> requests) {
  std::vector<Piece<Scalar>> together;
  for (const auto& request : requests) {
    request.out->resize(request.a.cols(), request.b.cols());
    if (!is_wide(request)) {
      together.push_back(whole(request));
      continue;
    }
    for (Index at = 0; at < request.b.cols(); at += group_of(request)) {
      const Piece<Scalar> piece = group_at(request, at);
      make<Scalar>({&piece, 1}, Nothing());
    }
  }
  if (!together.empty()) make<Scalar>(together, Nothing());
  for (const auto& request : requests)
    if (is_by_half(request)) mirror(request);
}

template <Storage Scalar>
void blend_and_gram(const ConstBlockView<Scalar>& y, const ConstBlockView<Scalar>& b, double alpha,
                    BlockView<Scalar> out, Small& gram) {
  const ConstBlockView<Scalar> made = out;
  const GramRequest<ConstBlockView<Scalar>> request(made, gram);
  if (is_wide(request)) {
    blend<Scalar>(y, b, alpha, out);
    grams<Scalar>({&request, 1});
    return;
  }
  gram.resize(made.cols(), made.cols());
  const Piece<Scalar> piece = whole(request);
  make<Scalar>({&piece, 1},
               [&](const Range& range) { blend_loops<Scalar>().blend(y, b, alpha, range.begin, range.end, out); });
  mirror(request);
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                  \
  template void grams<Scalar>(std::span<const GramRequest<ConstBlockView<Scalar>>>);                 \
  template void blend_and_gram(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double, \
                               BlockView<Scalar>, Small&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
