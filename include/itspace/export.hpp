// SPDX-License-Identifier: Apache-2.0
//
// Symbols are hidden unless marked: what carries ITSPACE_API is the library's binary interface.
#pragma once

#define ITSPACE_API __attribute__((visibility("default")))
