// SPDX-License-Identifier: Apache-2.0
//
// Requirements that serve a GoogleTest body and a RapidCheck property alike: they throw, so that RapidCheck shrinks and
// GoogleTest prints. A NaN meets none of them.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace itspace::test {

[[noreturn]] inline void violated(const std::string& what, const char* file, int line) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

template <class A, class B>
void require_compared(bool holds, const A& a, const B& b, const char* text, const char* file, int line) {
  if (holds) return;
  std::ostringstream what;
  what.precision(6);
  what << "not so: " << text << " (" << a << " against " << b << ")";
  violated(what.str(), file, line);
}

}  // namespace itspace::test

#define ITSPACE_REQUIRE_COMPARED(a, op, b)                                                                       \
  do {                                                                                                           \
    const auto require_a = (a);                                                                                  \
    const auto require_b = (b);                                                                                  \
    ::itspace::test::require_compared(require_a op require_b, require_a, require_b, #a " " #op " " #b, __FILE__, \
                                      __LINE__);                                                                 \
  } while (false)

#define REQUIRE_LE(a, b) ITSPACE_REQUIRE_COMPARED(a, <=, b)
#define REQUIRE_LT(a, b) ITSPACE_REQUIRE_COMPARED(a, <, b)
#define REQUIRE_GE(a, b) ITSPACE_REQUIRE_COMPARED(a, >=, b)
#define REQUIRE_GT(a, b) ITSPACE_REQUIRE_COMPARED(a, >, b)
#define REQUIRE_EQ(a, b) ITSPACE_REQUIRE_COMPARED(a, ==, b)
#define REQUIRE_TRUE(a)                                                     \
  do {                                                                      \
    if (!(a)) ::itspace::test::violated("not so: " #a, __FILE__, __LINE__); \
  } while (false)
