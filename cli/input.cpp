// SPDX-License-Identifier: Apache-2.0
//
// Opening, classifying and checking inputs.
#include "input.hpp"

#include "progress.hpp"
#include "text.hpp"

#include <itspace/covariance.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

namespace itspace::cli {

namespace {

// What may be demanded of a covariance: it was rounded to its file's type, and may have been added up in float32
// whatever that is. The same as everywhere in the library and in Python.
double rounding_of(const io::Array& array) {
  return std::max(array.epsilon(), rounded_to_float);
}

// Beyond rounding, but far too little for a square of samples to have by chance: whoever has such an array means a
// covariance, and one that is spoilt.
template <Storage Scalar>
bool is_nearly_symmetric(const ConstBlockView<Scalar>& values, const Asymmetry& worst) {
  constexpr double nearly = 0.01;
  return values.rows() > 1 && (values.diagonal().array() >= 0).all() &&
         worst.size <= nearly * static_cast<double>(values.diagonal().maxCoeff());
}

template <Storage Scalar>
std::string entry_text(const std::string& file, Index row, Index col, Scalar value) {
  return fmt::format("{}: row {}, column {} is {}", file, row, col, value);
}

struct Verdict {
  Kind kind;
  std::string why;
};

template <Storage Scalar>
Verdict classify(const Request& request, const io::Array& array, const HeldBlock<Scalar>& values,
                 const std::optional<FactorShape>& expected) {
  const bool flat = array.info().shape.size() < 2;
  if (request.as != Kind::automatic) {
    const std::string why = "as " + request.as_option + " says";
    return {request.as, flat && request.as == Kind::features ? fmt::format("{}; {}", why, as_one_column) : why};
  }
  if (array.info().key == "sigma") return {Kind::covariance, "named sigma in an .npz"};
  if (expected && values.rows() == expected->dim && values.cols() == expected->rank && values.cols() != values.rows())
    return {Kind::factor,
            fmt::format("{} rows and {} columns, the dimension and the rank", expected->dim, expected->rank)};
  if (values.rows() != values.cols())
    return {Kind::features, fmt::format("{}: one sample per row", flat ? as_one_column : "not square")};
  if (is_symmetric<Scalar>(values.view(), rounding_of(array))) return {Kind::covariance, "square and symmetric"};
  const Asymmetry worst = largest_asymmetry<Scalar>(values.view());
  if (is_nearly_symmetric<Scalar>(values.view(), worst))
    misuse(fmt::format(
               "{} is square and nearly symmetric: entries [{}, {}] and [{}, {}] differ by {:.3g} (limit {:.3g}), so "
               "that it may be a covariance or samples",
               quoted(request.path), worst.row, worst.col, worst.col, worst.row, worst.size,
               symmetry_limit<Scalar>(values.view(), rounding_of(array))),
           fmt::format("average it with its transpose, or say {} features", request.as_option));
  return {Kind::features, fmt::format("square but not symmetric: one sample per row; a covariance needs {} covariance",
                                      request.as_option)};
}

template <Storage Scalar>
void check_kind(const Input<Scalar>& input, const Checks& checks) {
  const Index rows = input.values.rows(), cols = input.values.cols();
  const auto path = quoted(input.request.path);
  if (input.kind == Kind::features && rows < 2)
    misuse(fmt::format("{} holds {} {} ({}), but a covariance needs at least 2", path, rows,
                       rows == 1 ? "sample" : "samples", shape_text(rows, cols)),
           fmt::format("give features with one sample per row, or say what it is with {}", input.request.as_option));
  if (input.kind != Kind::covariance) return;
  if (rows != cols)
    misuse(fmt::format("{} is {}, but a covariance is square", path, shape_text(rows, cols)),
           fmt::format("give a d x d matrix, or samples in rows with {} features", input.request.as_option));
  if (!checks.trust) check_entries(input, checks);
}

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::covariance:
      return "covariance";
    case Kind::features:
      return "features";
    case Kind::factor:
      return "factor";
    case Kind::automatic:
      break;
  }
  return "auto";
}

