// SPDX-License-Identifier: Apache-2.0
//
// Damaged files either load or are refused; nothing else may happen (run it under the sanitizers too).
#include <gtest/gtest.h>

#include <itspace/io.hpp>
#include <random>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::Member;

std::vector<std::string> valid_files() {
  using fixtures::npy_of;
  const std::string bytes = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789";
  const std::string double_c = npy_of("<f8", "(2, 3)", bytes.substr(0, 48));
  const std::string half_f = npy_of(">f2", "(5, 3)", bytes.substr(0, 30), true);
  const std::string version3 = fixtures::npy("{'descr': '|u1', 'fortran_order': False, 'shape': (20,)}", bytes, 3);
  std::vector<std::string> files = {double_c, half_f, version3, npy_of("<i4", "()", "1234")};
  for (const bool deflated : {false, true}) {
    files.push_back(fixtures::zip({{"mu.npy", half_f, deflated}, {"sigma.npy", double_c, deflated}}));
    files.push_back(fixtures::zip({{"sigma.npy", double_c, deflated, true}}, true, "comment"));
    files.push_back(fixtures::zip({{"x.npy", half_f, deflated, false, true}}));
  }
  return files;
}

TEST(Mutation, DamagedArraysLoadOrAreRefused) {
  const fixtures::Folder folder;
  const auto files = valid_files();
  std::mt19937 random(20);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int loaded = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = files[below(files.size())];
    const std::size_t kind = below(8);
    if (kind == 0) {
      bytes.resize(1 + below(bytes.size()));
    } else if (kind == 1) {
      bytes.erase(below(bytes.size()), 1 + below(8));
    } else if (kind == 2) {
      bytes.insert(below(bytes.size()), 1 + below(8), static_cast<char>(below(256)));
    } else {
      for (std::size_t changes = kind == 3 ? 1 + below(16) : 1; changes > 0; --changes) {
        // Extreme bytes reach the limits of fields sooner than random ones; digits make other valid headers.
        const char values[] = {
            '\0', '\xff', '\x7f', '\x80', static_cast<char>('0' + below(10)), static_cast<char>(below(256))};
        bytes[below(bytes.size())] = values[below(6)];
      }
    }
    if (bytes.empty()) {
      continue;
    }
    const auto path = folder.write("a", bytes);
    try {
      for (const std::string& key : io::array_keys(path)) {
        if (!key.empty()) {
          try {
            io::open_array(path, key);
          } catch (const std::runtime_error&) {
          }
        }
      }
      const auto array = io::open_array(path);
      // Every value is touched. Empty arrays may have one absurd length.
      const auto exact = array.as<double>();
      volatile double sum = exact.rows() > 0 && exact.cols() > 0 ? exact.view().sum() : 0;
      static_cast<void>(sum);
      array.as<float>();
      ++loaded;
    } catch (const std::runtime_error& error) {
      EXPECT_GT(std::string_view(error.what()).size(), 20U);
      ++refused;
    }
  }
  // Both must happen often, or the test tests nothing.
  EXPECT_GT(loaded, 1000);
  EXPECT_GT(refused, 2000);
}

TEST(Mutation, DamagedTracesLoadOrAreRefused) {
  Trace trace;
  trace.dim = 30;
  trace.steps.resize(2);
  trace.steps[1].objective = 1.25;
  trace.steps[1].certified = true;
  const std::string valid = io::to_json(trace);
  std::mt19937 random(21);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = valid;
    const char values[] = {'0', '-', '"', '{', '[', '}', 'e', '.', static_cast<char>(below(256))};
    text[below(text.size())] = values[below(sizeof values)];
    if (i % 10 == 0) {
      text.resize(below(text.size()));
    }
    try {
      io::trace_from_json(text);
    } catch (const std::runtime_error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
