// SPDX-License-Identifier: Apache-2.0
//
// Arrays and text out.
#include <bit>
#include <itspace/io.hpp>

#include "atomic_file.hpp"
#include "error.hpp"
#include "npy_header.hpp"
#include "zip_writer.hpp"

namespace itspace::io {
namespace {

template <class Scalar>
std::string_view bytes_of(const Scalar* data, Index count) {
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(count) * sizeof(Scalar)};
}

// Version 1.0, padded with spaces so that the values begin at a multiple of 64 bytes, as NumPy writes it.
template <Storage Scalar>
std::string npy_header(std::span<const Index> shape) {
  constexpr std::size_t alignment = 64;
  constexpr std::size_t before_text = 10;
  const char order = std::endian::native == std::endian::big ? '>' : '<';
  std::string text = fmt::format("{{'descr': '{}f{}', 'fortran_order': False, 'shape': {}, }}", order, sizeof(Scalar),
                                 shape_text(shape));
  const std::size_t unpadded = before_text + text.size() + 1;
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string npy_header(const NamedBlock& array) {
  if (!array.vector) {
    return npy_header<double>(std::vector<Index>{array.values.rows(), array.values.cols()});
  }
  if (array.values.cols() != 1) {
    throw std::invalid_argument(fmt::format("array {} has {} columns, a vector has 1; save it as a matrix",
                                            in_quotes(array.key), array.values.cols()));
  }
  return npy_header<double>(std::vector<Index>{array.values.rows()});
}

}  // namespace

template <Storage Scalar>
void save_npy(const std::filesystem::path& path, const ConstBlockView<Scalar>& block) {
  AtomicFile file(path);
  file.write(npy_header<Scalar>(std::vector<Index>{block.rows(), block.cols()}));
  for (Index i = 0; i < block.rows(); ++i) {
    file.write(bytes_of(block.data() + i * block.outerStride(), block.cols()));
  }
  file.commit();
}

template ITSPACE_API void save_npy<float>(const std::filesystem::path&, const ConstBlockView<float>&);
template ITSPACE_API void save_npy<double>(const std::filesystem::path&, const ConstBlockView<double>&);

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
    headers.push_back(npy_header(arrays[i]));
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

void check_writable(const std::filesystem::path& path) {
  // A pipe or a device is not opened: that might wait for a reader, or act.
  if (!find_destination(path).direct) {
    const AtomicFile probe(path);  // creates the temporary file, and removes it
  }
}

}  // namespace itspace::io
