// SPDX-License-Identifier: Apache-2.0
//
// The kernels of cuda/kernels.hpp as loops of the host, each from the comment that declares it.
#include "cuda/kernels.hpp"

#include <itspace/random.hpp>

#include "cuda/fused.hpp"
#include "stand_in/runtime.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace itspace::cuda::kernels {
namespace {

// Rows are cut in two, so that parts are added.
constexpr Index most_parts = 2;

Index parts_for(Index rows) {
  return std::min(rows, most_parts);
}
Index begin_of(Index part, Index rows) {
  return part * rows / parts_for(rows);
}

template <class Visit>
void each(Index rows, Index cols, const Visit& visit) {
  test::require_current_device();
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) visit(i, j);
}

template <class View>
auto& at(const View& view, Index i, Index j) {
  return view.data[i * view.stride + j];
}

}  // namespace

void check_compiled_for_this_device() {
  test::require_current_device();
}

void add_parts(cudaStream_t, const PartsList& list, Combine combine) {
  for (int job = 0; job < list.jobs; ++job) {
    const Parts& of = list.of[job];
    each(1, of.count, [&](Index, Index e) {
      double sum = 0;
      for (Index part = 0; part < of.parts; ++part) {
        const double value = of.partials[part * of.count + e];
        sum = combine == Combine::sum ? sum + value : std::max(sum, value);
      }
      of.sums[e] = sum;
    });
  }
}

Index gram_parts(Index rows, Index, Index) {
  return parts_for(rows);
}
template <class T>
void gram_partials(cudaStream_t, const GramJobs<T>& jobs) {
  for (int k = 0; k < jobs.jobs; ++k) {
    const GramJob<T>& job = jobs.of[k];
    const Index rows = job.a.rows, p = job.a.cols, q = job.b.cols;
    for (Index part = 0; part < parts_for(rows); ++part)
      each(p, q, [&](Index i, Index j) {
        double sum = 0;
        for (Index row = begin_of(part, rows); row < begin_of(part + 1, rows); ++row)
          sum += double(at(job.a, row, i)) * double(at(job.b, row, j));
        job.partials[(part * p + i) * q + j] = sum;
      });
  }
}

Index blend_parts(Index rows) {
  return parts_for(rows);
}
template <class T>
void blend_norm_partials(cudaStream_t, In<T> y, In<T> b, double* partials) {
  for (Index part = 0; part < parts_for(b.rows); ++part) {
    double square = 0, difference = 0;
    for (Index i = begin_of(part, b.rows); i < begin_of(part + 1, b.rows); ++i)
      for (Index j = 0; j < b.cols; ++j) {
        square += std::pow(double(at(b, i, j)), 2);
        difference += std::pow(double(at(b, i, j)) - double(at(y, i, j)), 2);
      }
    partials[2 * part] = square;
    partials[2 * part + 1] = difference;
  }
}

Index column_parts(Index rows, Index) {
  return parts_for(rows);
}
template <class T>
void column_partials(cudaStream_t, ColumnSum what, In<T> x, const ColumnTerms<T>& terms, double* partials) {
  for (Index part = 0; part < parts_for(x.rows); ++part)
    each(1, x.cols, [&](Index, Index j) {
      double sum = 0;
      for (Index i = begin_of(part, x.rows); i < begin_of(part + 1, x.rows); ++i) {
        const double w = terms.weights != nullptr ? terms.weights[i] : 1, value = double(at(x, i, j));
        const double shifted = terms.shift != nullptr ? double(T(at(x, i, j) - terms.shift[j])) : value;
        switch (what) {
          case ColumnSum::plain:
            sum += w * value;
            break;
          case ColumnSum::square:
            sum += value * value;
            break;
          case ColumnSum::scaled_square:
            sum += std::pow(value * terms.columns[j], 2);
            break;
          case ColumnSum::largest:
            sum = std::max(sum, std::abs(value));
            break;
          case ColumnSum::shifted:
            sum += w * shifted;
            break;
          case ColumnSum::centred_square:
            sum += w * std::pow(shifted - terms.columns[j], 2);
            break;
        }
      }
      partials[part * x.cols + j] = sum;
    });
}

template <class T>
bool multiply(cudaStream_t, In<T> a, const double* m, Out<T> out, bool add) {
  std::vector<double> row(static_cast<std::size_t>(out.cols));
  for (Index i = 0; i < out.rows; ++i) {
    each(1, out.cols, [&](Index, Index j) {
      double sum = add ? double(at(out, i, j)) : 0;
      for (Index k = 0; k < a.cols; ++k) sum += double(at(a, i, k)) * m[k * out.cols + j];
      row[static_cast<std::size_t>(j)] = sum;
    });
    for (Index j = 0; j < out.cols; ++j) at(out, i, j) = T(row[static_cast<std::size_t>(j)]);
  }
  return true;
}

