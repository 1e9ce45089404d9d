// SPDX-License-Identifier: Apache-2.0
//
// Outputs appear whole or not at all, wherever they are sent.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <itspace/io.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::read;
using Names = std::vector<std::string>;

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(Output, IsWrittenAndReplaced) {
  const Folder folder;
  io::save_text(folder / "a.txt", "one");
  EXPECT_EQ(read(folder / "a.txt"), "one");
  io::save_text(folder / "a.txt", "");
  EXPECT_EQ(read(folder / "a.txt"), "");
  const std::string large(5 << 20, 'x');
  io::save_text(folder / "a.txt", large);
  EXPECT_EQ(read(folder / "a.txt"), large);
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(Output, RelativePathsAndLongNamesWork) {
  const Folder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string longest(255, 'n');
  EXPECT_NO_THROW(io::check_writable("a.txt"));
  EXPECT_NO_THROW(io::save_text("a.txt", "here"));
  EXPECT_NO_THROW(io::save_text(longest, "long"));
  std::filesystem::current_path(before);
  EXPECT_EQ(read(folder / "a.txt"), "here");
  EXPECT_EQ(folder.names(), (Names{"a.txt", longest}));
}

TEST(Output, NewFilesFollowTheUmaskAndOldOnesKeepTheirMode) {
  const Folder folder;
  const mode_t before = ::umask(027);
  io::save_text(folder / "new", "x");
  EXPECT_EQ(mode_of(folder / "new"), 0640U);
  folder.write("old", "x");
  for (const mode_t mode : {0666U, 0600U, 0604U}) {  // more than the umask allows, and less
    ::chmod((folder / "old").c_str(), mode);
    io::save_text(folder / "old", "y");
    EXPECT_EQ(mode_of(folder / "old"), mode);
  }
  ::umask(before);
  EXPECT_EQ(read(folder / "old"), "y");
}

TEST(Output, SymbolicLinksAreWrittenThrough) {
  const Folder folder;
  const Folder elsewhere;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder / "link");
  std::filesystem::create_symlink(folder / "link", elsewhere / "link_to_link");
  io::save_text(elsewhere / "link_to_link", "new");
  EXPECT_EQ(read(folder / "target"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(elsewhere / "link_to_link"));
  std::filesystem::create_symlink("not_yet", folder / "dangling");
  io::save_text(folder / "dangling", "made");
  EXPECT_EQ(read(folder / "not_yet"), "made");
  std::filesystem::create_symlink("loop", folder / "loop");
  expect_refused([&] { io::save_text(folder / "loop", "x"); }, {"loop", "links"});
}

TEST(Output, PlacesWhereNoFileCanStandAreRefused) {
  const Folder folder;
  folder.write("file", "x");
  std::filesystem::create_directory(folder / "sub");
  const auto both = [](const std::filesystem::path& path, std::initializer_list<std::string_view> parts) {
    expect_refused([&] { io::check_writable(path); }, parts);
    expect_refused([&] { io::save_text(path, "x"); }, parts);
  };
  both(folder / "sub", {"sub", "is a folder"});
  both(folder / "sub/", {"sub", "is a folder"});
  both(folder / "missing/", {"missing", "folder"});
  both(folder / "missing/a.txt", {"missing/a.txt", "does not exist", "create it"});
  both(folder / "file/a.txt", {"file/a.txt", "not a folder"});
  both("", {"empty name"});
  EXPECT_NO_THROW(io::check_writable(folder / "fresh"));
  EXPECT_NO_THROW(io::check_writable(folder / "file"));
  EXPECT_NO_THROW(io::check_writable("/dev/null"));
  EXPECT_NO_THROW(io::check_writable("/dev/stdout"));
  EXPECT_EQ(folder.names(), (Names{"file", "sub"}));
  EXPECT_EQ(read(folder / "file"), "x");
}

// Runs `body` in a child process and returns its exit status: limits and identities do not come back.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 99;
    try {
      result = body();
    } catch (...) {
      result = 98;
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool refused_with(const std::function<void()>& action, std::string_view part) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return std::string_view(error.what()).find(part) != std::string_view::npos;
  }
  return false;
}

TEST(Output, UnwritableFoldersAndFilesAreRefused) {
  const Folder folder;
  folder.write("read_only", "old");
  ::chmod((folder / "read_only").c_str(), 0444);
  ::chmod(folder.path().c_str(), 0777);
  const int result = in_child([&] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      return 77;  // root, and cannot become anyone else
    }
    if (!refused_with([&] { io::check_writable(folder / "read_only"); }, "ermission")) return 1;
    if (!refused_with([&] { io::save_text(folder / "read_only", "x"); }, "ermission")) return 2;
    if (!refused_with([&] { io::check_writable("/usr/itspace-test"); }, "ermission")) return 3;
    if (!refused_with([&] { io::save_text("/usr/itspace-test", "x"); }, "/usr")) return 4;
    return 0;
  });
  if (result == 77) {
    GTEST_SKIP() << "root without the right to change its user";
  }
  EXPECT_EQ(result, 0);
  EXPECT_EQ(read(folder / "read_only"), "old");
}

TEST(Output, AFailingWriteLeavesTheOldFileAndNothingElse) {
  const Folder folder;
  folder.write("a.txt", "old");
  const int result = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {3 << 20, 3 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string large(8 << 20, 'x');
    if (!refused_with([&] { io::save_text(folder / "a.txt", large); }, "old file is untouched")) return 1;
    if (!refused_with([&] { io::save_text(folder / "b.txt", large); }, "cannot be written")) return 2;
    const Block<double> block = Block<double>::Zero(1024, 1024);
    if (!refused_with([&] { io::save_npy<double>(folder / "a.txt", block); }, "a.txt")) return 3;
    const std::vector<io::NamedBlock> arrays = {{"x", block}};
    if (!refused_with([&] { io::save_npz(folder / "a.txt", arrays); }, "a.txt")) return 4;
    return 0;
  });
  EXPECT_EQ(result, 0);
  EXPECT_EQ(read(folder / "a.txt"), "old");
  EXPECT_EQ(folder.names(), Names{"a.txt"});
}

TEST(Output, DevicesPipesAndDescriptorsAreWrittenDirectly) {
  const Folder folder;
  EXPECT_NO_THROW(io::save_text("/dev/null", "x"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_refused([&] { io::save_text("/dev/full", std::string(100, 'x')); }, {"/dev/full", "make room"});

  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NO_THROW(io::check_writable(pipe));  // nobody reads yet: must not wait
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  io::save_text(pipe, "through the pipe");
  char buffer[64] = {};
  EXPECT_EQ(::read(reader, buffer, sizeof buffer), 16);
  ::close(reader);

  // A redirected standard output keeps what was printed before, and is not replaced.
  const auto redirected = folder.write("redirected", "");
  for (const char* name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    folder.write("redirected", "");
    const int result = in_child([&] {
      const int fd = ::open(redirected.c_str(), O_WRONLY);
      ::dup2(fd, 1);
      if (::write(1, "before ", 7) != 7) return 1;
      io::save_text(name, "during ");
      return ::write(1, "after", 5) == 5 ? 0 : 2;
    });
    EXPECT_EQ(result, 0);
    EXPECT_EQ(read(redirected), "before during after") << name;
  }
}

}  // namespace
