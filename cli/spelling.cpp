// SPDX-License-Identifier: Apache-2.0
#include "spelling.hpp"

#include <algorithm>

namespace itspace::cli {

namespace {

// Damerau-Levenshtein, adjacent letters exchanged counting as one.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words) {
  constexpr std::size_t longest = 100;  // no word of ours is; and the work stays small
  std::optional<std::string> best;
  std::size_t fewest = 3;
  if (typed.size() > longest) return best;
  for (const std::string& word : words) {
    const std::size_t apart = distance(typed, word);
    if (apart < fewest && 2 * apart < word.size()) {
      fewest = apart;
      best = word;
    }
  }
  return best;
}

}  // namespace itspace::cli
