// SPDX-License-Identifier: Apache-2.0
//
// Rows from a mapping or from a pipe, and rows into a file that appears whole.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <itspace/row_stream.hpp>
#include <span>
#include <stdexcept>
#include <vector>

#include "array_open.hpp"
#include "atomic_file.hpp"
#include "convert.hpp"
#include "crc.hpp"
#include "error.hpp"
#include "npy_header.hpp"
#include "npy_writer.hpp"

namespace itspace::io {
namespace {

constexpr std::string_view input_name = "standard input";

bool is_standard_stream(const std::filesystem::path& path) {
  return path == "-";
}

// As many bytes as there are, up to the size of `out`: a pipe gives them in pieces of its own.
std::size_t read_input(std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t count = ::read(STDIN_FILENO, out.data() + filled, out.size() - filled);
    if (count > 0) {
      filled += static_cast<std::size_t>(count);
    } else if (count == 0) {
      break;
    } else if (errno != EINTR) {
      fail("{} cannot be read: {}; pipe an .npy file into it", input_name, reason(errno));
    }
  }
  return filled;
}

NpyHeader read_input_header() {
  std::vector<std::byte> head(npy_prelude_bytes);
  head.resize(read_input(head));
  if (head.empty()) {
    fail("{} is empty (0 bytes); pipe an .npy file into it", input_name);
  }
  const std::size_t offset = npy_values_offset(head, input_name);
  head.resize(offset);
  const std::size_t held = npy_prelude_bytes + read_input(std::span(head).subspan(npy_prelude_bytes));
  if (held < offset) {
    fail("{} is truncated, its header should be {} bytes and it ended after {}; send it again", input_name, offset,
         held);
  }
  NpyHeader header = parse_npy_header(head, input_name);
  require_matrix(header.shape, input_name);
  if (header.fortran_order && header.shape.size() == 2 && header.shape[0] > 1 && header.shape[1] > 1) {
    fail(
        "{} is in Fortran order, whose rows are complete only at its end; save it in C order "
        "(numpy.ascontiguousarray), or name a file",
        input_name);
  }
  return header;
}

}  // namespace

struct RowReader::Source {
  ArrayInfo info;
  Array array;                            // of a file
  std::optional<StoredMember> unchecked;  // its checksum is gathered with the rows, and asked with the last one
  std::uint32_t crc = 0;
  bool stream = false;
  ElementType type = ElementType::float64;  // of a stream
  std::vector<std::byte> buffer;
  Index next = 0;

  template <Storage Scalar>
  void read_stream(BlockView<Scalar> out, Index all_rows);
  void add_to_checksum(Index count, Index all_rows);
};

RowReader::RowReader(const std::filesystem::path& path) : source_(std::make_unique<Source>()) {
  if (!is_standard_stream(path)) {
    Source& source = *source_;
    source.array = open_array(path, {}, source.unchecked);
    require_matrix(source.array.info().shape, in_quotes(path));
    source.info = source.array.info();
    if (source.unchecked) {
      // Rows in Fortran order are not read in the order of the file.
      const bool in_order = !source.info.fortran_order || rows() <= 1 || cols() <= 1;
      source.crc = crc_of(
          source.unchecked->bytes.first(in_order ? source.unchecked->values_offset : source.unchecked->bytes.size()));
      if (!in_order) {
        require_crc(source.crc, source.unchecked->crc, source.unchecked->where);
        source.unchecked.reset();
      }
    }
    return;
  }
  const NpyHeader header = read_input_header();
  source_->stream = true;
  source_->type = header.type;
  source_->info = {path,
                   "",
                   std::string(name(header.type)),
                   header.shape,
                   header.fortran_order,
                   header.big_endian,
                   header.value_bytes};
}

RowReader::~RowReader() = default;
RowReader::RowReader(RowReader&&) noexcept = default;

const ArrayInfo& RowReader::info() const {
  return source_->info;
}

Index RowReader::rows() const {
  return info().shape.empty() ? 1 : info().shape[0];
}

Index RowReader::cols() const {
  return info().shape.size() < 2 ? 1 : info().shape[1];
}

