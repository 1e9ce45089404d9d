// SPDX-License-Identifier: Apache-2.0
//
// Rows of a Parquet or Arrow IPC file: columns of numbers side by side, or the one column that holds lists of a fixed
// length. The rules are those of the Python package, which has its own reader (python/itspace/_stream.py).
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <stdexcept>

#include "arrow_file.hpp"
#include "convert.hpp"
#include "core/require.hpp"
#include "error.hpp"
#include "row_file.hpp"

namespace itspace::io {
namespace {

struct Mark {
  std::string_view format, bytes;
};

constexpr Mark parquet_mark{"Parquet", "PAR1"}, ipc_mark{"Arrow IPC", "ARROW1"};

std::string bytes_of(const RegularFile& file, std::uint64_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  bytes.resize(file.read(offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// Both kinds begin and end with their mark; that at the end is written last.
void require_marks(const RegularFile& file, const RowFile& info) {
  const bool parquet = info.kind == RowFileKind::parquet;
  const Mark &mark = parquet ? parquet_mark : ipc_mark, &other = parquet ? ipc_mark : parquet_mark;
  const std::string head = bytes_of(file, 0, 8);
  if (head.starts_with(other.bytes)) {
    fail("{}: its name says {}, and it is a file of {}; give it a name that ends in {}", info.name(), mark.format,
         other.format, parquet ? ".arrow" : ".parquet");
  }
  if (head.starts_with("FEA1")) {
    fail("{}: is a Feather file of version 1; write it again as version 2, which is Arrow IPC", info.name());
  }
  if (parquet && head.starts_with("PARE")) {
    fail("{}: is an encrypted Parquet file; write it without encryption", info.name());
  }
  if (!head.starts_with(mark.bytes)) {
    fail("{}: is no {} file, it starts with {}; name a file of the kind that its name says{}", info.name(), mark.format,
         in_quotes(head),
         parquet ? "" : " (not Arrow's stream format, which has no footer: pyarrow.ipc.new_file writes one)");
  }
  const std::uint64_t size = info.state.size;
  const std::string tail = bytes_of(file, size - std::min<std::uint64_t>(size, mark.bytes.size()), mark.bytes.size());
  if (size < 2 * mark.bytes.size() || tail != mark.bytes) {
    fail("{}: is truncated, or still being written: {} files end with {}, and it ends with {}; copy or write it again",
         info.name(), mark.format, in_quotes(mark.bytes), in_quotes(tail));
  }
}

// What the values of all columns are read as: their own type where it is one, else the float that holds each of them as
// NumPy puts them together.
ElementType common_type(const std::vector<ArrowColumn>& columns) {
  const ElementType first = *columns.front().type;
  const auto any = [&](auto holds) {
    return std::any_of(columns.begin(), columns.end(), [&](const ArrowColumn& c) { return holds(*c.type); });
  };
  if (!any([&](ElementType type) { return type != first; })) return first;
  const bool has_float = any([](ElementType t) { return t == ElementType::float16 || t == ElementType::float32; });
  const bool wide = any([](ElementType t) { return size_in_bytes(t) > 2 && t != ElementType::float32; });
  return has_float && !wide ? ElementType::float32 : ElementType::float64;
}

void require_numbers(const std::vector<ArrowColumn>& columns, const RowFile& info) {
  if (columns.empty()) fail("{}: has no columns; rows are made of columns of numbers", info.name());
  if (columns.size() == 1 && columns[0].list_size > 0 && columns[0].type) return;
  for (const ArrowColumn& column : columns) {
    if (!column.type || column.list_size > 0) {
      fail(
          "column {} of {} holds {}; rows are made of columns of numbers, or of one column of lists of a fixed length: "
          "write a file of these alone",
          in_quotes(column.name), info.name(), column.type_text);
    }
  }
}

ArrowFormat format_of(const RowFile& info) {
  return info.kind == RowFileKind::parquet ? ArrowFormat::parquet : ArrowFormat::ipc;
}

void say_what_is_held(RowFile& info, const ArrowFacts& facts) {
  const std::string_view part = info.kind == RowFileKind::parquet ? "row group" : "record batch";
  info.reader_bytes = facts.held_bytes;
  if (facts.footer_bytes > facts.pool_bytes) {
    info.reader_holds = fmt::format("for the footer of {}, with {} {}s of {} columns", info.name(),
                                    facts.starts.size() - 1, part, facts.columns->size());
    info.reader_remedy = fmt::format("write larger {}s", part);
  } else if (facts.held_in_pages) {
    info.reader_holds = fmt::format("to unpack pages of {}", info.name());
  } else {
    info.reader_holds = fmt::format("for a {} of {}, of up to {} rows", part, info.name(), facts.most_rows());
    info.reader_remedy = fmt::format("write smaller {}s", part);
  }
}

// What Arrow says of a file is said with its name, unless the file is not the one it was: that is then the reason.
template <class Call>
auto with_name(const RowFile& info, const RegularFile& file, std::string_view doing, Call call) {
  try {
    return call();
  } catch (const ArrowTooLarge& error) {
    require_unchanged(info.path, info.state, file.state());
    if (info.reader_bytes == 0)
      fail("{}: {}: {}; the file is damaged: write it again", info.name(), doing, error.what());
    fail(
        "{}: its pages do not fit the {} bytes that are planned for reading it; write it with smaller pages "
        "(data_page_size) or row groups",
        info.name(), info.reader_bytes);
  } catch (const std::exception& error) {
    require_unchanged(info.path, info.state, file.state());
    fail("{}: {}: {}; the file is damaged, or written in a way that this Arrow does not know: write it again",
         info.name(), doing, error.what());
  }
}

template <Storage Data>
class ArrowRows : public OpenRowFile<Data> {
 public:
  ArrowRows(const RowFile& info, const RegularFile& file)
      : info_(info), file_(file), facts_(*info.arrow), columns_(*info.arrow->columns) {
    open_ = with_name(info, file, "cannot be opened", [&] {
      return open_arrow_file({file.descriptor(), format_of(info), &facts_});
    });
  }

  void read(Index first, BlockView<Data> out) override {
    for (Index done = 0; done < out.rows();) {
      const Index row = first + done;
      if (row < piece_.first || row >= piece_.first + piece_.count) {
        piece_ = {};
        piece_ = with_name(info_, file_, fmt::format("row {} cannot be read", row), [&] { return open_->load(row); });
      }
      const Index from = row - piece_.first, count = std::min(out.rows() - done, piece_.count - from);
      copy(from, out.middleRows(done, count));
      done += count;
    }
  }

 private:
  void copy(Index from, BlockView<Data> out) const {
    if (columns_[0].list_size > 0) {
      copy_lists(from, out);
    } else {
      copy_columns(from, out);
    }
  }

  void copy_lists(Index from, BlockView<Data> out) const {
    const ArrowValues& values = piece_.columns[0];
    if (piece_.lists.valid != nullptr) {
      for (Index i = 0; i < out.rows(); ++i) {
        require(!piece_.lists.is_null(from + i), info_.name(), ": row ", piece_.first + from + i,
                " is null; all values must be there. Mend or leave out the row");
      }
    }
    if (values.valid != nullptr) {
      for (Index i = 0; i < out.size(); ++i) {
        require_value(values, from * out.cols() + i, from + i / out.cols(), i % out.cols());
      }
    }
    const std::size_t width = size_in_bytes(info_.type);
    const std::byte* const begin = values.values + static_cast<std::size_t>(from * out.cols()) * width;
    if (info_.type == own_type()) {
      std::memcpy(out.data(), begin, static_cast<std::size_t>(out.size()) * width);
    } else {
      Layout layout = layout_of(info_.type, info_.big_endian, out.rows(), out.cols());
      layout.first_row = piece_.first + from;
      out = convert<Data>(begin, layout, info_.name());
    }
  }

  // So many rows at a time that the lines of cache which a column is written to are there for the next.
  void copy_columns(Index from, BlockView<Data> out) const {
    constexpr Index tile = 128;
    for (Index i = 0; i < out.rows(); i += tile) {
      const Index count = std::min(tile, out.rows() - i);
      for (Index j = 0; j < out.cols(); ++j) copy_column(from + i, j, out.middleRows(i, count));
    }
  }

  void copy_column(Index from, Index j, BlockView<Data> out) const {
    const ArrowValues& values = piece_.columns[static_cast<std::size_t>(j)];
    const ElementType type = *columns_[static_cast<std::size_t>(j)].type;
    if (values.valid != nullptr) {
      for (Index i = 0; i < out.rows(); ++i) require_value(values, from + i, from + i, j);
    }
    const std::byte* const begin = values.values + static_cast<std::size_t>(from) * size_in_bytes(type);
    if (type == own_type()) {
      for (Index i = 0; i < out.rows(); ++i) {
        std::memcpy(&out(i, j), begin + static_cast<std::size_t>(i) * sizeof(Data), sizeof(Data));
      }
    } else {
      Layout layout = layout_of(type, info_.big_endian, out.rows(), 1);
      layout.first_row = piece_.first + from;
      layout.first_col = j;
      layout.cols_of_whole = out.cols();
      out.col(j) = convert<Data>(begin, layout, info_.name());
    }
  }

  void require_value(const ArrowValues& values, Index at, Index row, Index col) const {
    if (values.is_null(at)) {
      require(false, info_.name(), ": row ", piece_.first + row, ", column ", col,
              " is null; all values must be there. Mend or leave out the row");
    }
  }

  static constexpr ElementType own_type() {
    return std::same_as<Data, float> ? ElementType::float32 : ElementType::float64;
  }

  const RowFile& info_;
  const RegularFile& file_;
  const ArrowFacts& facts_;
  const std::vector<ArrowColumn>& columns_;
  std::unique_ptr<ArrowFile> open_;
  ArrowPiece piece_;
};

}  // namespace

Index ArrowFacts::most_rows() const {
  Index most = 0;
  for (std::size_t i = 1; i < starts.size(); ++i) most = std::max(most, starts[i] - starts[i - 1]);
  return most;
}

RowFile examine_arrow(const std::filesystem::path& path, RowFileKind kind) {
  RowFile info;
  info.path = path;
  info.kind = kind;
  info.big_endian = std::endian::native == std::endian::big;
  if (!reads_arrow_files()) {
    fail(
        "{}: this itspace was built without Arrow, which reads Parquet and Arrow files; build it where Arrow is found, "
        "or with ITSPACE_PYARROW set to the folder of an installed pyarrow (docs/cmake.md), or save the rows as .npy "
        "files",
        info.name());
  }
  const RegularFile file(path);
  info.state = file.state();
  require_marks(file, info);
  ArrowFacts facts = with_name(info, file, "cannot be opened", [&] {
    return open_arrow_file({file.descriptor(), format_of(info)})->facts();
  });
  const std::vector<ArrowColumn>& columns = *facts.columns;
  require_numbers(columns, info);
  info.rows = facts.rows();
  info.cols = columns[0].list_size > 0 ? columns[0].list_size : static_cast<Index>(columns.size());
  info.type = common_type(columns);
  say_what_is_held(info, facts);
  info.arrow = std::make_shared<const ArrowFacts>(std::move(facts));
  return info;
}

template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_arrow_rows(const RowFile& info, const RegularFile& file) {
  return std::make_unique<ArrowRows<Data>>(info, file);
}
template std::unique_ptr<OpenRowFile<float>> open_arrow_rows(const RowFile&, const RegularFile&);
template std::unique_ptr<OpenRowFile<double>> open_arrow_rows(const RowFile&, const RegularFile&);

}  // namespace itspace::io
