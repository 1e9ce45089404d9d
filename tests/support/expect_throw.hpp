// SPDX-License-Identifier: Apache-2.0
//
// Misuse must throw, and its message must say what a person needs: the offending value and the limit.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace itspace::test {

template <class Exception, class Call>
void expect_throws_naming(std::initializer_list<std::string> parts, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& e) {
    const std::string message = e.what();
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is missing in: " << message;
    }
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another kind of exception was thrown: " << e.what();
  }
}

template <class Call>
void expect_misuse(std::initializer_list<std::string> parts, Call&& call) {
  expect_throws_naming<std::invalid_argument>(parts, std::forward<Call>(call));
}

}  // namespace itspace::test