template <class T>
void blend(cudaStream_t, In<T> y, In<T> b, double alpha, Out<T> out) {
  each(out.rows, out.cols,
       [&](Index i, Index j) { at(out, i, j) = T((1 - alpha) * double(at(y, i, j)) + alpha * double(at(b, i, j))); });
}
template <class T>
void scale_columns(cudaStream_t, const double* factors, Out<T> block) {
  each(block.rows, block.cols, [&](Index i, Index j) { at(block, i, j) = T(factors[j] * double(at(block, i, j))); });
}
template <class T>
void subtract_scaled(cudaStream_t, In<T> a, In<T> b, const double* factors, Out<T> out) {
  each(out.rows, out.cols,
       [&](Index i, Index j) { at(out, i, j) = T(double(at(a, i, j)) - double(at(b, i, j)) * factors[j]); });
}
template <class T>
void copy(cudaStream_t, In<T> from, Out<T> to) {
  each(to.rows, to.cols, [&](Index i, Index j) { at(to, i, j) = at(from, i, j); });
}
template <class T>
void fill(cudaStream_t, Out<T> block, T value) {
  each(block.rows, block.cols, [&](Index i, Index j) { at(block, i, j) = value; });
}
template <class T>
void find_not_finite(cudaStream_t, In<T> block, int* flags) {
  each(block.rows, block.cols, [&](Index i, Index j) {
    if (!std::isfinite(at(block, i, j))) flags[i > 0] = 1;
  });
}
template <class T>
void fill_normal(cudaStream_t, std::uint64_t key, Out<T> out) {
  const auto random = std::bit_cast<Random>(key);
  each(out.rows, out.cols,
       [&](Index i, Index j) { at(out, i, j) = T(random.normal(static_cast<std::uint64_t>(i * out.cols + j))); });
}
template <class T>
void subtract_row(cudaStream_t, const double* v, const double* row_factors, double factor, Out<T> out) {
  each(out.rows, out.cols, [&](Index i, Index j) {
    at(out, i, j) = T(factor * (row_factors != nullptr ? row_factors[i] : 1) * (double(at(out, i, j)) - v[j]));
  });
}
template <class T>
void scale_rows(cudaStream_t, In<T> in, const double* row_factors, double factor, Out<T> out) {
  each(out.rows, out.cols, [&](Index i, Index j) {
    at(out, i, j) = T(factor * (row_factors != nullptr ? row_factors[i] : 1) * double(at(in, i, j)));
  });
}
template <class T>
void subtract_product(cudaStream_t, const double* u, const double* v, double factor, Out<T> out) {
  each(out.rows, out.cols, [&](Index i, Index j) { at(out, i, j) = T(double(at(out, i, j)) - factor * u[i] * v[j]); });
}
template <class T>
void add_diagonal(cudaStream_t, const double* diagonal, double constant, In<T> y, Out<T> out) {
  each(out.rows, out.cols, [&](Index i, Index j) {
    at(out, i, j) = T(double(at(out, i, j)) + (diagonal != nullptr ? diagonal[i] : constant) * double(at(y, i, j)));
  });
}

template <class T>
void covariance_facts(cudaStream_t, In<T> a, unsigned long long* found) {
  const auto raise = [](unsigned long long& fact, double size) {
    fact = std::max(fact, std::bit_cast<unsigned long long>(std::abs(size)));
  };
  each(a.rows, a.cols, [&](Index i, Index j) {
    const double here = double(at(a, i, j)), there = double(at(a, j, i));
    raise(found[0], here - there);
    raise(found[1], here);
    if (i == j && here < 0) raise(found[2], here);
  });
}

// As if the sum over k were cut in two.
Index product_scratch(Index m, Index k, Index q) {
  return k > 1 ? 2 * m * q : 0;
}
template <class T>
void product(cudaStream_t, const ProductJob<T>& job, T* scratch) {
  const Index q = job.b.cols, splits = job.k > 1 ? 2 : 1;
  for (Index split = 0; split < splits; ++split)
    each(job.m, q, [&](Index i, Index j) {
      double sum = 0;
      for (Index k = split * job.k / splits; k < (split + 1) * job.k / splits; ++k) {
        const T value = job.transposed ? job.a[k * job.a_stride + i] : job.a[i * job.a_stride + k];
        const T shift = job.shift == nullptr ? T(0) : job.shift[job.transposed ? i : k];
        sum += double(T(value - shift)) * double(at(job.b, k, j));
      }
      if (splits > 1) {
        scratch[(split * job.m + i) * q + j] = T(sum);
        if (split == 0) return;
        sum = double(scratch[i * q + j]) + double(scratch[(job.m + i) * q + j]);
      }
      sum *= job.factor * (job.row_factors != nullptr ? job.row_factors[i] : 1);
      at(job.c, i, j) = T(job.add ? double(at(job.c, i, j)) + sum : sum);
    });
  if (job.k <= 0 && !job.add) fill<T>(nullptr, job.c, T(0));
}

