// SPDX-License-Identifier: Apache-2.0
//
// Parquet and Arrow IPC files by Arrow's C++ libraries: the only file that includes their headers.
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
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/future.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>

#include <itspace/export.hpp>

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

// Memory up to a limit, for one thread at a time. Large blocks are the system's pages and no part of the heap, where
// what is freed between others stays resident; those that are given back are kept for the next row group, within the
// limit.
class LimitedPool : public arrow::MemoryPool {
 public:
  explicit LimitedPool(std::int64_t limit) : limit_(limit) {}
  ~LimitedPool() override { unmap_spare(); }

  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    if (!is_large(size)) {
      ARROW_RETURN_NOT_OK(require_room(size));
      return of_heap_.Allocate(size, alignment, out);
    }
    if (spare_.empty()) return map(in_pages(size), out);
    // The smallest that is large enough, or the largest; its pages are there already.
    auto spare = spare_.lower_bound(size);
    if (spare == spare_.end()) --spare;
    const std::int64_t capacity = spare->first;
    *out = spare->second;
    spare_.erase(spare);
    spare_bytes_ -= capacity;
    mapped_.emplace(*out, capacity);
    const arrow::Status fits = remap(size, out);
    if (!fits.ok()) Free(*out, size, alignment);
    return fits;
  }

  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** bytes) override {
    if (!is_large(old_size) && !is_large(new_size)) {
      ARROW_RETURN_NOT_OK(require_room(new_size - old_size));
      return of_heap_.Reallocate(old_size, new_size, alignment, bytes);
    }
    if (is_large(old_size) && is_large(new_size)) return remap(new_size, bytes);
    std::uint8_t* moved = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &moved));
    std::memcpy(moved, *bytes, static_cast<std::size_t>(std::min(old_size, new_size)));
    Free(*bytes, old_size, alignment);
    *bytes = moved;
    return arrow::Status::OK();
  }

  void Free(std::uint8_t* bytes, std::int64_t size, std::int64_t alignment) override {
    if (!is_large(size)) {
      of_heap_.Free(bytes, size, alignment);
      return;
    }
    const auto block = mapped_.find(bytes);
    spare_.emplace(block->second, bytes);
    spare_bytes_ += block->second;
    mapped_.erase(block);
  }

  std::int64_t bytes_allocated() const override { return of_heap_.bytes_allocated() + mapped_bytes_ - spare_bytes_; }
  std::int64_t total_bytes_allocated() const override { return bytes_allocated(); }  // nobody asks
  std::int64_t num_allocations() const override { return static_cast<std::int64_t>(mapped_.size()); }
  std::string backend_name() const override { return "itspace"; }

 private:
  static bool is_large(std::int64_t size) { return size >= std::int64_t(1) << 16; }
  static std::int64_t in_pages(std::int64_t size) {
    constexpr std::int64_t page = 4096;
    return (size + page - 1) / page * page;
  }

  arrow::Status require_room(std::int64_t more) {
    const auto has_room = [&] { return more <= limit_ - of_heap_.bytes_allocated() - mapped_bytes_; };
    if (!has_room()) unmap_spare();
    if (has_room()) return arrow::Status::OK();
    return arrow::Status::OutOfMemory(more, " bytes are wanted beside ", bytes_allocated(), ", and ", limit_,
                                      " are the limit");
  }

  arrow::Status map(std::int64_t capacity, std::uint8_t** out) {
    ARROW_RETURN_NOT_OK(require_room(capacity));
    void* const block =
        ::mmap(nullptr, static_cast<std::size_t>(capacity), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return arrow::Status::OutOfMemory("the system has no ", capacity, " bytes");
    *out = static_cast<std::uint8_t*>(block);
    mapped_.emplace(*out, capacity);
    mapped_bytes_ += capacity;
    return arrow::Status::OK();
  }

  // Another size for a block in use, unless it is right already.
  arrow::Status remap(std::int64_t size, std::uint8_t** bytes) {
    const auto block = mapped_.find(*bytes);
    const std::int64_t before = block->second, capacity = in_pages(size);
    if (capacity <= before && before <= capacity + capacity / 4) return arrow::Status::OK();
    ARROW_RETURN_NOT_OK(require_room(capacity - before));
    void* const moved =
        ::mremap(*bytes, static_cast<std::size_t>(before), static_cast<std::size_t>(capacity), MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return arrow::Status::OutOfMemory("the system has no ", capacity, " bytes");
    mapped_.erase(block);
    *bytes = static_cast<std::uint8_t*>(moved);
    mapped_.emplace(*bytes, capacity);
    mapped_bytes_ += capacity - before;
    return arrow::Status::OK();
  }

  void unmap_spare() {
    for (const auto& [capacity, block] : spare_) ::munmap(block, static_cast<std::size_t>(capacity));
    mapped_bytes_ -= spare_bytes_;
    spare_bytes_ = 0;
    spare_.clear();
  }

  arrow::ProxyMemoryPool of_heap_{arrow::system_memory_pool()};  // counts what is given out
  std::int64_t limit_;
  std::unordered_map<std::uint8_t*, std::int64_t> mapped_;  // in use, and how large they are
  std::multimap<std::int64_t, std::uint8_t*> spare_;        // given back
  std::int64_t mapped_bytes_ = 0, spare_bytes_ = 0;         // of both, and of the second
};

// Reads in the thread that asks. Arrow's own file has threads for what is read ahead, and they let go of memory when
// its pool may be gone.
class Descriptor : public arrow::io::RandomAccessFile {
 public:
  using Bytes = std::shared_ptr<arrow::Buffer>;
  using RandomAccessFile::ReadAsync;

  Descriptor(int descriptor, arrow::MemoryPool* pool) : descriptor_(descriptor), pool_(pool) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  arrow::Result<std::int64_t> GetSize() override {
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) return failure();
    return static_cast<std::int64_t>(status.st_size);
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position_, count, out));
    position_ += held;
    return held;
  }
  arrow::Result<Bytes> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(Bytes bytes, ReadAt(position_, count));
    position_ += bytes->size();
    return bytes;
  }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* out) override {
    if (position < 0 || count < 0) return arrow::Status::IOError("a place before its beginning was asked for");
    std::int64_t filled = 0;
    while (filled < count) {
      const ssize_t held = ::pread(descriptor_, static_cast<char*>(out) + filled,
                                   static_cast<std::size_t>(count - filled), position + filled);
      if (held == 0) break;
      if (held < 0 && errno != EINTR) return failure();
      filled += std::max<std::int64_t>(0, held);
    }
    return filled;
  }
  // No more than the file has: a damaged one asks for any number.
  arrow::Result<Bytes> ReadAt(std::int64_t position, std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, GetSize());
    const std::int64_t most =
        std::clamp<std::int64_t>(size - std::min(size, position), 0, std::max<std::int64_t>(0, count));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> bytes, arrow::AllocateResizableBuffer(most, pool_));
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position, most, bytes->mutable_data()));
    ARROW_RETURN_NOT_OK(bytes->Resize(held, /*shrink_to_fit=*/false));
    return Bytes(std::move(bytes));
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, std::int64_t position, std::int64_t count) override {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, count));
  }

  // Newer versions of Arrow have these as well: without override, for those that have not.
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, bool short_is_fine, void* out) {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t held, ReadAt(position, count, out));
    if (held < count && !short_is_fine) return cut_short();
    return held;
  }
  arrow::Result<Bytes> ReadAt(std::int64_t position, std::int64_t count, bool short_is_fine) {
    ARROW_ASSIGN_OR_RAISE(Bytes bytes, ReadAt(position, count));
    if (bytes->size() < count && !short_is_fine) return cut_short();
    return bytes;
  }
  arrow::Future<Bytes> ReadAsync(const arrow::io::IOContext&, std::int64_t position, std::int64_t count,
                                 bool short_is_fine) {
    return arrow::Future<Bytes>::MakeFinished(ReadAt(position, count, short_is_fine));
  }

 private:
  static arrow::Status failure() { return arrow::Status::IOError(std::strerror(errno)); }
  static arrow::Status cut_short() { return arrow::Status::IOError("it ends before its last values"); }

  int descriptor_;
  arrow::MemoryPool* pool_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

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

