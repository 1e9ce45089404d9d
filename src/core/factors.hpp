// SPDX-License-Identifier: Apache-2.0
//
// For align.cpp and targets/features.cpp, until they include what they use: truncation.hpp and feature_moments.hpp.
#pragma once

#include "core/feature_moments.hpp"
#include "core/truncation.hpp"
