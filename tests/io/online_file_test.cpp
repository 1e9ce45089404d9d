// SPDX-License-Identifier: Apache-2.0
//
// Streams in files: what is loaded goes on with the same bits, and everything else is refused by name.
#include <gtest/gtest.h>

#include <functional>
#include <itspace/map_file.hpp>
#include <itspace/online_file.hpp>
#include <itspace/random.hpp>
#include <vector>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;

constexpr Index dim = 30;

template <class Scalar>
Block<Scalar> batch(std::uint64_t number) {
  Block<Scalar> rows(6, dim);
  Random(3, number).fill_normal<Scalar>(rows);
  rows.array() += Scalar(2);
  return rows;
}

std::vector<OnlineAlignerOptions> kinds() {
  OnlineAlignerOptions forgetting{.rank = 2, .stream = {.half_life = 3, .kept_rank = 3}, .seed = ~std::uint64_t(0)};
  OnlineAlignerOptions window{.rank = 2, .stream = {.window = 3}};
  window.step_size = StepSize::line_search();
  OnlineAlignerOptions all{.rank = 3, .steps = 3, .stream = {.exact_batches = 2, .kept_rank = 4, .seed = 7}};
  all.step_size = StepSize::alpha(0.7);
  all.drift = DriftOptions{.run_length = 30, .reference_batches = 6, .rank = 2, .seed = 5};
  OnlineAlignerOptions samples{.rank = 1, .stream = {.half_life = 11.5, .unit = HalfLifeUnit::samples}};
  OnlineAlignerOptions balanced{.rank = 2, .stream = {.half_life = 4, .kept_rank = 3}};
  balanced.stream.balance = ClassBalance{.shares = Vector(Eigen::Vector2d(0.3, 0.7)), .classes = {"7", "a name"}};
  OnlineAlignerOptions nameless{.rank = 2, .stream = {.window = 3}};
  nameless.stream.balance = ClassBalance{.shares = Vector(Eigen::Vector2d(1, 2)), .classes = {}};
  return {forgetting, window, all, samples, balanced, nameless};
}

// Where it is asked for: one class in even batches, both in odd ones.
Predicted predicted(const OnlineAlignerOptions& options, std::uint64_t number) {
  Predicted classes;
  for (std::uint64_t i = 0; options.stream.balance && i < 6; ++i) {
    classes.labels.push_back(static_cast<Index>(i * number % 2));
  }
  return classes;
}

template <class Scalar>
void expect_same(const OnlineAligner<Scalar>& found, const OnlineAligner<Scalar>& expected) {
  const Folder folder;
  io::save_online(folder / "a.npz", found);
  io::save_online(folder / "b.npz", expected);
  EXPECT_EQ(fixtures::read(folder / "a.npz"), fixtures::read(folder / "b.npz"));
  EXPECT_EQ(found.factor(), expected.factor());
}

template <class Scalar>
void check_resumed() {
  constexpr std::uint64_t batches = 14;
  for (const OnlineAlignerOptions& options : kinds()) {
    OnlineAligner<Scalar> straight(options);
    for (std::uint64_t i = 0; i < batches; ++i) {
      straight.observe(batch<Scalar>(i), {}, predicted(options, i));
    }
    for (const std::uint64_t cut : {0U, 1U, 2U, 5U, 9U}) {
      SCOPED_TRACE(cut);
      const Folder folder;
      OnlineAligner<Scalar> first(options);
      for (std::uint64_t i = 0; i < cut; ++i) {
        first.observe(batch<Scalar>(i), {}, predicted(options, i));
      }
      io::save_online(folder / "state.npz", first);
      auto resumed = io::load_online<Scalar>(folder / "state.npz");
      for (std::uint64_t i = cut; i < batches; ++i) {
        resumed.observe(batch<Scalar>(i), {}, predicted(options, i));
      }
      expect_same(resumed, straight);
    }
  }
}

TEST(OnlineFile, AResumedStreamEndsInTheSameBits) {
  check_resumed<double>();
  check_resumed<float>();
}

