// SPDX-License-Identifier: Apache-2.0
//
// Two paths, one file: by links, by spelling, and before it exists.
#include <gtest/gtest.h>

#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::Folder;

TEST(Identity, IsThatOfTheFileNotOfItsName) {
  const Folder folder;
  folder.write("a", "a");
  folder.write("b", "a");
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink("a", folder / "link");
  std::filesystem::create_symlink("../link", folder / "sub/chain");
  std::filesystem::create_hard_link(folder / "a", folder / "hard");
  std::filesystem::create_symlink("none", folder / "dangling");
  std::filesystem::create_directory_symlink(folder.path(), folder / "sub/up");
  const auto same = [&](std::string_view a, std::string_view b) {
    return io::same_file(io::identity_of(folder / a), io::identity_of(folder / b));
  };
  for (const char* name : {"a", "./a", "sub/../a", "link", "sub/chain", "hard", "sub/up/a"}) {
    EXPECT_TRUE(same("a", name)) << name;
    EXPECT_FALSE(same("b", name)) << name;
    EXPECT_FALSE(same("none", name)) << name;
  }
  for (const char* name : {"none", "dangling", "./none", "sub/up/none"}) {
    EXPECT_TRUE(same("none", name)) << name;
    EXPECT_FALSE(same("other", name)) << name;
    EXPECT_FALSE(same("sub/none", name)) << name;
  }
  EXPECT_FALSE(same("nowhere/x", "nowhere/x"));  // nothing can be written there either
}

TEST(Identity, DevicesHaveNone) {
  const auto null = io::identity_of("/dev/null");
  EXPECT_FALSE(null.has_value());
  EXPECT_FALSE(io::same_file(null, null));
}

}  // namespace
