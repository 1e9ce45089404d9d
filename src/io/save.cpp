// SPDX-License-Identifier: Apache-2.0
//
// Arrays and text out.
#include <itspace/io.hpp>
#include <itspace/stack_file.hpp>

#include "atomic_file.hpp"
#include "error.hpp"
#include "npy_writer.hpp"
#include "zip_writer.hpp"

namespace itspace::io {
namespace {

std::string header_of(const NamedBlock& array) {
  if (!array.vector) {
    return npy_header<double>(std::vector<Index>{array.values.rows(), array.values.cols()});
  }
  if (array.values.cols() != 1) {
    throw std::invalid_argument(fmt::format("array {} has {} columns, a vector has 1; save it as a matrix",
                                            in_quotes(array.key), array.values.cols()));
  }
  return npy_header<double>(std::vector<Index>{array.values.rows()});
}

template <Storage Scalar>
void write_npy(AtomicFile& file, const ConstBlockView<Scalar>& block, const std::vector<Index>& shape) {
  file.write(npy_header<Scalar>(shape));
  for (Index i = 0; i < block.rows(); ++i) {
    file.write(bytes_of(block.data() + i * block.outerStride(), block.cols()));
  }
}

}  // namespace

template <Storage Scalar>
void save_npy(const std::filesystem::path& path, const ConstBlockView<Scalar>& block) {
  AtomicFile file(path);
  write_npy<Scalar>(file, block, {block.rows(), block.cols()});
  file.commit();
}

template <Storage Scalar>
void save_npy(Outputs& outputs, const std::filesystem::path& path, const ConstBlockView<Scalar>& block) {
  write_npy<Scalar>(outputs.add(path), block, {block.rows(), block.cols()});
}

template <Storage Scalar>
void save_stack(Outputs& outputs, const std::filesystem::path& path, const ConstBlockView<Scalar>& block,
                Index rows_each) {
  write_npy<Scalar>(outputs.add(path), block, {block.rows() / rows_each, rows_each, block.cols()});
}

template ITSPACE_API void save_npy<float>(const std::filesystem::path&, const ConstBlockView<float>&);
template ITSPACE_API void save_npy<double>(const std::filesystem::path&, const ConstBlockView<double>&);
template ITSPACE_API void save_npy<float>(Outputs&, const std::filesystem::path&, const ConstBlockView<float>&);
template ITSPACE_API void save_npy<double>(Outputs&, const std::filesystem::path&, const ConstBlockView<double>&);
template ITSPACE_API void save_stack<float>(Outputs&, const std::filesystem::path&, const ConstBlockView<float>&,
                                            Index);
template ITSPACE_API void save_stack<double>(Outputs&, const std::filesystem::path&, const ConstBlockView<double>&,
                                             Index);

void save_npz(const std::filesystem::path& path, std::span<const NamedBlock> arrays) {
  // Misuse is found before the file is touched.
  std::vector<std::string> headers;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].key.empty()) {
      throw std::invalid_argument(fmt::format("array {} to be saved has no key; name it", i));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (arrays[i].key == arrays[j].key) {
        throw std::invalid_argument(
            fmt::format("two arrays to be saved have the key {}; rename one", in_quotes(arrays[i].key)));
      }
    }
    headers.push_back(header_of(arrays[i]));
  }
  AtomicFile file(path);
  ZipWriter zip(file, in_quotes(path));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    zip.add(arrays[i].key + ".npy", headers[i], bytes_of(arrays[i].values.data(), arrays[i].values.size()));
  }
  zip.finish();
  file.commit();
}

void save_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void save_text(Outputs& outputs, const std::filesystem::path& path, std::string_view text) {
  outputs.add(path).write(text);
}

void check_writable(const std::filesystem::path& path) {
  // A pipe or a device is not opened: that might wait for a reader, or act.
  if (!find_destination(path).direct) {
    const AtomicFile probe(path);  // creates the temporary file, and removes it
  }
}

}  // namespace itspace::io
