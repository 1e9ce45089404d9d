// SPDX-License-Identifier: Apache-2.0
//
// A parser for just the literals that NumPy writes into headers. It does not recurse, so no header can exhaust the
// stack.
#include "dict_literal.hpp"

#include <optional>

#include "error.hpp"

namespace itspace::io {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  std::vector<std::pair<std::string_view, DictValue>> dict() {
    std::vector<std::pair<std::string_view, DictValue>> entries;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      entries.emplace_back(key, value());
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ < text_.size()) {
      damaged("text after the closing brace");
    }
    return entries;
  }

 private:
  [[noreturn]] void damaged(std::string_view what) const {
    fail("{}: the header {} cannot be read ({} at character {}); the header is damaged", where_, in_quotes(text_), what,
         at_);
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }

  bool accept(char c) {
    skip_space();
    if (peek() != c || at_ >= text_.size()) {
      return false;
    }
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) {
      damaged(fmt::format("'{}' missing", c));
    }
  }

  std::string_view string() {
    skip_space();
    const char quote = peek();
    if (quote != '\'' && quote != '"') {
      damaged("a quoted string missing");
    }
    const std::size_t begin = at_ + 1;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) {
      damaged("an unfinished string");
    }
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  DictValue value() {
    skip_space();
    const std::size_t begin = at_;
    DictValue result;
    if (peek() == '\'' || peek() == '"') {
      result.kind = DictValue::Kind::string;
      result.text = string();
      return result;
    }
    if (const auto truth = boolean()) {
      result.kind = DictValue::Kind::boolean;
      result.truth = *truth;
    } else if (integer_tuple(result.integers)) {
      result.kind = DictValue::Kind::integers;
    } else {
      at_ = begin;
      skip_brackets();
    }
    result.text = text_.substr(begin, at_ - begin);
    return result;
  }

  std::optional<bool> boolean() {
    for (const auto& [word, truth] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return truth;
      }
    }
    return std::nullopt;
  }

  // (), (3,), (3, 4), (3L, 4L); false where it is something else.
  bool integer_tuple(std::vector<std::uint64_t>& integers) {
    if (!accept('(')) {
      return false;
    }
    bool comma = true;
    while (!accept(')')) {
      const auto number = comma ? integer() : std::nullopt;
      if (!number) {
        return false;
      }
      integers.push_back(*number);
      comma = accept(',');
    }
    return integers.size() != 1 || comma;  // (3) is a number in Python, not a tuple
  }

  std::optional<std::uint64_t> integer() {
    skip_space();
    std::uint64_t number = 0;
    const std::size_t begin = at_;
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(peek() - '0');
      if (__builtin_mul_overflow(number, std::uint64_t{10}, &number) ||
          __builtin_add_overflow(number, digit, &number)) {
        damaged("a length above 2^64");
      }
    }
    if (at_ == begin) {
      return std::nullopt;
    }
    if (text_[begin] == '0' && number != 0) {
      damaged("a number with a leading zero");  // as in Python, where 010 might mean 8 or 10
    }
    if (peek() == 'L') {  // Python 2 wrote long integers so
      ++at_;
    }
    return number;
  }

  // Steps over a value we do not understand, only to be able to quote it: to the end of its outermost bracket, or to
  // the next comma.
  void skip_brackets() {
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '[' || c == '(') {
        ++depth;
      } else if (c == ']' || c == ')') {
        --depth;
        if (depth <= 0) {
          ++at_;
          return;
        }
      } else if (depth == 0 && (c == ',' || c == '}')) {
        return;
      }
    }
    damaged("an unfinished value");
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::pair<std::string_view, DictValue>> parse_dict_literal(std::string_view literal,
                                                                       std::string_view where) {
  return Parser(literal, where).dict();
}

}  // namespace itspace::io