// Only devices of compute capability 9 have these.
template <class T>
Index dense_product_scratch(Index) {
  return 1;
}
template <class T>
bool dense_product(cudaStream_t, const In<T>&, const In<T>&, const Out<T>&, T*) {
  return false;
}
template <class T>
std::size_t features_product_scratch(Index, Index) {
  return 0;
}
template <class T>
bool features_product(cudaStream_t, const In<T>&, const FeaturesTerms<T>&, const In<T>&, const Out<T>&,
                      unsigned char*) {
  return false;
}
template <class T>
FusedPlan plan_fused(int, int, int) {
  return {};
}
template <class T>
FusedPlan plan_fused_features(int, Index, int, int) {
  return {};
}
template <class T>
bool launch_fused(cudaStream_t, const FusedJob<T>&, unsigned char*, double*) {
  return false;
}
template <class T>
bool launch_fused_features(cudaStream_t, const FusedJob<T>&, const FeaturesTerms<T>&, unsigned char*, double*) {
  return false;
}
std::vector<FusedRow> read_fused(const double*, int) {
  return {};
}

void combine(cudaStream_t, double x, const double* a, double y, double diagonal, double* c, Index d) {
  each(d, d, [&](Index i, Index j) {
    const Index e = i * d + j;
    c[e] = x * a[e] + (y != 0 ? y * c[e] : 0) + (i == j ? diagonal : 0);
  });
}
void keep_lower(cudaStream_t, double* a, Index d) {
  each(d, d, [&](Index i, Index j) {
    if (j > i) a[i * d + j] = 0;
  });
}
template <class T>
void widen(cudaStream_t, In<T> a, const double* mean, Out<double> out) {
  each(a.rows, a.cols,
       [&](Index i, Index j) { at(out, i, j) = double(at(a, i, j)) - (mean != nullptr ? mean[j] : 0); });
}
template <class T>
void widen_symmetric(cudaStream_t, In<T> a, double* out) {
  each(a.rows, a.cols,
       [&](Index i, Index j) { out[i * a.rows + j] = (double(at(a, i, j)) + double(at(a, j, i))) / 2; });
}

#define ITSPACE_INSTANTIATE(T)                                                                                        \
  template void gram_partials<T>(cudaStream_t, const GramJobs<T>&);                                                   \
  template void blend_norm_partials<T>(cudaStream_t, In<T>, In<T>, double*);                                          \
  template void column_partials<T>(cudaStream_t, ColumnSum, In<T>, const ColumnTerms<T>&, double*);                   \
  template bool multiply<T>(cudaStream_t, In<T>, const double*, Out<T>, bool);                                        \
  template void blend<T>(cudaStream_t, In<T>, In<T>, double, Out<T>);                                                 \
  template void scale_columns<T>(cudaStream_t, const double*, Out<T>);                                                \
  template void subtract_scaled<T>(cudaStream_t, In<T>, In<T>, const double*, Out<T>);                                \
  template void copy<T>(cudaStream_t, In<T>, Out<T>);                                                                 \
  template void fill<T>(cudaStream_t, Out<T>, T);                                                                     \
  template void find_not_finite<T>(cudaStream_t, In<T>, int*);                                                        \
  template void fill_normal<T>(cudaStream_t, std::uint64_t, Out<T>);                                                  \
  template void subtract_row<T>(cudaStream_t, const double*, const double*, double, Out<T>);                          \
  template void scale_rows<T>(cudaStream_t, In<T>, const double*, double, Out<T>);                                    \
  template void subtract_product<T>(cudaStream_t, const double*, const double*, double, Out<T>);                      \
  template void add_diagonal<T>(cudaStream_t, const double*, double, In<T>, Out<T>);                                  \
  template void covariance_facts<T>(cudaStream_t, In<T>, unsigned long long*);                                        \
  template void product<T>(cudaStream_t, const ProductJob<T>&, T*);                                                   \
  template Index dense_product_scratch<T>(Index);                                                                     \
  template bool dense_product<T>(cudaStream_t, const In<T>&, const In<T>&, const Out<T>&, T*);                        \
  template std::size_t features_product_scratch<T>(Index, Index);                                                     \
  template bool features_product<T>(cudaStream_t, const In<T>&, const FeaturesTerms<T>&, const In<T>&, const Out<T>&, \
                                    unsigned char*);                                                                  \
  template FusedPlan plan_fused<T>(int, int, int);                                                                    \
  template FusedPlan plan_fused_features<T>(int, Index, int, int);                                                    \
  template bool launch_fused<T>(cudaStream_t, const FusedJob<T>&, unsigned char*, double*);                           \
  template bool launch_fused_features<T>(cudaStream_t, const FusedJob<T>&, const FeaturesTerms<T>&, unsigned char*,   \
                                         double*);                                                                    \
  template void widen<T>(cudaStream_t, In<T>, const double*, Out<double>);                                            \
  template void widen_symmetric<T>(cudaStream_t, In<T>, double*);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE

}  // namespace itspace::cuda::kernels