template <Storage Scalar>
std::string Input<Scalar>::description() const {
  switch (kind) {
    case Kind::features:
      return fmt::format("features, {} samples of dimension {}", values.rows(), values.cols());
    case Kind::factor:
      return fmt::format("factor, dimension {} and {} columns", values.rows(), values.cols());
    default:
      return fmt::format("covariance of dimension {}", values.rows());
  }
}

template <Storage Scalar>
std::string Input<Scalar>::note() const {
  return fmt::format("{} {}: {} ({})", request.role, quoted(request.path), description(), why);
}

io::Array open(const Request& request) {
  return io::open_array(request.path, request.key);
}

template <Storage Scalar>
void check_finite_rows(const ConstBlockView<Scalar>& rows, Index first, const std::string& file) {
  try {
    check_finite<Scalar>(rows, file);  // on all threads
    return;
  } catch (const std::invalid_argument&) {
  }
  for (Index i = 0; i < rows.rows(); ++i)
    for (Index j = 0; j < rows.cols(); ++j)
      if (!std::isfinite(rows(i, j)))
        throw std::invalid_argument(entry_text(file, first + i, j, rows(i, j)) +
                                    "; all values must be finite. Remove or replace such rows first");
}

template <Storage Scalar>
Input<Scalar> load(const Request& request, io::Array array, const Checks& checks,
                   const std::optional<FactorShape>& expected) {
  if (array.rows() == 0 || array.cols() == 0)
    misuse(fmt::format("{} is {}, which holds no values", quoted(request.path), shape_text(array.rows(), array.cols())),
           "give an array with at least one row and one column");
  auto values = array.as<Scalar>();
  check_finite_rows<Scalar>(values.view(), 0, quoted(request.path));
  auto [kind, why] = classify<Scalar>(request, array, values, expected);
  Input<Scalar> input{request, std::move(array), std::move(values), kind, std::move(why)};
  check_kind(input, checks);
  return input;
}

template <Storage Scalar>
void check_entries(const Input<Scalar>& covariance, const Checks& checks) {
  Progress progress(!checks.quiet && covariance.values.rows() >= long_work);
  progress.show(fmt::format("checking {}", quoted(covariance.request.path)));
  try {
    check_covariance<Scalar>(covariance.values.view(), rounding_of(covariance.array), checks.ridge);
  } catch (const std::invalid_argument& error) {
    misuse(
        fmt::format("{}: {}", quoted(covariance.request.path), error.what()),
        checks.takes_ridge ? "--ridge X adds X to its diagonal, --trust skips this check" : "--trust skips this check");
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(
        fmt::format("{}: there is no memory to check that it is positive semidefinite: that takes copies of its {} in "
                    "float64\n--trust skips this check, for a matrix that is known to be a covariance; or raise the "
                    "limit of memory",
                    quoted(covariance.request.path), shape_text(covariance.values.rows(), covariance.values.cols())));
  }
}

template <Storage Scalar>
void check_symmetry(const Input<Scalar>& covariance) {
  try {
    check_symmetric<Scalar>(covariance.values.view(), rounding_of(covariance.array));
  } catch (const std::invalid_argument& error) {
    misuse(fmt::format("{}: {}", quoted(covariance.request.path), error.what()), "--trust skips this check");
  }
}

template <Storage Scalar>
void check_spectrum(const Input<Scalar>& covariance, const Eigen::VectorXd& eigenvalues) {
  try {
    check_eigenvalues(eigenvalues[eigenvalues.size() - 1], eigenvalues[0], covariance.dim(),
                      rounding_of(covariance.array));
  } catch (const std::invalid_argument& error) {
    misuse(fmt::format("{}: {}", quoted(covariance.request.path), error.what()), "--trust skips this check");
  }
}

template <Storage Scalar>
std::string largest_entry_text(const Input<Scalar>& input) {
  const auto values = input.values.view();
  Index row = 0, col = 0;
  values.cwiseAbs().maxCoeff(&row, &col);
  return entry_text(quoted(input.request.path), row, col, values(row, col));
}

