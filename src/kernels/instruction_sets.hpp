// SPDX-License-Identifier: Apache-2.0
//
// What the kernels are compiled for; to be included before any header of Highway.
#pragma once

// One instruction set of each width: what the others add does not show in these loops. (Vectors of SVE have no size
// that a compiler knows, and cannot be kept in arrays.)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
