// SPDX-License-Identifier: Apache-2.0
//
// An input: an array in a file, its values in the type that they are read in, and what it is taken for. Loading decides
// the kind, says why, and checks the values, so that everything behind this door is finite and of the kind it claims.
#pragma once

#include <itspace/block.hpp>
#include <itspace/io.hpp>

#include <Eigen/Core>
#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace itspace::cli {

enum class Kind { automatic, covariance, features, factor };
std::string_view name(Kind kind);  // "auto", "covariance", ...

// mixed: data in float32, blocks and arithmetic in double.
enum class Precision { automatic, float32, mixed, float64 };

// What the user asked for.
struct Request {
  std::string role;       // how messages call it: "target", "start", ...
  std::string as_option;  // the option that sets `as`
  std::filesystem::path path = {};
  std::string key = {};  // the array's name in an .npz
  Kind as = Kind::automatic;
};

// What is asked of the values of a covariance.
struct Checks {
  bool trust = false;        // nothing: not even symmetry
  double ridge = 0;          // to be positive semidefinite once this is added to the diagonal
  bool takes_ridge = false;  // the command has --ridge, so a refusal may recommend it
  bool quiet = false;        // no progress line
};

// With a shape to expect, an array of that very shape (and not square) is a factor under `auto`.
struct FactorShape {
  Index dim, rank;
};

template <Storage Scalar>
struct Input {
  Request request;
  io::Array array;
  HeldBlock<Scalar> values;  // may borrow from `array`
  Kind kind;                 // never automatic
  std::string why;           // the reason, e.g. "square and symmetric"

  Index dim() const { return kind == Kind::factor ? values.rows() : values.cols(); }
  // "covariance of dimension 5", "features, 100 samples of dimension 5", ...
  std::string description() const;
  // "target F.npy: features, 100 samples of dimension 5 (not square)"
  std::string note() const;
};

// How values of one dimension are taken where rows are samples: they may be labels by mistake.
inline constexpr auto as_one_column = "one dimension, taken for one column";

io::Array open(const Request& request);

// Rows `first`, first + 1, ... of a file, which a message is to call `file`.
// @throws std::invalid_argument that names the first value that is not finite by row and column, as a stream does.
template <Storage Scalar>
void check_finite_rows(const ConstBlockView<Scalar>& rows, Index first, const std::string& file);

// @throws std::invalid_argument where the values are not what the kind demands.
template <Storage Scalar>
Input<Scalar> load(const Request& request, io::Array array, const Checks& checks,
                   const std::optional<FactorShape>& expected = std::nullopt);

// "x.npy: row 17, column 4 is -3e+38", of the value that is largest.
template <Storage Scalar>
std::string largest_entry_text(const Input<Scalar>& input);

// What load() asks of a covariance; and the same in two halves, for a command that computes its spectrum anyway.
// @throws std::invalid_argument.
template <Storage Scalar>
void check_entries(const Input<Scalar>& covariance, const Checks& checks);
template <Storage Scalar>
void check_symmetry(const Input<Scalar>& covariance);
template <Storage Scalar>
void check_spectrum(const Input<Scalar>& covariance, const Eigen::VectorXd& eigenvalues);  // all, in descending order

// The mean, where it is known: of features, or the `mu` of an .npz.
// @throws std::invalid_argument naming what is missing.
template <Storage Scalar>
Eigen::VectorXd mean_of(const Input<Scalar>& input);

// One weight per row of the features. @throws std::invalid_argument where the input is no feature set, or the counts
// differ, or a weight is not finite.
template <Storage Scalar>
Eigen::VectorXd load_weights(const std::filesystem::path& path, const Input<Scalar>& features);

// Whether the file holds values that float32 has without rounding: float32 itself, or float16.
bool holds_float32(const io::Array& array);

// Calls run.operator()<Data>() with the type that the data of a run are read in: double where asked for, or by default
// where one of the files needs it (`narrow` says that none does).
template <class Run>
auto with_data_type(Precision asked, bool narrow, Run run) {
  const bool wide = asked == Precision::float64 || (asked == Precision::automatic && !narrow);
  return wide ? run.template operator()<double>() : run.template operator()<float>();
}
template <class Run>
auto with_data_type(Precision asked, std::initializer_list<const io::Array*> arrays, Run run) {
  return with_data_type(
      asked, std::all_of(arrays.begin(), arrays.end(), [](const auto* array) { return holds_float32(*array); }), run);
}

// Refuses two inputs whose dimensions differ, naming both files and both numbers.
template <Storage A, Storage B>
void check_same_dim(const Input<A>& a, const Input<B>& b);

}  // namespace itspace::cli
