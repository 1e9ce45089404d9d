// SPDX-License-Identifier: Apache-2.0
//
// Gram matrices of tall blocks, in double.
#include "kernels/blends.hpp"
#include "kernels/pool.hpp"
#include "kernels/scratch.hpp"
#include "kernels/step_sweeps.hpp"

#include <algorithm>
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
  const Index* mirrored = nullptr;  // by half: row i has, from this column on, what column i has below the diagonal
  bool upper = false;               // nothing below the diagonal is stored but what is mirrored

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

// Some rows of a slab of what is made of a piece, by rows of `width` values.
template <Storage Scalar>
struct Tile {
  const Piece<Scalar>* piece;
  Index row, rows, at, used, width;
  double* values;

  // To where it lies in the output, and to the other side of the diagonal.
  void store(const double* from) const {
    double* out = piece->out->data();
    const Index stride = piece->out->rows(), first = piece->at + at;
    if (piece->exchanged) {
      for (Index i = 0; i < rows; ++i) std::copy_n(from + i * width, used, out + first + (row + i) * stride);
      return;
    }
    for (Index j = 0; j < used; ++j) {
      const Index count = piece->upper ? std::min(rows, first + j + 1 - row) : rows;
      for (Index i = 0; i < count; ++i) out[row + i + (first + j) * stride] = from[i * width + j];
    }
    if (piece->mirrored == nullptr) return;
    for (Index i = 0; i < rows; ++i)
      for (Index j = std::max<Index>(0, piece->mirrored[row + i] - first); j < used; ++j)
        out[first + j + (row + i) * stride] = from[i * width + j];
  }
};
constexpr Index tile_rows = 16;

// `sums`: of the first piece, those of the others follow, so many times as there are parts.
template <Storage Scalar>
std::vector<Tile<Scalar>> tiles_of(std::span<const Piece<Scalar>> pieces, double* sums) {
  std::vector<Tile<Scalar>> tiles;
  for (const auto& piece : pieces) {
    const Index all = piece.left.cols();
    for_each_slab_of<Scalar>(piece.right.cols(), [&](Index at, Index used, Index width) {
      const Index rows = std::min(all, piece.diagonal + at + width);
      for (Index i = 0; i < rows; i += tile_rows)
        tiles.push_back({&piece, i, std::min(tile_rows, rows - i), at, used, width, sums + at * all + i * width});
    });
    sums += piece.values();
  }
  return tiles;
}

struct Nothing {
  void operator()(const Range&) const {}
};

// Each part's rows, with sums of its own; these are added up in order, tile by tile. Pieces are made together, row by
// row, or `apart`, each in parts of its own. Before its rows of a piece are multiplied each part does before(rows).
template <Storage Scalar, class Before>
void make_by_rows(std::span<const Piece<Scalar>> pieces, bool apart, Index all_values, Index threads, Index parts,
                  const Before& before) {
  const auto& loops = small_loops<Scalar>();
  double* sums = thread_scratch<double, Scratch::partial_sums>(parts * all_values);
  const auto add_rows = [&](const Piece<Scalar>& piece, Index part, double* own) {
    const Range range = part_of(piece.left.rows(), parts, part, strip_rows);
    before(range);
    std::fill_n(own, piece.values(), 0.0);
    if (range.begin < range.end) loops.gram(piece.left, piece.right, range.begin, range.end, piece.diagonal, own);
  };
  if (apart) {
    std::vector<double*> first;
    for (double* at = sums; const auto& piece : pieces) {
      first.push_back(at);
      at += piece.values();
    }
    const Index count = std::ssize(pieces);
    run_parts(count * parts, threads, [&](Index number) {
      const auto piece = static_cast<std::size_t>(count - 1 - number / parts);  // the largest ones first
      add_rows(pieces[piece], number % parts, first[piece] + number % parts * all_values);
    });
  } else {
    run_parts(parts, [&](Index part) {
      double* own = sums + part * all_values;
      for (const auto& piece : pieces) {
        add_rows(piece, part, own);
        own += piece.values();
      }
    });
  }
  const std::vector<Tile<Scalar>> tiles = tiles_of(pieces, sums);
  const Index adders = parts_for(64 * static_cast<double>(parts * all_values));
  run_parts(std::ssize(tiles), adders, [&](Index number) {
    const Tile<Scalar>& tile = tiles[static_cast<std::size_t>(number)];
    for (Index p = 1; p < parts; ++p) {
      const double* other = tile.values + p * all_values;
      for (Index i = 0; i < tile.rows * tile.width; ++i) tile.values[i] += other[i];
    }
    tile.store(tile.values);
  });
}

