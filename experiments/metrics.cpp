// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace itspace::experiments {

double accuracy(const std::vector<int>& predicted, const std::vector<int>& labels) {
  if (labels.empty() || predicted.size() != labels.size())
    throw std::invalid_argument(fmt::format("accuracy of {} predictions against {} labels; pass as many, at least one",
                                            predicted.size(), labels.size()));
  const auto right = std::inner_product(predicted.begin(), predicted.end(), labels.begin(), std::size_t{0},
                                        std::plus<>{}, std::equal_to<>{});
  return 100 * static_cast<double>(right) / static_cast<double>(labels.size());
}

double auroc(const SmallVector& scores, const std::vector<bool>& is_positive) {
  const std::size_t count = is_positive.size();
  if (static_cast<std::size_t>(scores.size()) != count)
    throw std::invalid_argument(fmt::format("AUROC of {} scores for {} samples; pass as many", scores.size(), count));
  if (scores.hasNaN()) throw std::invalid_argument("AUROC of scores with a NaN; NaN has no rank, check the features");
  const auto positives = static_cast<double>(std::count(is_positive.begin(), is_positive.end(), true));
  const double negatives = static_cast<double>(count) - positives;
  if (positives == 0 || negatives == 0)
    throw std::invalid_argument(
        fmt::format("AUROC of {} positive and {} negative samples; it needs one of each", positives, negatives));

  // Mann-Whitney: U = (sum of the positives' ranks) - p(p + 1)/2, ties sharing the mean of their ranks.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto score = [&](std::size_t place) { return scores[static_cast<Index>(order[place])]; };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scores[static_cast<Index>(a)] < scores[static_cast<Index>(b)];
  });
  double rank_sum = 0;
  for (std::size_t first = 0, last = 0; first < count; first = last) {
    double positives_here = 0;
    for (last = first; last < count && score(last) == score(first); ++last) positives_here += is_positive[order[last]];
    const double mean_rank = 0.5 * static_cast<double>(first + 1 + last);  // ranks first + 1, ..., last
    rank_sum += positives_here * mean_rank;
  }
  return 100 * (rank_sum - 0.5 * positives * (positives + 1)) / (positives * negatives);
}

}  // namespace itspace::experiments
