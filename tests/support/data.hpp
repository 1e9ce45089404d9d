// SPDX-License-Identifier: Apache-2.0
//
// Real feature sets: the folder ITSPACE_DATA, by default ../shared/data beside the source tree. They are third-party
// data that no checkout carries; a test that needs them skips itself where they are absent.
#pragma once

#include <itspace/io.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace itspace::test {

inline std::filesystem::path data_folder() {
  if (const char* folder = std::getenv("ITSPACE_DATA"); folder != nullptr && *folder != '\0') return folder;
  return std::filesystem::path(ITSPACE_SOURCE_DIR) / ".." / "shared" / "data";
}

inline std::filesystem::path features_file(const std::string& set, const std::string& domain) {
  return data_folder() / set / (domain + "_x.npy");
}

template <Storage Scalar>
Block<Scalar> load_features(const std::string& set, const std::string& domain) {
  const io::Array array = io::open_array(features_file(set, domain));
  return array.as<Scalar>().view();
}

}  // namespace itspace::test

// In a test body: skip, visibly, unless that feature set is there.
#define ITSPACE_NEEDS_DATA(set)                                                         \
  if (!std::filesystem::is_directory(::itspace::test::data_folder() / (set)))           \
  GTEST_SKIP() << "no real data: " << (::itspace::test::data_folder() / (set)).string() \
               << " is absent; set ITSPACE_DATA to the folder that holds it"
