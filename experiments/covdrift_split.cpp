// SPDX-License-Identifier: Apache-2.0
#include "covdrift_split.hpp"

#include "sampling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace itspace::experiments {
namespace {

std::vector<Index> first_of(const std::vector<Index>& rows, Index count) {
  return {rows.begin(), rows.begin() + std::min<Index>(count, static_cast<Index>(rows.size()))};
}

std::set<int> classes_at(const LabelledSet& set, const std::vector<Index>& rows) {
  std::set<int> labels;
  for (const Index row : rows) labels.insert(set.labels[static_cast<std::size_t>(row)]);
  return labels;
}

}  // namespace

Split split_rows(const Instance& instance, std::uint64_t seed, Index most_rows) {
  const Index sources = instance.source.features.rows(), targets = instance.target.features.rows();
  Split split;
  split.paired = sources == targets && instance.source.labels == instance.target.labels;
  const std::vector<Index> target = first_of(shuffled(targets, seed, stream::target_rows), most_rows);
  const auto half = target.begin() + static_cast<Index>(target.size()) / 2;
  split.unlabeled.assign(target.begin(), half);
  split.test.assign(half, target.end());
  split.train = split.paired
                    ? split.unlabeled
                    : first_of(shuffled(sources, seed, stream::source_rows), std::min(sources * 4 / 5, most_rows));
  return split;
}

std::vector<Index> judged_rows(const Instance& instance, const Split& split, bool closed_set) {
  const std::set<int> known = classes_at(instance.source, split.train);
  std::vector<Index> judged;
  for (const Index row : split.test) {
    const int label = instance.target.labels[static_cast<std::size_t>(row)];
    if (known.contains(label)) {
      judged.push_back(row);
    } else if (!closed_set) {
      throw std::invalid_argument(fmt::format(
          "{}: test sample {} has class {}, which none of the {} source samples has; the head cannot know it. Evaluate "
          "only what the source has (--closed-set), or supply source samples of class {}",
          instance.info.name, row, label, split.train.size(), label));
    }
  }
  const std::set<int> judged_classes = classes_at(instance.target, judged);
  if (closed_set && judged_classes.size() >= 2) return judged;
  for (const int label : known) {
    if (judged_classes.contains(label)) continue;
    const auto all = std::count(instance.target.labels.begin(), instance.target.labels.end(), label);
    throw std::invalid_argument(fmt::format(
        "{}: class {} has no sample in the test half of {} ({} in the whole target); each class of the source needs "
        "one. Supply target samples of class {}, or leave it out of the source{}",
        instance.info.name, label, split.test.size(), all, label,
        closed_set ? "" : ", or evaluate the classes both sides have (--closed-set)"));
  }
  return judged;
}

}  // namespace itspace::experiments
