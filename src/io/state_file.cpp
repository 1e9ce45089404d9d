// SPDX-License-Identifier: Apache-2.0
#include "state_file.hpp"

namespace itspace::io {

void check_format(const std::filesystem::path& path, const StateKind& kind) {
  const auto keys = array_keys(path);
  if (keys.empty()) {
    fail("{}: is no {} but a plain array; expected an .npz with format {}, as `{}` writes it", in_quotes(path),
         kind.what, in_quotes(kind.format), kind.written_by);
  }
  if (std::ranges::find(keys, "format") == keys.end()) {
    fail("{}: is no {}: it has no key 'format' (its first key is {}); expected format {}, as `{}` writes it",
         in_quotes(path), kind.what, in_quotes(keys.front()), in_quotes(kind.format), kind.written_by);
  }
  const std::string found = read_text(path, "format");
  if (found == kind.format) {
    return;
  }
  if (found.starts_with(kind.format.substr(0, kind.format.find('/') + 1))) {
    fail("{}: is a {} in format {}, this version reads {}; use an itspace that knows it", in_quotes(path), kind.what,
         in_quotes(found), in_quotes(kind.format));
  }
  fail("{}: is no {}, its format is {}; expected {}, as `{}` writes it", in_quotes(path), kind.what, in_quotes(found),
       in_quotes(kind.format), kind.written_by);
}

}  // namespace itspace::io