// The few numbers of an Arrow file's footer and messages that Arrow's interface does not tell: how many rows and bytes
// a record batch has. They are tables in FlatBuffers' layout: a number at the front leads to the table, and the table's
// first number back to a list of where its fields are.
class FlatTable {
 public:
  explicit FlatTable(std::span<const std::uint8_t> bytes) : FlatTable(bytes, 0) {}

  template <class Number>
  Number number(int field) const {
    const std::size_t at = place_of(field);
    return at == 0 ? Number(0) : get<Number>(at);
  }
  bool has(int field) const { return place_of(field) != 0; }
  FlatTable table(int field) const { return {bytes_, require_place(field)}; }
  // Where a list begins, and how many it has.
  std::pair<std::size_t, std::size_t> list(int field) const {
    if (!has(field)) return {0, 0};
    const std::size_t at = place_of(field), begin = at + get<std::uint32_t>(at);
    return {begin + sizeof(std::uint32_t), get<std::uint32_t>(begin)};
  }
  template <class Number>
  Number get(std::size_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(Number)) throw std::runtime_error("its footer is damaged");
    Number value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

 private:
  // `at` holds the distance to the table.
  FlatTable(std::span<const std::uint8_t> bytes, std::size_t at) : bytes_(bytes), at_(at + get<std::uint32_t>(at)) {}

  std::size_t require_place(int field) const {
    if (!has(field)) throw std::runtime_error("its footer is damaged");
    return place_of(field);
  }
  std::size_t place_of(int field) const {
    const auto fields = static_cast<std::size_t>(static_cast<std::int64_t>(at_) - get<std::int32_t>(at_));
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
    if (entry + 2 > get<std::uint16_t>(fields)) return 0;
    const auto offset = get<std::uint16_t>(fields + entry);
    return offset == 0 ? 0 : at_ + offset;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_;
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
