// SPDX-License-Identifier: Apache-2.0
//
// The kinds of files that rows are streamed from, as far as this build reads them, and how a test writes one.
#pragma once

#include <itspace/block.hpp>

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace fixtures {

struct Rows {
  itspace::Index rows = 0, cols = 0;
  std::string type;  // NumPy's name of it
  std::vector<double> values;
};

struct RowKind {
  std::string name;
  std::string ending;  // of a file's name
  std::string inside;  // what follows it
  std::function<void(const std::filesystem::path&, const Rows&)> write;
  bool reads_to_the_last =
      true;  // values come from the file with the rows, so that one that is cut short is noticed there
};

inline void PrintTo(const RowKind& kind, std::ostream* out) {
  *out << kind.name;
}

// .npy first.
std::vector<RowKind> row_kinds();

}  // namespace fixtures