template <Storage Scalar>
Eigen::VectorXd mean_of(const Input<Scalar>& input) {
  if (input.kind == Kind::features) return mean<Scalar>(input.values.view());
  const auto keys = io::array_keys(input.request.path);
  if (std::find(keys.begin(), keys.end(), "mu") == keys.end())
    misuse(fmt::format("--means needs a mean, and {} ({}) has none", quoted(input.request.path), name(input.kind)),
           "give features, or an .npz with the keys mu and sigma, or leave out --means");
  const io::Array array = io::open_array(input.request.path, "mu");
  const auto values = array.as<double>();
  const Index size = values.rows() * values.cols();
  if (size != input.dim() || std::min(values.rows(), values.cols()) != 1)
    misuse(fmt::format("mu in {} is {}, but its covariance has dimension {}", quoted(input.request.path),
                       shape_text(values.rows(), values.cols()), input.dim()),
           "give one mean for each coordinate");
  check_finite<double>(values.view(), "mu in " + quoted(input.request.path));
  return Eigen::VectorXd(values.view().reshaped());
}

template <Storage Scalar>
Eigen::VectorXd load_weights(const std::filesystem::path& path, const Input<Scalar>& features) {
  if (features.kind != Kind::features)
    misuse(fmt::format("--weights are for the rows of features, and {} is taken for a {}",
                       quoted(features.request.path), name(features.kind)),
           "leave out --weights, or give features");
  const io::Array array = io::open_array(path);
  const auto values = array.as<double>();
  const Index size = values.rows() * values.cols();
  if (size != features.values.rows() || std::min(values.rows(), values.cols()) != 1)
    misuse(fmt::format("{} holds {} weights ({}), but {} has {} samples", quoted(path), size,
                       shape_text(values.rows(), values.cols()), quoted(features.request.path), features.values.rows()),
           "give one weight for each row of the features");
  check_finite<double>(values.view(), quoted(path));
  return Eigen::VectorXd(values.view().reshaped());
}

bool holds_float32(const io::Array& array) {
  return array.info().type == "float32" || array.info().type == "float16";
}

template <Storage A, Storage B>
void check_same_dim(const Input<A>& a, const Input<B>& b) {
  if (a.dim() == b.dim()) return;
  misuse(fmt::format("{} {} has dimension {} ({}), but {} {} has dimension {} ({})", a.request.role,
                     quoted(a.request.path), a.dim(), name(a.kind), b.request.role, quoted(b.request.path), b.dim(),
                     name(b.kind)),
         fmt::format("both must have the same coordinates; say what an array is with {}{}", a.request.as_option,
                     a.request.as_option == b.request.as_option ? "" : " and " + b.request.as_option));
}

#define ITSPACE_INSTANTIATE(Scalar)                                                                                 \
  template struct Input<Scalar>;                                                                                    \
  template Input<Scalar> load<Scalar>(const Request&, io::Array, const Checks&, const std::optional<FactorShape>&); \
  template void check_finite_rows<Scalar>(const ConstBlockView<Scalar>&, Index, const std::string&);                \
  template void check_entries<Scalar>(const Input<Scalar>&, const Checks&);                                         \
  template void check_symmetry<Scalar>(const Input<Scalar>&);                                                       \
  template void check_spectrum<Scalar>(const Input<Scalar>&, const Eigen::VectorXd&);                               \
  template std::string largest_entry_text<Scalar>(const Input<Scalar>&);                                            \
  template Eigen::VectorXd mean_of<Scalar>(const Input<Scalar>&);                                                   \
  template Eigen::VectorXd load_weights<Scalar>(const std::filesystem::path&, const Input<Scalar>&);
ITSPACE_INSTANTIATE(float)
ITSPACE_INSTANTIATE(double)
#undef ITSPACE_INSTANTIATE
template void check_same_dim(const Input<float>&, const Input<float>&);
template void check_same_dim(const Input<float>&, const Input<double>&);
template void check_same_dim(const Input<double>&, const Input<float>&);
template void check_same_dim(const Input<double>&, const Input<double>&);

}  // namespace itspace::cli