// A gate in the middle of its patience, with some answers.
FollowGate a_gate() {
  FollowGate gate({.maps = {MapKind::scale, MapKind::monge}, .samples = 50, .patience = 3, .classes = {-1, 4}});
  Block<double> collapsed(20, 2), spread(20, 2);
  for (Index i = 0; i < 20; ++i) {
    collapsed.row(i) << 0.9, 0.1;
    spread.row(i) << 0.9 - 0.8 * static_cast<double>(i % 2), 0.1 + 0.8 * static_cast<double>(i % 2);
  }
  for (int i = 0; i < 2; ++i) {
    gate.observe({collapsed, {spread, collapsed}});
  }
  return gate;
}

TEST(OnlineFile, AGateGoesOnWithTheSameBits) {
  const Folder folder;
  OnlineAligner<float> aligner({.rank = 2});
  aligner.observe(batch<float>(0));
  io::save_online(folder / "plain.npz", aligner);
  EXPECT_FALSE(io::load_follow_gate(folder / "plain.npz"));
  for (const FollowGate& gate : {a_gate(), FollowGate()}) {
    io::save_online<float>(folder / "gated.npz", aligner, gate);
    const auto found = io::load_follow_gate(folder / "gated.npz");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->options().maps, gate.options().maps);
    EXPECT_EQ(found->options().samples, gate.options().samples);
    EXPECT_EQ(found->options().patience, gate.options().patience);
    EXPECT_EQ(found->options().classes, gate.options().classes);
    EXPECT_EQ(found->parts().answers, gate.parts().answers);
    EXPECT_EQ(found->parts().counts, gate.parts().counts);
    EXPECT_EQ(found->parts().choice, gate.parts().choice);
    EXPECT_EQ(found->parts().proposed, gate.parts().proposed);
    EXPECT_EQ(found->parts().times, gate.parts().times);
    io::save_online<float>(folder / "again.npz", io::load_online<float>(folder / "gated.npz"), found);
    EXPECT_EQ(fixtures::read(folder / "again.npz"), fixtures::read(folder / "gated.npz"));
  }
  EXPECT_EQ(a_gate().parts().proposed, "scale");
  EXPECT_EQ(a_gate().choice(), "none");
}

TEST(OnlineFile, ReplacesTheOldStateWhole) {
  const Folder folder;
  OnlineAligner<double> aligner({.rank = 2});
  for (std::uint64_t i = 0; i < 3; ++i) {
    aligner.observe(batch<double>(i));
    io::save_online(folder / "state.npz", aligner);
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"state.npz"});
  EXPECT_EQ(io::load_online<double>(folder / "state.npz").target().version(), 3U);
}

TEST(OnlineFile, OtherFilesAreRefusedByName) {
  const Folder folder;
  OnlineAligner<float> aligner({.rank = 2, .drift = DriftOptions{}});
  aligner.observe(batch<float>(0));
  const auto path = folder / "state.npz";
  io::save_online(path, aligner);
  EXPECT_EQ(io::online_precision(path), "float32");
  const auto load = [](const std::filesystem::path& file) { return [file] { io::load_online<float>(file); }; };
  expect_refused([&] { io::load_online<double>(path); }, {"state.npz", "float32", "float64"});

  // Cut anywhere, it is refused and not read half.
  const std::string bytes = fixtures::read(path);
  for (std::size_t length = 0; length < bytes.size(); length += 97) {
    const auto cut = folder.write("cut.npz", std::string_view(bytes).substr(0, length));
    expect_refused(load(cut), {"cut.npz"});
  }
  expect_refused(load(folder / "missing.npz"), {"missing.npz"});

  io::save_npy<double>(folder / "plain.npy", Block<double>::Ones(2, 2));
  expect_refused(load(folder / "plain.npy"), {"plain.npy", "plain array", "itspace.online/1"});
  const LowRankGaussian model{Block<double>::Ones(3, 1), Eigen::VectorXd::Zero(3), 1.0};
  io::save_map(folder / "map.npz", TransportMap(model, model));
  expect_refused(load(folder / "map.npz"), {"map.npz", "itspace.map/2", "itspace.online/1"});
  // What no file of ours has, in files whose checksums are right.
  const io::NamedBlock anything[] = {{"sigma", Block<double>::Ones(2, 2)}};
  io::save_npz(folder / "other.npz", anything);
  expect_refused(load(folder / "other.npz"), {"other.npz", "'format'", "itspace.online/1"});
}

}  // namespace
