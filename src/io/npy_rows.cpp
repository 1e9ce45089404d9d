// SPDX-License-Identifier: Apache-2.0
//
// Rows of an .npy, read and not mapped: what was read is in the caller's block and nowhere else, so that a file larger
// than memory leaves no pages behind in the process (docs/scaling.md has the figures for both).
#include <algorithm>
#include <bit>
#include <vector>

#include "convert.hpp"
#include "error.hpp"
#include "row_file.hpp"

namespace itspace::io {
namespace {

template <Storage Data>
class NpyRows : public OpenRowFile<Data> {
 public:
  NpyRows(const RowFile& info, const RegularFile& file) : info_(info), file_(file) {}

  void read(Index first, BlockView<Data> out) override {
    constexpr auto same = std::same_as<Data, float> ? ElementType::float32 : ElementType::float64;
    const bool as_it_lies = info_.type == same && info_.big_endian == (std::endian::native == std::endian::big);
    if (as_it_lies) {
      read_bytes(first, out.rows(), {reinterpret_cast<std::byte*>(out.data()), bytes_of(out.rows())});
      return;
    }
    // Through a little memory of its own, for each thread that reads.
    std::vector<std::byte> buffer;
    constexpr std::size_t most_bytes = std::size_t(1) << 20;
    const Index step = std::max<Index>(1, static_cast<Index>(most_bytes / std::max<std::size_t>(1, bytes_of(1))));
    for (Index row = 0; row < out.rows(); row += step) {
      const Index count = std::min(step, out.rows() - row);
      buffer.resize(bytes_of(count));
      read_bytes(first + row, count, buffer);
      Layout layout = layout_of(info_.type, info_.big_endian, count, info_.cols);
      layout.first_row = first + row;
      out.middleRows(row, count) = convert<Data>(buffer.data(), layout, info_.name());
    }
  }

 private:
  std::size_t bytes_of(Index rows) const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(info_.cols) * size_in_bytes(info_.type);
  }

  void read_bytes(Index first, Index count, std::span<std::byte> out) {
    const std::size_t held = file_.read(info_.offset + bytes_of(first), out);
    if (held < out.size()) {
      fail(
          "{} ended in row {} of {} while rows {} to {} were read: it has become shorter; begin again when nothing "
          "writes to it",
          info_.name(), first + static_cast<Index>(held / std::max<std::size_t>(1, bytes_of(1))), info_.rows, first,
          first + count - 1);
    }
  }

  const RowFile& info_;
  const RegularFile& file_;
};

}  // namespace

RowFile examine_npy(const std::filesystem::path& path) {
  const RegularFile file(path);
  RowFile info;
  info.path = path;
  info.state = file.state();
  const std::string where = info.name();
  std::vector<std::byte> head(npy_prelude_bytes);
  head.resize(file.read(0, head));
  if (!has_npy_magic(head)) {
    fail(
        "{}: is no .npy, it starts with {}; rows are streamed from .npy files, HDF5 datasets (file.h5:/path), and "
        "Parquet and Arrow files, whose names end in .parquet or .arrow",
        where, in_quotes(head));
  }
  info.offset = npy_values_offset(head, where);
  head.resize(static_cast<std::size_t>(info.offset));
  if (file.read(0, head) < head.size()) {
    fail("{}: is truncated, its header should be {} bytes and the file holds {}; copy or save it again", where,
         info.offset, info.state.size);
  }
  const NpyHeader header = parse_npy_header(head, where);
  require_matrix(header.shape, where);
  require_values(header, info.state.size - info.offset, where);
  info.rows = header.shape.empty() ? 1 : header.shape[0];
  info.cols = header.shape.size() < 2 ? 1 : header.shape[1];
  info.flat = header.shape.size() < 2;
  info.type = header.type;
  info.big_endian = header.big_endian;
  if (header.fortran_order && info.rows > 1 && info.cols > 1) {
    fail(
        "{}: is in Fortran order, where the values of a row lie far apart; save it in C order "
        "(numpy.ascontiguousarray) to stream it",
        where);
  }
  return info;
}

template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_npy_rows(const RowFile& info, const RegularFile& file) {
  return std::make_unique<NpyRows<Data>>(info, file);
}
template std::unique_ptr<OpenRowFile<float>> open_npy_rows(const RowFile&, const RegularFile&);
template std::unique_ptr<OpenRowFile<double>> open_npy_rows(const RowFile&, const RegularFile&);

}  // namespace itspace::io
