// SPDX-License-Identifier: Apache-2.0
//
// Opening arrays: which kind of file it is, which array of it, and whether its bytes can be lent as they are.
#include <algorithm>
#include <bit>
#include <cstring>
#include <itspace/io.hpp>
#include <new>

#include "array_open.hpp"
#include "convert.hpp"
#include "crc.hpp"
#include "element_type.hpp"
#include "error.hpp"
#include "inflate.hpp"
#include "mapped_file.hpp"
#include "memory_limit.hpp"
#include "npy_header.hpp"
#include "zip_directory.hpp"

namespace itspace::io {
namespace {

constexpr std::string_view array_suffix = ".npy";

std::string describe(const std::filesystem::path& path, std::string_view key) {
  return key.empty() ? in_quotes(path) : fmt::format("array {} of {}", in_quotes(key), in_quotes(path));
}

// The values of one array and what keeps them in memory.
struct Opened {
  NpyHeader header;
  std::shared_ptr<const void> keep_alive;
  const std::byte* values = nullptr;
  std::optional<StoredMember> unchecked;  // where the checksum is still to be asked
};

NpyHeader read_header(std::span<const std::byte> bytes, std::size_t& offset, std::string_view where) {
  offset = npy_values_offset(bytes.first(std::min(bytes.size(), npy_prelude_bytes)), where);
  if (offset > bytes.size()) {
    fail("{}: is truncated, its header should be {} bytes and the file holds {}; copy or save it again", where, offset,
         bytes.size());
  }
  return parse_npy_header(bytes.first(offset), where);
}

Opened open_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> keep_alive, std::string_view where) {
  Opened opened;
  std::size_t offset = 0;
  opened.header = read_header(bytes, offset, where);
  require_values(opened.header, bytes.size() - offset, where);
  opened.keep_alive = std::move(keep_alive);
  opened.values = bytes.data() + offset;
  return opened;
}

void require_member_size(const NpyHeader& header, std::size_t offset, std::uint64_t member_bytes,
                         std::string_view where) {
  if (member_bytes != offset + header.value_bytes) {
    fail(
        "{}: its header promises {} bytes (shape {}, {}), the zip directory says {}; the file is damaged: copy or "
        "save it again",
        where, offset + header.value_bytes, shape_text(header.shape), name(header.type), member_bytes);
  }
}

// The header alone is inflated first; memory for the values is taken only once header, directory and the laws of
// deflate agree on how much that is.
Opened open_deflated(std::span<const std::byte> compressed, const ZipMember& member, std::string_view where) {
  require_plausible_expansion(compressed.size(), member.uncompressed_bytes, where);
  if (member.uncompressed_bytes < npy_prelude_bytes) {
    fail("{}: is truncated, {} bytes cannot hold an .npy header; save it again", where, member.uncompressed_bytes);
  }
  Inflater inflater(compressed, where);
  std::vector<std::byte> head(npy_prelude_bytes);
  inflater.read(head);
  const std::size_t offset = npy_values_offset(head, where);
  head.resize(offset);
  inflater.read(std::span(head).subspan(npy_prelude_bytes));

  Opened opened;
  opened.header = parse_npy_header(head, where);
  require_member_size(opened.header, offset, member.uncompressed_bytes, where);
  require_memory(opened.header.value_bytes, where);
  const auto size = static_cast<std::size_t>(opened.header.value_bytes);
  const std::shared_ptr<std::byte[]> buffer(new std::byte[size]);  // aligned for any number, not zeroed
  inflater.read({buffer.get(), size});
  inflater.finish(member.crc);
  opened.keep_alive = buffer;
  opened.values = buffer.get();
  return opened;
}

// A stored member is lent from the mapping, like an .npy file; whoever reads it asks its checksum.
Opened open_member(const std::shared_ptr<const MappedFile>& file, const ZipMember& member, std::string_view where) {
  const auto bytes = zip_member_bytes(file->bytes(), member, where);
  if (member.method == zip_deflated) {
    return open_deflated(bytes, member, where);
  }
  std::size_t offset = 0;
  const NpyHeader header = read_header(bytes, offset, where);
  require_member_size(header, offset, member.uncompressed_bytes, where);
  Opened opened = open_npy(bytes, file, where);
  opened.unchecked = StoredMember{bytes.first(static_cast<std::size_t>(member.uncompressed_bytes)), offset, member.crc,
                                  std::string(where)};
  return opened;
}

std::string_view key_of(const ZipMember& member) {
  return std::string_view(member.name).substr(0, member.name.size() - array_suffix.size());
}

// The members that are arrays, in file order.
std::vector<ZipMember> array_members(std::span<const std::byte> file, const std::filesystem::path& path) {
  std::vector<ZipMember> members = read_zip_directory(file, in_quotes(path));
  std::erase_if(members, [](const ZipMember& member) { return !member.name.ends_with(array_suffix); });
  return members;
}

std::string key_list(std::span<const ZipMember> members) {
  constexpr std::size_t most = 20;
  std::vector<std::string> keys;
  for (const ZipMember& member : members.first(std::min(members.size(), most))) {
    keys.push_back(in_quotes(key_of(member)));
  }
  return fmt::format("{}{}", fmt::join(keys, ", "), members.size() > most ? ", ..." : "");
}

const ZipMember& choose(std::span<const ZipMember> members, std::string_view key, const std::filesystem::path& path) {
  if (members.empty()) {
    fail("{}: is a zip file without NumPy arrays in it; write it with numpy.savez", in_quotes(path));
  }
  if (key.empty() && members.size() == 1) {
    return members.front();
  }
  const std::string_view wanted = key.empty() ? "sigma" : key;
  const auto found = std::ranges::find(members, wanted, key_of);
  if (found != members.end()) {
    if (std::ranges::count(members, wanted, key_of) > 1) {
      fail("{}: has several arrays named {}; save it again with different keys", in_quotes(path), in_quotes(wanted));
    }
    return *found;
  }
  if (key.empty()) {
    fail("{}: has {} arrays and none is named 'sigma'; name one of its keys: {}", in_quotes(path), members.size(),
         key_list(members));
  }
  fail("{}: has no array named {}; its keys are: {}", in_quotes(path), in_quotes(key), key_list(members));
}

[[noreturn]] void refuse_foreign(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  fail("{}: is neither .npy nor .npz, it starts with {}; write it with numpy.save or numpy.savez", in_quotes(path),
       in_quotes(bytes.first(std::min<std::size_t>(bytes.size(), 16))));
}

Layout layout_of(const Array& array) {
  const ArrayInfo& info = array.info();
  Layout layout = layout_of(*element_type_named(info.type), info.big_endian, array.rows(), array.cols());
  // A single row or column is the same in both orders.
  layout.column_major = info.fortran_order && layout.rows > 1 && layout.cols > 1;
  return layout;
}

}  // namespace

