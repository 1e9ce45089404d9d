// SPDX-License-Identifier: Apache-2.0
//
// Datasets of HDF5 files: rows as any file gives them, whatever the layout of the dataset. Where the library was built
// with HDF5.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <itspace/row_files.hpp>

#include <vector>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;

// 0, 1, 2, ... row by row; `chunk` of 0 rows is a contiguous dataset.
void write_dataset(const std::filesystem::path& path, const char* name, hid_t type, hsize_t rows, hsize_t cols,
                   hsize_t chunk_rows, hsize_t chunk_cols, bool packed) {
  std::vector<double> values(rows * cols);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = double(i);
  }
  const hsize_t shape[] = {rows, cols}, chunk[] = {chunk_rows, chunk_cols};
  const bool is_there = std::filesystem::exists(path);
  const hid_t file = is_there ? H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                              : H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, shape, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk_rows > 0) {
    H5Pset_chunk(how, 2, chunk);
  }
  if (packed) {
    H5Pset_deflate(how, 4);
  }
  const hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  const hid_t set = H5Dcreate2(file, name, type, space, links, how, H5P_DEFAULT);
  EXPECT_GE(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(set);
  H5Pclose(links);
  H5Pclose(how);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(DatasetRows, RowsOfEveryLayout) {
  const Folder folder;
  const auto path = folder / "x.h5";
  write_dataset(path, "/plain", H5T_IEEE_F32LE, 23, 5, 0, 0, false);
  write_dataset(path, "/deep/in/chunks", H5T_IEEE_F32LE, 23, 5, 4, 2, true);
  write_dataset(path, "/big", H5T_IEEE_F64BE, 23, 5, 7, 5, false);
  write_dataset(path, "/whole", H5T_STD_I16LE, 23, 5, 23, 5, true);
  for (const auto& [name, type] : {std::pair{":/plain", "float32"}, std::pair{":/deep/in/chunks", "float32"},
                                   std::pair{":/big", "float64"}, std::pair{":/whole", "int16"}}) {
    const io::RowFiles files({path.string() + name});
    EXPECT_EQ(files.rows(), 23);
    EXPECT_EQ(files.type(), type);
    for (const Index piece : {1, 4, 6, 30}) {
      const Index first = piece == 4 ? 9 : 0, behind = piece == 4 ? 20 : 23;  // a share, which begins inside a chunk
      const auto source = files.source<float>(first, behind - first);
      source->restart();
      Block<float> rows(piece, 5);
      Index row = first;
      while (const Index count = source->read(rows)) {
        for (Index i = 0; i < count; ++i, ++row) {
          for (Index j = 0; j < 5; ++j) {
            ASSERT_EQ(rows(i, j), float(5 * row + j)) << name << " " << row << " " << j;
          }
        }
      }
      EXPECT_EQ(row, behind);
    }
  }
}

TEST(DatasetRows, WhatIsNotThereIsNamedWithWhatIs) {
  const Folder folder;
  const auto path = folder / "x.h5";
  write_dataset(path, "/features", H5T_IEEE_F32LE, 3, 2, 0, 0, false);
  expect_refused([&] { io::RowFiles({path.string() + ":/labels"}); }, {"x.h5", "'/labels'", "'/features'"});
  expect_refused([&] { io::RowFiles({(folder / "y.h5").string() + ":/x"}); }, {"y.h5", "does not exist"});
  folder.write("z.h5", "no such thing");
  expect_refused([&] { io::RowFiles({(folder / "z.h5").string() + ":/x"}); }, {"z.h5", "no HDF5 file"});
  expect_refused([&] { io::RowFiles({path.string()}); }, {"x.h5", "no .npy", "file.h5:/path"});
}

}  // namespace
