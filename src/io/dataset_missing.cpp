// SPDX-License-Identifier: Apache-2.0
//
// In place of dataset_rows.cpp where this library was built without HDF5.
#include "error.hpp"
#include "row_file.hpp"

namespace itspace::io {

RowFile examine_dataset(const std::filesystem::path& path, const std::string& dataset) {
  fail(
      "{} of {}: this itspace was built without HDF5; build it where libhdf5-dev is installed, or save the dataset as "
      ".npy files",
      in_quotes(dataset), in_quotes(path));
}

template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_dataset_rows(const RowFile& info) {
  examine_dataset(info.path, info.dataset);
  return nullptr;
}
template std::unique_ptr<OpenRowFile<float>> open_dataset_rows(const RowFile&);
template std::unique_ptr<OpenRowFile<double>> open_dataset_rows(const RowFile&);

}  // namespace itspace::io