Index Array::rows() const {
  const auto& shape = info_.shape;
  return shape.empty() ? 1 : shape.size() == 3 ? shape[0] * shape[1] : shape[0];  // of a stack: all rows
}

Index Array::cols() const {
  return info_.shape.size() < 2 ? 1 : info_.shape.back();
}

double Array::epsilon() const {
  switch (*element_type_named(info_.type)) {
    case ElementType::float16:
      return 0x1p-10;
    case ElementType::float32:
      return std::numeric_limits<float>::epsilon();
    case ElementType::float64:
      return std::numeric_limits<double>::epsilon();
    default:
      return 0;
  }
}

template <Storage Scalar>
bool Array::is_borrowed() const {
  const Layout layout = layout_of(*this);
  const auto wanted = std::same_as<Scalar, float> ? ElementType::float32 : ElementType::float64;
  return layout.type == wanted && !layout.swap_bytes && !layout.column_major &&
         reinterpret_cast<std::uintptr_t>(values_) % alignof(Scalar) == 0;
}

template <Storage Scalar>
HeldBlock<Scalar> Array::as() const {
  const Layout layout = layout_of(*this);
  if (is_borrowed<Scalar>()) {
    return HeldBlock<Scalar>(keep_alive_,
                             borrow(reinterpret_cast<const Scalar*>(values_), layout.rows, layout.cols, layout.cols));
  }
  const std::string where = describe(info_.path, info_.key);
  // The values lie in memory or in a file, so their count times 8 does not overflow.
  const std::uint64_t bytes = info_.bytes / size_in_bytes(layout.type) * sizeof(Scalar);
  require_memory(bytes, where);
  try {
    return HeldBlock<Scalar>(convert<Scalar>(values_, layout, where));
  } catch (const std::bad_alloc&) {
    fail("{}: there is no memory for its {} bytes; pass a smaller array", where, bytes);
  }
}

