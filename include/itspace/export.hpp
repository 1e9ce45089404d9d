// SPDX-License-Identifier: Apache-2.0
//
// Symbols are hidden unless marked: what carries ITSPACE_API is the library's binary interface.
#pragma once

// In this mode the standard containers have another layout, so that a vector made on one side of the library's boundary
// breaks on the other. A library built with ITSPACE_GLIBCXX_DEBUG=ON brings both definitions with its CMake target.
#if defined(_GLIBCXX_DEBUG) && !defined(ITSPACE_GLIBCXX_DEBUG)
#error \
    "This code is compiled with -D_GLIBCXX_DEBUG and libitspace was not: their std::vectors differ. Compile with -D_GLIBCXX_ASSERTIONS instead, or configure itspace with -DITSPACE_GLIBCXX_DEBUG=ON and link itspace::itspace."
#endif

#define ITSPACE_API __attribute__((visibility("default")))
