// SPDX-License-Identifier: Apache-2.0
//
// Functions of libraries that are looked for at run time and linked by nobody.
#pragma once

#include "core/require.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string_view>

namespace itspace::cuda {

// @throws std::runtime_error "`whose`: `name` is not in `where`": `where` says what to do about it, too.
template <class Function>
void find_function(void* library, const char* name, std::string_view whose, std::string_view where,
                   Function& function) {
  void* address = dlsym(library, name);
  if (address == nullptr) throw std::runtime_error(text(whose, ": ", name, " is not in ", where));
  function = reinterpret_cast<Function>(address);
}

}  // namespace itspace::cuda