template <Storage Scalar>
void RowReader::Source::read_stream(BlockView<Scalar> out, Index all_rows) {
  const std::size_t row_bytes = static_cast<std::size_t>(out.cols()) * size_in_bytes(type);
  buffer.resize(static_cast<std::size_t>(out.rows()) * row_bytes);
  const std::size_t held = read_input(buffer);
  if (held < buffer.size()) {
    fail("{} is truncated: its header promises {} rows (shape {}, {}), it ended in row {}; send it again", input_name,
         all_rows, shape_text(info.shape), info.type, next + static_cast<Index>(held / row_bytes));
  }
  Layout layout = layout_of(type, info.big_endian, out.rows(), out.cols());
  layout.first_row = next;
  out = convert<Scalar>(buffer.data(), layout, input_name);
}

// The next `count` rows, before they are handed out.
void RowReader::Source::add_to_checksum(Index count, Index all_rows) {
  if (!unchecked) {
    return;
  }
  const auto values = unchecked->bytes.subspan(unchecked->values_offset);
  const std::size_t row_bytes = all_rows > 0 ? values.size() / static_cast<std::size_t>(all_rows) : 0;
  crc = crc_of(values.subspan(static_cast<std::size_t>(next) * row_bytes, static_cast<std::size_t>(count) * row_bytes),
               crc);
  if (next + count == all_rows) {
    require_crc(crc, unchecked->crc, unchecked->where);
    unchecked.reset();
  }
}

template <Storage Scalar>
Index RowReader::read(BlockView<Scalar> out) {
  if (out.cols() != cols()) {
    throw std::invalid_argument(fmt::format(
        "rows of {} values cannot be read into a block of {} columns; make them equal", cols(), out.cols()));
  }
  const Index count = std::min(out.rows(), rows() - source_->next);
  source_->add_to_checksum(count, rows());
  if (count > 0 && cols() > 0) {
    BlockView<Scalar> part = out.topRows(count);
    if (source_->stream) {
      source_->read_stream<Scalar>(part, rows());
    } else {
      source_->array.read_rows<Scalar>(source_->next, part);
    }
  }
  source_->next += count;
  return count;
}

template ITSPACE_API Index RowReader::read<float>(BlockView<float>);
template ITSPACE_API Index RowReader::read<double>(BlockView<double>);

template <Storage Scalar>
struct RowWriter<Scalar>::Sink {
  AtomicFile file;
  Index rows, cols;
  Index written = 0;
};

template <Storage Scalar>
RowWriter<Scalar>::RowWriter(const std::filesystem::path& path, Index rows, Index cols)
    : sink_(new Sink{AtomicFile(is_standard_stream(path) ? "/dev/stdout" : path), rows, cols}) {
  sink_->file.write(npy_header<Scalar>(std::vector<Index>{rows, cols}));
}

template <Storage Scalar>
RowWriter<Scalar>::~RowWriter() = default;
template <Storage Scalar>
RowWriter<Scalar>::RowWriter(RowWriter&&) noexcept = default;

template <Storage Scalar>
void RowWriter<Scalar>::write(const ConstBlockView<Scalar>& rows) {
  if (rows.cols() != sink_->cols || rows.rows() > sink_->rows - sink_->written) {
    throw std::invalid_argument(fmt::format("{} rows of {} values do not fit behind {} of {} rows of {}", rows.rows(),
                                            rows.cols(), sink_->written, sink_->rows, sink_->cols));
  }
  for (Index i = 0; i < rows.rows(); ++i) {
    sink_->file.write(bytes_of(rows.data() + i * rows.outerStride(), rows.cols()));
  }
  sink_->written += rows.rows();
}

template <Storage Scalar>
void RowWriter<Scalar>::commit() {
  if (sink_->written != sink_->rows) {
    throw std::invalid_argument(
        fmt::format("{} of {} rows were written; write all of them before commit", sink_->written, sink_->rows));
  }
  sink_->file.commit();
}

template class ITSPACE_API RowWriter<float>;
template class ITSPACE_API RowWriter<double>;

}  // namespace itspace::io
