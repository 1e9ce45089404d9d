// SPDX-License-Identifier: Apache-2.0
//
// Parquet and Arrow IPC files by Arrow's C++ libraries: this file and the two headers beside it (arrow_pool.hpp,
// arrow_descriptor.hpp) are the only ones that include theirs.
//
// What is in memory is bounded and known from the file's footer. Columns of a Parquet file are unpacked one after the
// other for a whole row group: their values lie apart, so a row needs a page of each, and a page is often all that a
// row group has of a column. A column of lists holds whole rows and is unpacked as they go by. Of an Arrow file a
// record batch is read at a time. All of it comes out of a pool that refuses to give more than was said.
#include "arrow_file.hpp"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include <itspace/export.hpp>

#include "arrow_descriptor.hpp"
#include "arrow_pool.hpp"
#include "flat_table.hpp"

namespace itspace::io {
namespace {

constexpr std::int64_t mib = std::int64_t(1) << 20;
constexpr std::int64_t of_libraries = 24 * mib;    // Arrow's code and tables once they are loaded, measured: 19 to 22
constexpr std::int64_t stream_buffer = mib;        // of the file, for each column that is read
constexpr std::int64_t list_batch = mib;           // the values of lists that are unpacked at a time
constexpr std::int64_t most_of_a_page = 16 * mib;  // of a column of lists; writers make pages of 1 MiB

void check(const arrow::Status& status) {
  if (status.IsOutOfMemory()) throw ArrowTooLarge(status.message());
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <class Value>
Value checked(arrow::Result<Value> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

std::optional<ElementType> number_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::HALF_FLOAT:
      return ElementType::float16;
    case arrow::Type::FLOAT:
      return ElementType::float32;
    case arrow::Type::DOUBLE:
      return ElementType::float64;
    case arrow::Type::INT8:
      return ElementType::int8;
    case arrow::Type::INT16:
      return ElementType::int16;
    case arrow::Type::INT32:
      return ElementType::int32;
    case arrow::Type::INT64:
      return ElementType::int64;
    case arrow::Type::UINT8:
      return ElementType::uint8;
    case arrow::Type::UINT16:
      return ElementType::uint16;
    case arrow::Type::UINT32:
      return ElementType::uint32;
    case arrow::Type::UINT64:
      return ElementType::uint64;
    default:
      return std::nullopt;
  }
}

std::vector<ArrowColumn> columns_of(const arrow::Schema& schema) {
  std::vector<ArrowColumn> columns;
  for (const auto& field : schema.fields()) {
    ArrowColumn column{field->name(), field->type()->ToString(), number_type(*field->type())};
    if (field->type()->id() == arrow::Type::FIXED_SIZE_LIST) {
      const auto& list = static_cast<const arrow::FixedSizeListType&>(*field->type());
      column.list_size = list.list_size();
      if (column.list_size > 0) column.type = number_type(*list.value_type());
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

bool is_of(const arrow::DataType& type, const ArrowColumn& column) {
  if (column.list_size == 0) return number_type(type) == column.type;
  if (type.id() != arrow::Type::FIXED_SIZE_LIST) return false;
  const auto& list = static_cast<const arrow::FixedSizeListType&>(type);
  return list.list_size() == column.list_size && number_type(*list.value_type()) == column.type;
}

bool holds_lists(const std::vector<ArrowColumn>& columns) {
  return columns.size() == 1 && columns.front().list_size > 0 && columns.front().type;
}

// A damaged file claims any number, and what is made of it must not overflow.
constexpr std::int64_t most_plausible = std::int64_t(1) << 48;

// One more row group or record batch.
void add_part(ArrowFacts& facts, std::int64_t rows) {
  const ArrowColumn* const first = facts.columns->empty() ? nullptr : &facts.columns->front();
  const std::int64_t values =
      first == nullptr ? 1 : std::max<std::int64_t>(first->list_size, std::ssize(*facts.columns));
  if (rows < 0 || rows > most_plausible / values - facts.starts.back()) {
    throw std::runtime_error("a part of it claims " + std::to_string(rows) + " rows");
  }
  facts.starts.push_back(facts.starts.back() + rows);
}

// Of what a row takes in memory, with the bits that say which values are null.
std::int64_t unpacked_bytes(const std::vector<ArrowColumn>& columns, std::int64_t rows) {
  constexpr std::int64_t of_an_array = 5120;  // the rest of a page, and the objects themselves
  std::int64_t bytes = 0;
  for (const ArrowColumn& column : columns) {
    const auto width = static_cast<std::int64_t>(column.type ? size_in_bytes(*column.type) : 0);
    const std::int64_t values = rows * std::max<std::int64_t>(1, column.list_size);
    bytes += values * width + values / 8 + rows / 8 + of_an_array;
  }
  return bytes;
}

ArrowValues nulls_of(const arrow::ArrayData& data) {
  ArrowValues out;
  if (data.GetNullCount() > 0 && data.buffers[0] != nullptr) {
    out.valid = data.buffers[0]->data();
    out.first_bit = data.offset;
  }
  return out;
}

ArrowValues values_of(const arrow::ArrayData& data, std::size_t width) {
  ArrowValues out = nulls_of(data);
  if (data.buffers[1] != nullptr) {
    out.values =
        reinterpret_cast<const std::byte*>(data.buffers[1]->data()) + static_cast<std::size_t>(data.offset) * width;
  }
  return out;
}

class FileBase : public ArrowFile {
 public:
  explicit FileBase(const ArrowRequest& request)
      : facts_(request.facts),
        pool_(facts_ == nullptr ? std::numeric_limits<std::int64_t>::max()
                                : static_cast<std::int64_t>(facts_->pool_bytes)),
        file_(std::make_shared<Descriptor>(request.descriptor, &pool_)) {}

 protected:
  // The number of the row group or record batch with this row.
  std::size_t part_of(Index row) const {
    const auto behind = std::upper_bound(facts_->starts.begin(), facts_->starts.end(), row);
    return static_cast<std::size_t>(behind - facts_->starts.begin()) - 1;
  }
  Index begin_of(std::size_t part) const { return facts_->starts[part]; }
  Index rows_of(std::size_t part) const { return facts_->starts[part + 1] - facts_->starts[part]; }

  // `arrays`, one for each column, stay until the next ones are kept.
  ArrowPiece keep(std::vector<std::shared_ptr<arrow::Array>> arrays, Index first, Index count) {
    ArrowPiece piece{first, count, {}, {}};
    arrays_ = std::move(arrays);
    if (arrays_.size() != facts_->columns->size()) throw std::runtime_error("it has other columns than it had");
    for (std::size_t j = 0; j < arrays_.size(); ++j) {
      const ArrowColumn& column = (*facts_->columns)[j];
      const arrow::ArrayData* data = arrays_[j]->data().get();
      if (data->length != count) {
        throw std::runtime_error("column '" + column.name + "' has " + std::to_string(data->length) +
                                 " rows where there should be " + std::to_string(count));
      }
      if (!is_of(*data->type, column)) throw std::runtime_error("it has other types than it had");
      const std::size_t width = size_in_bytes(*column.type);
      if (column.list_size == 0) {
        piece.columns.push_back(values_of(*data, width));
        continue;
      }
      piece.lists = nulls_of(*data);
      const Index skipped = data->offset * column.list_size;
      ArrowValues values = values_of(*data->child_data[0], width);
      if (values.values != nullptr) values.values += static_cast<std::size_t>(skipped) * width;
      values.first_bit += skipped;
      piece.columns.push_back(values);
    }
    return piece;
  }
  void let_go() { arrays_.clear(); }

  const ArrowFacts* facts_;
  LimitedPool pool_;
  std::shared_ptr<Descriptor> file_;

 private:
  std::vector<std::shared_ptr<arrow::Array>> arrays_;
};

class ParquetFile : public FileBase {
 public:
  explicit ParquetFile(const ArrowRequest& request) : FileBase(request) {
    parquet::ReaderProperties reading(&pool_);
    reading.enable_buffered_stream();
    reading.set_buffer_size(stream_buffer);
    reading.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties unpacking(/*use_threads=*/false);
    unpacking.set_pre_buffer(false);
    if (facts_ != nullptr && holds_lists(*facts_->columns))
      unpacking.set_batch_size(rows_at_once(facts_->columns->front()));
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file_, reading));
    builder.memory_pool(&pool_)->properties(unpacking);
    check(builder.Build(&reader_));
  }

  ArrowFacts facts() override {
    ArrowFacts facts;
    std::shared_ptr<arrow::Schema> schema;
    check(reader_->GetSchema(&schema));
    const std::vector<ArrowColumn> columns = columns_of(*schema);
    facts.columns = std::make_shared<const std::vector<ArrowColumn>>(columns);
    const std::shared_ptr<parquet::FileMetaData> footer = reader_->parquet_reader()->metadata();
    const bool lists = holds_lists(columns);
    std::int64_t most = 0;
    for (int g = 0; g < footer->num_row_groups(); ++g) {
      const std::unique_ptr<parquet::RowGroupMetaData> group = footer->RowGroup(g);
      const std::int64_t rows = group->num_rows();
      add_part(facts, rows);
      std::int64_t largest = 0;
      for (int j = 0; j < group->num_columns(); ++j) {
        const std::unique_ptr<parquet::ColumnChunkMetaData> chunk = group->ColumnChunk(j);
        const std::int64_t packed = std::clamp<std::int64_t>(chunk->total_compressed_size(), 0, most_plausible);
        const std::int64_t unpacked = std::clamp<std::int64_t>(chunk->total_uncompressed_size(), 0, most_plausible);
        largest =
            std::max(largest, lists ? 3 * std::min(std::max(packed, unpacked), most_of_a_page) : packed + 2 * unpacked);
      }
      most = std::max(most, largest + (lists ? of_lists(columns.front(), rows) : of_columns(columns, rows)));
    }
    if (facts.rows() != footer->num_rows()) {
      throw std::runtime_error("its row groups have " + std::to_string(facts.rows()) + " rows, and its footer says " +
                               std::to_string(footer->num_rows()));
    }
    constexpr std::uint64_t of_footer = 13;  // its objects for each byte, measured: 12
    facts.footer_bytes = of_footer * footer->size();
    facts.pool_bytes = static_cast<std::uint64_t>(most + stream_buffer + mib) + footer->size();
    facts.held_bytes = facts.pool_bytes + facts.footer_bytes + of_libraries;
    facts.held_in_pages = lists;
    return facts;
  }

  ArrowPiece load(Index row) override {
    let_go();
    const std::size_t group = part_of(row);
    return holds_lists(*facts_->columns) ? load_lists(group, row) : load_columns(group);
  }

 private:
  static std::int64_t rows_at_once(const ArrowColumn& lists) {
    const auto row_bytes = static_cast<std::int64_t>(size_in_bytes(*lists.type)) * lists.list_size;
    return std::max<std::int64_t>(1, list_batch / row_bytes);
  }

  // While values are unpacked Arrow has them twice, in a memory of up to twice their size, with two numbers of 16 bits
  // that say which are null and where lists begin.
  static std::int64_t of_lists(const ArrowColumn& lists, std::int64_t rows_of_group) {
    constexpr std::int64_t of_a_value = 2 * (2 * 8 + 2 * 2);
    return std::min(rows_of_group, rows_at_once(lists)) * lists.list_size * of_a_value;
  }
  static std::int64_t of_columns(const std::vector<ArrowColumn>& columns, std::int64_t rows) {
    constexpr std::int64_t of_a_value = 2 * (8 + 8 + 2);
    return unpacked_bytes(columns, rows) + rows * of_a_value;
  }

  ArrowPiece load_columns(std::size_t group) {
    const std::shared_ptr<parquet::arrow::RowGroupReader> rows = reader_->RowGroup(static_cast<int>(group));
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (std::size_t j = 0; j < facts_->columns->size(); ++j) {
      std::shared_ptr<arrow::ChunkedArray> column;
      check(rows->Column(static_cast<int>(j))->Read(&column));
      arrays.push_back(column->num_chunks() == 1 ? column->chunk(0)
                                                 : checked(arrow::Concatenate(column->chunks(), &pool_)));
    }
    return keep(std::move(arrays), begin_of(group), rows_of(group));
  }

  // From the beginning of the row group, where it is not the next piece of it.
  ArrowPiece load_lists(std::size_t group, Index row) {
    if (!batches_ || group != group_ || row < next_) {
      batches_.reset();
      batches_ = checked(reader_->GetRecordBatchReader(std::vector<int>{static_cast<int>(group)}));
      group_ = group;
      next_ = begin_of(group);
    }
    for (;;) {
      std::shared_ptr<arrow::RecordBatch> batch;
      check(batches_->ReadNext(&batch));
      if (batch == nullptr) throw std::runtime_error("a row group has fewer rows than it claims");
      const Index first = next_;
      next_ += batch->num_rows();
      if (row < next_) return keep(batch->columns(), first, batch->num_rows());
    }
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // of lists
  std::size_t group_ = 0;
  Index next_ = 0;  // the row that it goes on with
};

class IpcFile : public FileBase {
 public:
  explicit IpcFile(const ArrowRequest& request) : FileBase(request) {
    arrow::ipc::IpcReadOptions options;
    options.memory_pool = &pool_;
    options.use_threads = false;
    reader_ = checked(arrow::ipc::RecordBatchFileReader::Open(file_, options));
  }

  ArrowFacts facts() override {
    ArrowFacts facts;
    const std::vector<ArrowColumn> columns = columns_of(*reader_->schema());
    facts.columns = std::make_shared<const std::vector<ArrowColumn>>(columns);
    checked(reader_->CountRows());  // examines what is read below
    constexpr int record_batches = 3, length = 0, compression = 3, header = 2;
    constexpr std::size_t block_bytes = 24;
    const std::shared_ptr<arrow::Buffer> footer = footer_bytes();
    const FlatTable table({footer->data(), static_cast<std::size_t>(footer->size())});
    const auto [begin, count] = table.list(record_batches);
    std::int64_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t block = begin + i * block_bytes;
      const auto offset = table.get<std::int64_t>(block), body = table.get<std::int64_t>(block + 16);
      const std::int64_t metadata = table.get<std::int32_t>(block + 8);
      const std::shared_ptr<arrow::Buffer> message = bytes_at(offset, metadata);
      // Behind its length, which is led by a mark since version 0.15 of the format.
      const auto* const bytes = message->data();
      std::int32_t mark = 0;
      if (message->size() >= 4) std::memcpy(&mark, bytes, sizeof mark);
      const std::int64_t skipped = std::min<std::int64_t>(message->size(), mark == -1 ? 8 : 4);
      const FlatTable batch =
          FlatTable({bytes + skipped, static_cast<std::size_t>(message->size() - skipped)}).table(header);
      const auto rows = batch.number<std::int64_t>(length);
      if (body < 0 || body > most_plausible)
        throw std::runtime_error("a record batch claims to be of " + std::to_string(body) + " bytes");
      add_part(facts, rows);
      most = std::max(most, body + 2 * metadata + (batch.has(compression) ? unpacked_bytes(columns, rows) : 0));
    }
    const auto array_objects = static_cast<std::int64_t>(columns.size()) * 1024;
    facts.pool_bytes = static_cast<std::uint64_t>(most + 2 * footer->size() + mib);
    facts.held_bytes = facts.pool_bytes + static_cast<std::uint64_t>(of_libraries + array_objects);
    return facts;
  }

  ArrowPiece load(Index row) override {
    let_go();
    const std::size_t number = part_of(row);
    const std::shared_ptr<arrow::RecordBatch> batch = checked(reader_->ReadRecordBatch(static_cast<int>(number)));
    check(batch->Validate());  // that its values are where it says
    return keep(batch->columns(), begin_of(number), rows_of(number));
  }

 private:
  std::shared_ptr<arrow::Buffer> bytes_at(std::int64_t offset, std::int64_t count) {
    if (offset < 0 || count < 0) throw std::runtime_error("its footer is damaged");
    std::shared_ptr<arrow::Buffer> bytes = checked(file_->ReadAt(offset, count));
    if (bytes->size() < count) throw std::runtime_error("it ends before its last record batch");
    return bytes;
  }

  // Before the last 10 bytes, which hold its length and the word ARROW1.
  std::shared_ptr<arrow::Buffer> footer_bytes() {
    constexpr std::int64_t end = 10;
    const std::int64_t size = checked(file_->GetSize());
    std::int32_t length = 0;
    std::memcpy(&length, bytes_at(size - end, end)->data(), sizeof length);
    return bytes_at(size - end - length, length);
  }

  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
};

}  // namespace

extern "C" ITSPACE_API ArrowFile* itspace_open_arrow_file(const ArrowRequest& request) {
  if (request.format == ArrowFormat::parquet) return new ParquetFile(request);
  return new IpcFile(request);
}

}  // namespace itspace::io
