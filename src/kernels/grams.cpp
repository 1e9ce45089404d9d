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

// The loops take any number of columns on one side and most_columns on the other. Where both have more, one is cut.
template <class View>
bool is_wide(const GramRequest<View>& request) {
  return request.a.cols() > most_columns && request.b.cols() > most_columns;
}

// The loops take most_columns on the right: so b'a is made where b has more.
template <class View>
bool is_exchanged(const GramRequest<View>& request) {
  return request.b.cols() > most_columns;
}
template <class View>
const View& left_of(const GramRequest<View>& request) {
  return is_exchanged(request) ? request.b : request.a;
}
template <class View>
const View& right_of(const GramRequest<View>& request) {
  return is_exchanged(request) ? request.a : request.b;
}

template <Storage Scalar>
void wide_gram(const GramRequest<ConstBlockView<Scalar>>& request) {
  Small& out = *request.out;
  out.resize(request.a.cols(), request.b.cols());
  Small part;
  for (Index at = 0; at < out.cols(); at += most_columns) {
    const Index count = std::min(most_columns, out.cols() - at);
    // Of a block with itself the upper triangle.
    const Index rows = request.of_itself ? at + count : out.rows();
    const GramRequest<ConstBlockView<Scalar>> of_part(request.a.leftCols(rows), request.b.middleCols(at, count), part);
    kernels::grams<Scalar>({&of_part, 1});
    out.block(0, at, rows, count) = part;
  }
}

template <Storage Scalar>
Index values_of(const GramRequest<ConstBlockView<Scalar>>& request) {
  return left_of(request).cols() * small_loops<Scalar>().widths.padded(right_of(request).cols());
}

// The Gram matrices in slabs, one after the other: each part's rows, with sums of its own, added up in order by all.
template <Storage Scalar, class Before>
const double* sums_by_rows(std::span<const GramRequest<ConstBlockView<Scalar>>> requests, Index apart, Index parts,
                           const Before& before) {
  const auto& loops = small_loops<Scalar>();
  double* sums = thread_scratch<double, Scratch::partial_sums>(parts * apart);
  run_parts(parts, [&](Index part) {
    double* own = sums + part * apart;
    std::fill_n(own, apart, 0.0);
    for (const auto& request : requests) {
      if (is_wide(request)) continue;
      const Range range = part_of(request.a.rows(), parts, part, strip_rows);
      before(range);
      if (range.begin < range.end)
        loops.gram(left_of(request), right_of(request), range.begin, range.end, request.of_itself, own);
      own += values_of(request);
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
template <class View>
bool is_short(std::span<const GramRequest<View>> requests, Index values) {
  for (const auto& request : requests) values -= request.a.size() + request.b.size();
  return values > 0;
}

// The same for short blocks: each part makes tiles of the result from all rows, and there is nothing to add up.
template <Storage Scalar>
const double* sums_by_tiles(std::span<const GramRequest<ConstBlockView<Scalar>>> requests, Index apart, Index threads) {
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
  for (const auto& request : requests) {
    if (is_wide(request)) continue;
    const auto &left = left_of(request), &right = right_of(request);
    for (Index at = 0; at < right.cols();) {
      const Index width = loops.widths.next(right.cols() - at), used = std::min(width, right.cols() - at);
      // Of a block with itself the upper triangle.
      const Index rows = request.of_itself ? std::min(at + width, left.cols()) : left.cols();
      for (Index i = 0; i < rows; i += tile_rows) {
        const Index count = std::min(tile_rows, rows - i);
        tiles.push_back({left.middleCols(i, count), right.middleCols(at, used), first + at * left.cols() + i * width,
                         count * width});
      }
      at += width;
    }
    first += values_of(request);
  }
  run_parts(std::ssize(tiles), threads, [&](Index number) {
    const Tile& tile = tiles[static_cast<std::size_t>(number)];
    std::fill_n(tile.to, tile.values, 0.0);
    loops.gram(tile.left, tile.right, 0, tile.left.rows(), false, tile.to);
  });
  return sums;
}

struct Nothing {
  void operator()(const Range&) const {}
};

// Before its rows of a request are multiplied each part does before(rows).
template <Storage Scalar, class Before>
void grams_of_parts(std::span<const GramRequest<ConstBlockView<Scalar>>> requests, const Before& before) {
  const auto& loops = small_loops<Scalar>();
  double work = 0;
  Index apart = 0, at_least = 1;
  for (const auto& request : requests) {
    if (is_wide(request)) {
      wide_gram(request);
    } else {
      apart += values_of(request);
      work += static_cast<double>(request.a.rows()) * static_cast<double>(values_of(request));
      at_least = std::max(at_least, parts_for_block(request.a.rows(), request.a.cols()));
    }
  }
  const Index parts = std::max(at_least, parts_for(work));
  const bool by_tiles = parts > 1 && is_short(requests, parts * apart);
  if constexpr (!std::same_as<Before, Nothing>)
    if (by_tiles) before({0, requests.front().a.rows()});
  const double* first =
      by_tiles ? sums_by_tiles<Scalar>(requests, apart, parts) : sums_by_rows<Scalar>(requests, apart, parts, before);
  for (const auto& request : requests) {
    Small& out = *request.out;
    if (!is_wide(request)) {
      out.resize(request.a.cols(), request.b.cols());
      const bool exchanged = is_exchanged(request);
      const Index rows_made = left_of(request).cols(), cols_made = right_of(request).cols();
      for (Index at = 0; at < cols_made;) {
        const Index width = loops.widths.next(cols_made - at), used = std::min(width, cols_made - at);
        for (Index i = 0; i < (request.of_itself ? std::min(at + width, rows_made) : rows_made); ++i) {
          const double* row = first + at * rows_made + i * width;
          for (Index j = 0; j < used; ++j) (exchanged ? out(at + j, i) : out(i, at + j)) = row[j];
        }
        at += width;
      }
      first += values_of(request);
    }
    if (!request.of_itself) continue;
    for (Index j = 0; j < out.cols(); ++j)
      for (Index i = 0; i < j; ++i) out(j, i) = out(i, j);
  }
}

}  // namespace

template <Storage Scalar>
void grams(std::span<const GramRequest<ConstBlockView<Scalar>>> requests) {
  grams_of_parts<Scalar>(requests, Nothing());
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
  grams_of_parts<Scalar>({&request, 1}, [&](const Range& range) {
    blend_loops<Scalar>().blend(y, b, alpha, range.begin, range.end, out);
  });
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                  \
  template void grams<Scalar>(std::span<const GramRequest<ConstBlockView<Scalar>>>);                 \
  template void blend_and_gram(const ConstBlockView<Scalar>&, const ConstBlockView<Scalar>&, double, \
                               BlockView<Scalar>, Small&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::kernels
