// SPDX-License-Identifier: Apache-2.0
//
// An input: an array in a file, its values in the precision of the run, and what it is taken for. Loading decides the
// kind, says why, and checks the values, so that everything behind this door is finite and of the kind it claims.
#pragma once

#include <itspace/block.hpp>
#include <itspace/io.hpp>

#include <Eigen/Core>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace itspace::cli {

enum class Kind { automatic, covariance, features, factor };
std::string_view name(Kind kind);  // "auto", "covariance", ...

enum class Precision { automatic, float32, float64 };

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

io::Array open(const Request& request);

// @throws std::invalid_argument where the values are not what the kind demands.
template <Storage Scalar>
Input<Scalar> load(const Request& request, io::Array array, const Checks& checks,
                   const std::optional<FactorShape>& expected = std::nullopt);

// What load() asks of a covariance, in two halves, for a command that computes its spectrum anyway.
// @throws std::invalid_argument.
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

// float32 where asked for, or by default where every one of the files holds float32 or float16.
bool runs_in_float32(Precision asked, std::initializer_list<const io::Array*> arrays);

// Calls run.operator()<float>() or <double>().
template <class Run>
auto in_precision(bool float32, Run run) {
  return float32 ? run.template operator()<float>() : run.template operator()<double>();
}

// Refuses two inputs whose dimensions differ, naming both files and both numbers.
template <Storage Scalar>
void check_same_dim(const Input<Scalar>& a, const Input<Scalar>& b);

}  // namespace itspace::cli