template <Storage Scalar>
void Array::read_rows(Index first, BlockView<Scalar> out) const {
  if (first < 0 || out.rows() > rows() - first || out.cols() != cols()) {
    throw std::invalid_argument(fmt::format("{} rows of {} values from row {} are not part of an array of {} x {}",
                                            out.rows(), out.cols(), first, rows(), cols()));
  }
  if (is_borrowed<Scalar>()) {
    out = as<Scalar>().view().middleRows(first, out.rows());
    return;
  }
  Layout layout = layout_of(*this);
  const Index step = layout.column_major ? 1 : layout.cols;
  layout.column_step = layout.rows;
  layout.first_row = first;
  layout.rows = out.rows();
  out = convert<Scalar>(values_ + static_cast<std::size_t>(first * step) * size_in_bytes(layout.type), layout,
                        describe(info_.path, info_.key));
}

template ITSPACE_API HeldBlock<float> Array::as<float>() const;
template ITSPACE_API HeldBlock<double> Array::as<double>() const;
template ITSPACE_API void Array::read_rows<float>(Index, BlockView<float>) const;
template ITSPACE_API void Array::read_rows<double>(Index, BlockView<double>) const;
template ITSPACE_API bool Array::is_borrowed<float>() const;
template ITSPACE_API bool Array::is_borrowed<double>() const;

Array open_array(const std::filesystem::path& path, std::string_view key) {
  std::optional<StoredMember> unchecked;
  Array array = open_array(path, key, unchecked);
  require_matrix(array.info().shape, describe(path, array.info().key));
  if (unchecked) {
    require_crc(crc_of(unchecked->bytes), unchecked->crc, unchecked->where);
  }
  return array;
}

Array open_array(const std::filesystem::path& path, std::string_view key, std::optional<StoredMember>& unchecked) {
  const auto file = std::make_shared<const MappedFile>(path);
  Opened opened;
  Array array;
  array.info_.path = path;
  if (has_npy_magic(file->bytes())) {
    if (!key.empty()) {
      fail("{}: is a single .npy array and has no key {}; leave the key out", in_quotes(path), in_quotes(key));
    }
    opened = open_npy(file->bytes(), file, in_quotes(path));
  } else if (has_zip_magic(file->bytes())) {
    const auto members = array_members(file->bytes(), path);
    const ZipMember& member = choose(members, key, path);
    array.info_.key = key_of(member);
    const std::string where = fmt::format("array {} of {}", in_quotes(key_of(member)), in_quotes(path));
    try {
      opened = open_member(file, member, where);
    } catch (const std::bad_alloc&) {
      fail("{}: there is no memory for its {} bytes; pass a smaller array", where, member.uncompressed_bytes);
    }
  } else {
    refuse_foreign(file->bytes(), path);
  }
  array.info_.type = name(opened.header.type);
  array.info_.shape = opened.header.shape;
  array.info_.fortran_order = opened.header.fortran_order;
  array.info_.big_endian = opened.header.big_endian;
  array.info_.bytes = opened.header.value_bytes;
  array.keep_alive_ = std::move(opened.keep_alive);
  array.values_ = opened.values;
  unchecked = std::move(opened.unchecked);
  return array;
}

std::vector<std::string> array_keys(const std::filesystem::path& path) {
  const MappedFile file(path);
  std::vector<std::string> keys;
  if (has_zip_magic(file.bytes())) {
    for (const ZipMember& member : array_members(file.bytes(), path)) {
      keys.emplace_back(key_of(member));
    }
  } else if (!has_npy_magic(file.bytes())) {
    refuse_foreign(file.bytes(), path);
  }
  return keys;
}

}  // namespace itspace::io
