// SPDX-License-Identifier: Apache-2.0
//
// Our own .npz files, a state of something that goes on: named parts, and a `format` that says what it is.
#pragma once

#include <itspace/io.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "atomic_file.hpp"
#include "error.hpp"
#include "npy_writer.hpp"
#include "text_member.hpp"
#include "zip_writer.hpp"

namespace itspace::io {

template <Storage Scalar>
constexpr std::string_view precision_name() {
  return std::is_same_v<Scalar, float> ? "float32" : "float64";
}

struct StateKind {
  std::string_view what;        // "state of a stream"
  std::string_view format;      // "itspace.online/1": the family, and the version that is read
  std::string_view written_by;  // the command
};

// @throws std::runtime_error unless the file is of that kind and version, saying what it is instead.
void check_format(const std::filesystem::path& path, const StateKind& kind);

class StateWriter {
 public:
  StateWriter(AtomicFile& file, const std::filesystem::path& path) : zip_(file, in_quotes(path)) {}

  void text(std::string_view key, std::string_view value) { zip_.add(member(key), npy_text(value), ""); }
  void whole(std::string_view key, std::uint64_t value) { text(key, std::to_string(value)); }
  void scalar(std::string_view key, double value) {
    zip_.add(member(key), npy_header<double>({}), bytes_of(&value, 1));
  }
  void vector(std::string_view key, const Eigen::VectorXd& values) {
    const Index shape[] = {values.size()};
    zip_.add(member(key), npy_header<double>(shape), bytes_of(values.data(), values.size()));
  }
  template <Storage Scalar>
  void matrix(std::string_view key, const Block<Scalar>& values) {
    const Index shape[] = {values.rows(), values.cols()};
    zip_.add(member(key), npy_header<Scalar>(shape), bytes_of(values.data(), values.size()));
  }
  // A long text, as its bytes.
  void bytes(std::string_view key, std::string_view value) {
    const Index shape[] = {static_cast<Index>(value.size())};
    zip_.add(member(key), npy_header("|u1", shape), value);
  }
  void finish() { zip_.finish(); }

 private:
  static std::string member(std::string_view key) { return std::string(key) + ".npy"; }

  ZipWriter zip_;
};

// `remedy` ends the message where a part is not as it was written.
class StateReader {
 public:
  StateReader(const std::filesystem::path& path, std::string_view remedy)
      : path_(path), keys_(array_keys(path)), remedy_(remedy) {}

  bool has(std::string_view key) const { return std::ranges::find(keys_, key) != keys_.end(); }
  std::string text(std::string_view key) const { return read_text(path_, key); }
  std::uint64_t whole(std::string_view key) const {
    const std::string digits = text(key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail("{}: its {} is {}, a whole number was expected; {}", in_quotes(path_), in_quotes(key), in_quotes(digits),
           remedy_);
    }
    return value;
  }
  double scalar(std::string_view key) const { return read<double>(key, 0)(0, 0); }
  Index count(std::string_view key, double value) const {
    constexpr double largest = 9007199254740992.0;  // 2^53
    if (!(value >= 0 && value <= largest && value == std::floor(value))) {
      fail("{}: holds {} in {}, a count was expected; {}", in_quotes(path_), value, in_quotes(key), remedy_);
    }
    return static_cast<Index>(value);
  }
  Index count(std::string_view key) const { return count(key, scalar(key)); }
  std::vector<Index> counts(std::string_view key) const {
    const Eigen::VectorXd values = vector(key);
    std::vector<Index> out;
    for (Index i = 0; i < values.size(); ++i) {
      out.push_back(count(key, values(i)));
    }
    return out;
  }
  std::string bytes(std::string_view key) const {
    std::string out;
    const Block<float> values = read<float>(key, 1);
    for (const float byte : values.reshaped()) {
      out += static_cast<char>(static_cast<unsigned char>(byte));
    }
    return out;
  }
  Eigen::VectorXd vector(std::string_view key) const { return read<double>(key, 1).reshaped(); }
  template <Storage Scalar>
  Block<Scalar> matrix(std::string_view key) const {
    return read<Scalar>(key, 2);
  }
  // @throws unless the array has that shape; by rows and columns as they are in the file.
  Block<double> table(std::string_view key, Index rows, Index cols) const {
    Block<double> values = matrix<double>(key);
    require_shape(key, values.rows(), values.cols(), rows, cols);
    return values;
  }
  void require_shape(std::string_view key, Index rows, Index cols, Index expected_rows, Index expected_cols) const {
    if (rows != expected_rows || cols != expected_cols) {
      fail("array {} of {}: is {} x {}, {} x {} was expected; {}", in_quotes(key), in_quotes(path_), rows, cols,
           expected_rows, expected_cols, remedy_);
    }
  }

 private:
  template <Storage Scalar>
  Block<Scalar> read(std::string_view key, std::size_t dimensions) const {
    const Array array = open_array(path_, key);
    if (array.info().shape.size() != dimensions) {
      fail("array {} of {}: has {} dimensions, {} were expected; {}", in_quotes(key), in_quotes(path_),
           array.info().shape.size(), dimensions, remedy_);
    }
    return array.as<Scalar>().view();
  }

  std::filesystem::path path_;
  std::vector<std::string> keys_;
  std::string_view remedy_;
};

}  // namespace itspace::io
