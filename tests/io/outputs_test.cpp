// SPDX-License-Identifier: Apache-2.0
//
// Files that belong together appear together.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::read;
using Names = std::vector<std::string>;

TEST(Outputs, NothingAppearsBeforeCommit) {
  const Folder folder;
  folder.write("a", "old");
  const Block<double> block = Block<double>::Ones(2, 2);
  {
    io::Outputs outputs;
    io::save_text(outputs, folder / "a", "new");
    io::save_npy<double>(outputs, folder / "b", block);
    outputs.finish();
    EXPECT_EQ(read(folder / "a"), "old");
    EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  }
  EXPECT_EQ(folder.names(), Names{"a"});  // abandoned
  io::Outputs outputs;
  io::save_text(outputs, folder / "a", "new");
  io::save_npy<double>(outputs, folder / "b", block);
  outputs.commit_files();
  EXPECT_EQ(read(folder / "a"), "new");
  EXPECT_EQ(io::open_array(folder / "b").as<double>().view(), block);
  EXPECT_EQ(folder.names(), (Names{"a", "b"}));
}

TEST(Outputs, OneThatCannotBeWrittenLeavesAllOldOnes) {
  const Folder folder;
  folder.write("a", "old");
  expect_refused(
      [&] {
        io::Outputs outputs;
        io::save_text(outputs, folder / "a", "new");
        io::save_text(outputs, folder / "none/b", "new");
        outputs.commit_files();
      },
      {"none"});
  EXPECT_EQ(read(folder / "a"), "old");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(Outputs, StreamsComeLastAndCostNoFile) {
  const Folder folder;
  io::Outputs outputs;
  io::save_text(outputs, "/dev/full", "x");
  io::save_text(outputs, folder / "a", "new");
  outputs.commit_files();
  EXPECT_EQ(read(folder / "a"), "new");
  expect_refused([&] { outputs.commit_streams(); }, {"/dev/full"});

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  io::Outputs piped;
  io::save_text(piped, folder / "pipe", "through");  // nobody reads yet: must not wait
  piped.commit_files();
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  piped.commit_streams();
  char buffer[16] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 7);
  EXPECT_STREQ(buffer, "through");
  ::close(reader);
}

}  // namespace