// Blocks so short that the sums of so many values would be longer.
template <Storage Scalar>
bool is_short(std::span<const Piece<Scalar>> pieces, Index values) {
  for (const auto& piece : pieces) values -= piece.left.size() + piece.right.size();
  return values > 0;
}

// The same for short blocks: each part makes tiles of the result from all rows, and there is nothing to add up.
template <Storage Scalar>
void make_by_tiles(std::span<const Piece<Scalar>> pieces, Index all_values, Index threads) {
  const auto& loops = small_loops<Scalar>();
  const std::vector<Tile<Scalar>> tiles = tiles_of(pieces, thread_scratch<double, Scratch::partial_sums>(all_values));
  run_parts(std::ssize(tiles), threads, [&](Index number) {
    const Tile<Scalar>& tile = tiles[static_cast<std::size_t>(number)];
    std::fill_n(tile.values, tile.rows * tile.width, 0.0);
    const ConstBlockView<Scalar> left = tile.piece->left.middleCols(tile.row, tile.rows);
    loops.gram(left, tile.piece->right.middleCols(tile.at, tile.used), 0, left.rows(), left.cols(), tile.values);
    tile.store(tile.values);
  });
}

template <Storage Scalar, class Before>
void make(std::span<const Piece<Scalar>> pieces, bool apart, const Before& before) {
  double work = 0;
  Index values = 0, at_least = 1;
  for (const auto& piece : pieces) {
    values += piece.values();
    work += static_cast<double>(piece.left.rows()) * static_cast<double>(piece.values());
    at_least = std::max(at_least, parts_for_block(piece.left.rows(), piece.left.cols()));
  }
  const Index threads = std::max(at_least, parts_for(work)), count = std::ssize(pieces);
  // Pieces of half a matrix are of different sizes: some more parts of each, so that all threads end together.
  const Index parts = apart && threads > 1 ? std::clamp<Index>((4 * threads + count - 1) / count, 1, threads) : threads;
  if (threads > 1 && is_short(pieces, parts * values)) {
    before({0, pieces.front().left.rows()});
    make_by_tiles<Scalar>(pieces, values, threads);
  } else {
    make_by_rows<Scalar>(pieces, apart, values, threads, parts, before);
  }
}

// For each row of a matrix that is made by half, the first column whose entry is copied to the other side: of a block
// with itself, all that is above the diagonal; else what is not made below it.
template <Storage Scalar>
std::vector<Index> mirrored_columns(const GramRequest<ConstBlockView<Scalar>>& request) {
  const Index cols = request.b.cols(), group = is_wide(request) ? group_of(request) : cols;
  std::vector<Index> first(static_cast<std::size_t>(cols));
  for (Index start = 0; start < cols; start += group)
    for_each_slab_of<Scalar>(std::min(group, cols - start), [&](Index at, Index used, Index width) {
      for (Index j = start + at; j < start + at + used; ++j)
        first[static_cast<std::size_t>(j)] =
            request.symmetry == GramSymmetry::of_itself ? j + 1 : start + at + width + made_below;
    });
  return first;
}

template <Storage Scalar>
Piece<Scalar> with_mirror(Piece<Scalar> piece, const GramRequest<ConstBlockView<Scalar>>& request,
                          const std::vector<Index>& mirrored) {
  if (!is_by_half(request)) return piece;
  piece.mirrored = mirrored.data();
  piece.upper = request.symmetry == GramSymmetry::of_itself;
  return piece;
}

}  // namespace

template <Storage Scalar>
void grams(std::span<const GramRequest<ConstBlockView<Scalar>>> requests) {
  std::vector<Piece<Scalar>> together, groups;
  std::vector<std::vector<Index>> mirrored;
  for (const auto& request : requests) {
    request.out->resize(request.a.cols(), request.b.cols());
    mirrored.push_back(is_by_half(request) ? mirrored_columns(request) : std::vector<Index>());
    if (!is_wide(request)) {
      together.push_back(with_mirror(whole(request), request, mirrored.back()));
      continue;
    }
    groups.clear();
    for (Index at = 0; at < request.b.cols(); at += group_of(request))
      groups.push_back(with_mirror(group_at(request, at), request, mirrored.back()));
    make<Scalar>(groups, true, Nothing());
  }
  if (!together.empty()) make<Scalar>(together, false, Nothing());
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
  const std::vector<Index> mirrored = mirrored_columns(request);
  const Piece<Scalar> piece = with_mirror(whole(request), request, mirrored);
  make<Scalar>({&piece, 1}, false,
               [&](const Range& range) { blend_loops<Scalar>().blend(y, b, alpha, range.begin, range.end, out); });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                  \
  template void grams<Scalar>(std::span<const GramRequest<ConstBlockView<Scalar>>>);                 \
  template void blend_and_gram(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double, \
                               BlockView<Scalar>, Small&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
