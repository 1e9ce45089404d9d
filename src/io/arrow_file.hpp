// SPDX-License-Identifier: Apache-2.0
//
// A Parquet or Arrow IPC file without Arrow's headers: what is known of it, and its columns, a piece at a time.
//
// Arrow itself is behind arrow_file.cpp, a module of its own that is loaded with the first such file
// (arrow_loader.cpp): its libraries take 15 ms and as many MiB, which a program that reads other files should not pay
// for.
#pragma once

#include <itspace/block.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "element_type.hpp"

namespace itspace::io {

enum class ArrowFormat { parquet, ipc };

struct ArrowColumn {
  std::string name;
  std::string type_text;            // as Arrow calls it
  std::optional<ElementType> type;  // of a number, or of the numbers in a list of fixed length; else none
  Index list_size = 0;              // 0: not a list

  bool operator==(const ArrowColumn&) const = default;
};

struct ArrowFacts {
  std::shared_ptr<const std::vector<ArrowColumn>> columns;  // shared by files that have the same
  // The first row of each row group or record batch, and behind the last one the number of all.
  std::vector<Index> starts{0};
  std::uint64_t held_bytes = 0;    // while rows are read, at most, with Arrow itself
  std::uint64_t pool_bytes = 0;    // of these, what Arrow may take for values: more is refused
  std::uint64_t footer_bytes = 0;  // and what the list of all row groups and columns takes
  bool held_in_pages = false;      // of a list's row group only some pages are unpacked at a time

  Index rows() const { return starts.back(); }
  Index most_rows() const;  // of a row group or record batch
};

// Some values of a column, one after the other; those of a list of fixed length are rows.
struct ArrowValues {
  const std::byte* values = nullptr;
  // A bit for each, from bit `first_bit` on: 0 is null. Without it none is.
  const std::uint8_t* valid = nullptr;
  Index first_bit = 0;

  bool is_null(Index i) const {
    const Index bit = first_bit + i;
    return valid != nullptr && (valid[bit / 8] >> (bit % 8) & 1) == 0;
  }
};

// Rows that are in memory until the next ones are loaded.
struct ArrowPiece {
  Index first = 0, count = 0;
  std::vector<ArrowValues> columns;
  ArrowValues lists;  // which rows of a column of lists are null; it has no values
};

// The file needs more memory than was planned for it.
struct ArrowTooLarge : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All members throw std::runtime_error with what Arrow says, which names no file and no remedy.
class ArrowFile {
 public:
  virtual ~ArrowFile() = default;

  virtual ArrowFacts facts() = 0;
  // The piece with this row. Rows in order are the fastest. @pre the file was opened with its facts.
  virtual ArrowPiece load(Index row) = 0;
};

struct ArrowRequest {
  int descriptor = -1;  // stays the caller's
  ArrowFormat format = ArrowFormat::parquet;
  const ArrowFacts* facts = nullptr;  // those of the first look, once they are known
};
std::unique_ptr<ArrowFile> open_arrow_file(const ArrowRequest& request);
// Whether this library was built with Arrow. @throws std::runtime_error where it was, and Arrow is not there.
bool reads_arrow_files();

// What the module offers under the name below.
using OpenArrowFile = ArrowFile*(const ArrowRequest&);
inline constexpr const char* open_arrow_file_symbol = "itspace_open_arrow_file";

}  // namespace itspace::io
