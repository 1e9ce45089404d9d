// SPDX-License-Identifier: Apache-2.0
#include "row_kinds.hpp"

#include <fstream>
#include <map>

#include "fixtures.hpp"
#ifdef ITSPACE_TEST_HDF5
#include <hdf5.h>
#endif
#ifdef ITSPACE_TEST_ARROW
#include "arrow_files.hpp"
#endif

namespace fixtures {
namespace {

using itspace::Index;

template <class Number>
std::string bytes_as(const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) bytes += raw(static_cast<Number>(value), false);
  return bytes;
}

void write_npy(const std::filesystem::path& path, const Rows& rows) {
  using Write = std::string (*)(const std::vector<double>&);
  static const std::map<std::string, std::pair<std::string, Write>> types{
      {"float32", {"<f4", bytes_as<float>}},        {"float64", {"<f8", bytes_as<double>}},
      {"int8", {"|i1", bytes_as<std::int8_t>}},     {"int16", {"<i2", bytes_as<std::int16_t>}},
      {"int32", {"<i4", bytes_as<std::int32_t>}},   {"int64", {"<i8", bytes_as<std::int64_t>}},
      {"uint8", {"|u1", bytes_as<std::uint8_t>}},   {"uint16", {"<u2", bytes_as<std::uint16_t>}},
      {"uint32", {"<u4", bytes_as<std::uint32_t>}}, {"uint64", {"<u8", bytes_as<std::uint64_t>}}};
  const auto& [descr, bytes] = types.at(rows.type);
  const std::string shape = "(" + std::to_string(rows.rows) + ", " + std::to_string(rows.cols) + ")";
  std::ofstream(path, std::ios::binary) << npy_of(descr, shape, bytes(rows.values));
}

#ifdef ITSPACE_TEST_HDF5
void write_hdf5(const std::filesystem::path& path, const Rows& rows, bool in_chunks) {
  const std::map<std::string, hid_t> types{
      {"float32", H5T_IEEE_F32LE}, {"float64", H5T_IEEE_F64BE}, {"int8", H5T_STD_I8LE},  {"int16", H5T_STD_I16LE},
      {"int32", H5T_STD_I32LE},    {"int64", H5T_STD_I64LE},    {"uint8", H5T_STD_U8LE}, {"uint16", H5T_STD_U16LE},
      {"uint32", H5T_STD_U32LE},   {"uint64", H5T_STD_U64LE}};
  const hsize_t shape[] = {static_cast<hsize_t>(rows.rows), static_cast<hsize_t>(rows.cols)}, chunk[] = {16, 2};
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, shape, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
  if (in_chunks) {
    H5Pset_chunk(how, 2, chunk);
    H5Pset_deflate(how, 1);
  }
  const hid_t set = H5Dcreate2(file, "/rows", types.at(rows.type), space, H5P_DEFAULT, how, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.values.data());
  H5Dclose(set);
  H5Pclose(how);
  H5Sclose(space);
  H5Fclose(file);
}
#endif

#ifdef ITSPACE_TEST_ARROW
std::string arrow_type(const std::string& type) {
  return type == "float32" ? "float" : type == "float64" ? "double" : type;
}

// Several parts, and where there are many rows some large ones.
std::int64_t part_rows(const Rows& rows) {
  return rows.rows < 400 ? 16 : 150;
}

void write_columns(const std::filesystem::path& path, const Rows& rows, bool packed) {
  std::vector<ArrowColumnOf> columns;
  for (Index j = 0; j < rows.cols; ++j) {
    columns.push_back({"f" + std::to_string(j), arrow_type(rows.type), {}, {}});
    for (Index i = 0; i < rows.rows; ++i) {
      columns.back().values.push_back(rows.values[static_cast<std::size_t>(i * rows.cols + j)]);
    }
  }
  write_arrow(path, columns, {.part_rows = part_rows(rows), .packed = packed});
}

void write_lists(const std::filesystem::path& path, const Rows& rows, bool packed) {
  write_arrow_lists(path, {"features", arrow_type(rows.type), rows.values, {}}, rows.cols, {},
                    {.part_rows = part_rows(rows), .packed = packed, .page_bytes = 64});
}
#endif

}  // namespace

std::vector<RowKind> row_kinds() {
  std::vector<RowKind> kinds{{"Npy", ".npy", "", write_npy}};
#ifdef ITSPACE_TEST_HDF5
  for (const bool in_chunks : {false, true}) {
    kinds.push_back({in_chunks ? "Hdf5Chunks" : "Hdf5", ".h5", ":/rows",
                     [in_chunks](const auto& path, const Rows& rows) { write_hdf5(path, rows, in_chunks); }, false});
  }
#endif
#ifdef ITSPACE_TEST_ARROW
  for (const std::string format : {"Parquet", "Arrow"}) {
    for (const bool packed : {false, true}) {
      const std::string ending = format == "Parquet" ? ".parquet" : ".arrow", how = packed ? "Packed" : "";
      kinds.push_back({format + how, ending, "",
                       [packed](const auto& path, const Rows& rows) { write_columns(path, rows, packed); }});
      kinds.push_back({format + "Lists" + how, ending, "",
                       [packed](const auto& path, const Rows& rows) { write_lists(path, rows, packed); }});
    }
  }
#endif
  return kinds;
}

}  // namespace fixtures
