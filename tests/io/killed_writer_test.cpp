// SPDX-License-Identifier: Apache-2.0
//
// A writer that is killed at a random moment leaves the old file or the new one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <itspace/io.hpp>
#include <random>
#include <thread>

#include "fixtures.hpp"

namespace {

using namespace itspace;

TEST(KilledWriter, LeavesTheOldFileOrTheNewOne) {
  const fixtures::Folder folder;
  const auto path = folder / "a.npy";
  // Every write is one value throughout, so a mixture shows.
  const auto block = [](int round) { return Block<double>(Block<double>::Constant(512, 256, round)); };
  io::save_npy<double>(path, block(0));
  std::mt19937 random(1);
  std::uniform_int_distribution<int> microseconds(0, 20000);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  int kills = 0;
  while (std::chrono::steady_clock::now() < end) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int round = 1;; ++round) {
        io::save_npy<double>(path, block(round));
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ++kills;
    const auto array = io::open_array(path);
    ASSERT_EQ(array.rows(), 512);
    ASSERT_EQ(array.cols(), 256);
    const auto held = array.as<double>();
    ASSERT_TRUE((held.view().array() == held.view()(0, 0)).all());
  }
  EXPECT_GT(kills, 3);
}

TEST(KilledWriter, ThreadsMayWriteTheSameFile) {
  const fixtures::Folder folder;
  const auto path = folder / "a.txt";
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; ++c) {
    threads.emplace_back([&path, c] {
      for (int i = 0; i < 10; ++i) {
        io::save_text(path, std::string(100000, c));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const std::string text = fixtures::read(path);
  EXPECT_EQ(text, std::string(100000, text.front()));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.txt"});
}

}  // namespace
