// SPDX-License-Identifier: Apache-2.0
#include "arrow_files.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace fixtures {
namespace {

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error("a fixture cannot be written: " + status.ToString());
}

template <class Value>
Value checked(arrow::Result<Value> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

// The bits of a number that half precision holds as it is, and is not subnormal there.
std::uint16_t half_bits(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (value == 0) return static_cast<std::uint16_t>(bits >> 48);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023 + 15;
  return static_cast<std::uint16_t>((bits >> 63) << 15 | static_cast<std::uint64_t>(exponent) << 10 |
                                    (bits >> 42 & 0x3ff));
}

template <class Builder, class Convert>
std::shared_ptr<arrow::Array> built(const ArrowColumnOf& column, Convert convert) {
  Builder builder;
  for (std::size_t i = 0; i < column.values.size(); ++i) {
    const bool null = std::find(column.nulls.begin(), column.nulls.end(), i) != column.nulls.end();
    check(null ? builder.AppendNull() : builder.Append(convert(column.values[i])));
  }
  return checked(builder.Finish());
}

template <class Builder>
std::shared_ptr<arrow::Array> built(const ArrowColumnOf& column) {
  using Value = typename Builder::value_type;
  return built<Builder>(column, [](double value) { return static_cast<Value>(value); });
}

std::shared_ptr<arrow::Array> array_of(const ArrowColumnOf& column) {
  if (column.type == "halffloat") return built<arrow::HalfFloatBuilder>(column, half_bits);
  if (column.type == "float") return built<arrow::FloatBuilder>(column);
  if (column.type == "double") return built<arrow::DoubleBuilder>(column);
  if (column.type == "int8") return built<arrow::Int8Builder>(column);
  if (column.type == "int16") return built<arrow::Int16Builder>(column);
  if (column.type == "int32") return built<arrow::Int32Builder>(column);
  if (column.type == "int64") return built<arrow::Int64Builder>(column);
  if (column.type == "uint8") return built<arrow::UInt8Builder>(column);
  if (column.type == "uint16") return built<arrow::UInt16Builder>(column);
  if (column.type == "uint32") return built<arrow::UInt32Builder>(column);
  if (column.type == "uint64") return built<arrow::UInt64Builder>(column);
  if (column.type == "bool") return built<arrow::BooleanBuilder>(column, [](double value) { return value != 0; });
  if (column.type == "string") {
    return built<arrow::StringBuilder>(column, [](double value) { return std::to_string(value); });
  }
  throw std::logic_error("no fixture of type " + column.type);
}

void write(const std::filesystem::path& path, const arrow::Table& table, const ArrowWriting& writing) {
  const auto sink = checked(arrow::io::FileOutputStream::Open(path.string()));
  if (path.extension() == ".parquet") {
    parquet::WriterProperties::Builder properties;
    properties.compression(writing.packed ? arrow::Compression::SNAPPY : arrow::Compression::UNCOMPRESSED);
    properties.data_pagesize(writing.page_bytes);
    properties.version(parquet::ParquetVersion::PARQUET_2_6);
    if (!writing.packed) properties.disable_dictionary();
    parquet::ArrowWriterProperties::Builder as_arrow;
    as_arrow.store_schema();  // which lists are of a fixed length
    check(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), sink, writing.part_rows, properties.build(),
                                     as_arrow.build()));
  } else {
    arrow::ipc::IpcWriteOptions options;
    if (writing.packed) options.codec = checked(arrow::util::Codec::Create(arrow::Compression::LZ4_FRAME));
    const auto writer = checked(arrow::ipc::MakeFileWriter(sink, table.schema(), options));
    check(writer->WriteTable(table, writing.part_rows));
    check(writer->Close());
  }
  check(sink->Close());
}

}  // namespace

void write_arrow(const std::filesystem::path& path, const std::vector<ArrowColumnOf>& columns,
                 const ArrowWriting& writing) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const ArrowColumnOf& column : columns) {
    arrays.push_back(array_of(column));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  write(path, *arrow::Table::Make(arrow::schema(fields), arrays), writing);
}

void write_arrow_lists(const std::filesystem::path& path, const ArrowColumnOf& values, std::int64_t list_size,
                       const std::vector<std::size_t>& null_rows, const ArrowWriting& writing) {
  const std::shared_ptr<arrow::Array> flat = array_of(values);
  const std::int64_t rows = flat->length() / list_size;
  arrow::TypedBufferBuilder<bool> valid;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    check(valid.Append(std::find(null_rows.begin(), null_rows.end(), row) == null_rows.end()));
  }
  const auto bits = null_rows.empty() ? nullptr : checked(valid.Finish());
  const auto type = arrow::fixed_size_list(flat->type(), static_cast<std::int32_t>(list_size));
  const auto lists = std::make_shared<arrow::FixedSizeListArray>(type, rows, flat, bits);
  write(path, *arrow::Table::Make(arrow::schema({arrow::field(values.name, type)}), {lists}), writing);
}

}  // namespace fixtures
