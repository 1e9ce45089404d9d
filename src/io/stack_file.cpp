// SPDX-License-Identifier: Apache-2.0
#include <itspace/stack_file.hpp>

#include <algorithm>

#include "array_open.hpp"
#include "crc.hpp"
#include "error.hpp"
#include "npy_header.hpp"

namespace itspace::io {

Array open_stack(const std::filesystem::path& path, std::string_view key) {
  std::optional<StoredMember> unchecked;
  Array array = open_array(path, key, unchecked);
  const ArrayInfo& info = array.info();
  if (info.shape.size() != 3) {
    fail("{}: has {} dimension(s), shape {}; a stack has 3: (problems, rows, columns). numpy.stack makes one",
         in_quotes(path), info.shape.size(), shape_text(info.shape));
  }
  if (std::ranges::find(info.shape, Index{0}) != info.shape.end()) {
    fail("{}: shape {} holds no values; give a stack of at least one matrix", in_quotes(path), shape_text(info.shape));
  }
  if (info.fortran_order) {
    fail(
        "{}: is in Fortran order, where the matrices do not lie one after the other; save it in C order "
        "(numpy.ascontiguousarray)",
        in_quotes(path));
  }
  if (unchecked) {
    require_crc(crc_of(unchecked->bytes), unchecked->crc, unchecked->where);
  }
  return array;
}

}  // namespace itspace::io
