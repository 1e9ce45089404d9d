// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint comes back as it went, and a run that goes on from the file ends in the bits of one that never stopped.
#include <gtest/gtest.h>

#include <itspace/checkpoint_file.hpp>
#include <itspace/io.hpp>
#include <itspace/targets.hpp>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;

// A flat spectrum, so that no solver is done before its steps are.
template <Storage Scalar>
FeaturesTarget<Scalar> some_target() {
  constexpr Index dim = 80;
  std::srand(7);
  Block<Scalar> features = Block<Scalar>::Random(300, dim);
  for (Index j = 0; j < dim; ++j) {
    features.col(j) *= Scalar(2 * dim - j);
  }
  return FeaturesTarget<Scalar>(std::move(features));
}

// All numbers of a trace but the seconds, which are those of the day.
std::string timeless(Trace trace) {
  for (Step& step : trace.steps) {
    step.seconds = 0;
  }
  return io::to_json(trace);
}

template <Storage Scalar>
void expect_same_end(const AlignOptions& options, Index every) {
  const Folder folder;
  const auto target = some_target<Scalar>();
  std::vector<std::filesystem::path> files;
  Checkpoints<Scalar> checkpoints{every, [&](const Checkpoint<Scalar>& checkpoint) {
                                    files.push_back(folder / ("c" + std::to_string(files.size()) + ".npz"));
                                    io::save_checkpoint<Scalar>(files.back(), checkpoint, "rank=3\n");
                                  }};
  std::vector<Index> rows;
  const auto whole = align_with_checkpoints<Scalar>(target, 3, options, checkpoints,
                                                    [&](const Step& step, const ConstBlockView<Scalar>&) {
                                                      rows.push_back(step.index);
                                                      return StepAction::proceed;
                                                    });
  EXPECT_TRUE(whole.trace.certified());
  ASSERT_EQ(std::ssize(whole.trace.steps), options.steps + 1);
  for (Index k = 0; k <= options.steps; ++k) {
    EXPECT_EQ(rows.at(std::size_t(k)), k);  // each row once
  }
  ASSERT_EQ(std::ssize(files), (options.steps - 1) / every);
  // One pass more for each than a run without.
  const auto plain = align<Scalar>(target, 3, options);
  if (options.solver == Solver::ritz) {
    EXPECT_EQ(whole.trace.passes_total, plain.trace.passes_total + std::ssize(files));
  }
  EXPECT_LE(whole.trace.steps.back().objective, plain.trace.steps.front().objective);
  checkpoints.save = nullptr;
  for (const auto& file : files) {
    const auto resumed = resume<Scalar>(target, io::load_checkpoint<Scalar>(file), options, checkpoints);
    EXPECT_EQ(resumed.factor, whole.factor) << file;
    EXPECT_EQ(timeless(resumed.trace), timeless(whole.trace)) << file;
  }
}

TEST(CheckpointFile, EveryResumedRunEndsInTheSameBits) {
  for (const Index every : {1, 3}) {
    expect_same_end<double>({.steps = 7}, every);
    expect_same_end<float>({.steps = 7}, every);
    expect_same_end<double>({.steps = 7, .solver = Solver::ritz}, every);
    expect_same_end<double>({.steps = 7, .step_size = StepSize::line_search()}, every);
    expect_same_end<double>({.steps = 7, .probe = true}, every);
  }
}

TEST(CheckpointFile, HoldsWhatItSays) {
  const Folder folder;
  const auto target = some_target<double>();
  const auto path = folder / "c.npz";
  const Checkpoints<double> checkpoints{
      2, [&](const Checkpoint<double>& checkpoint) { io::save_checkpoint<double>(path, checkpoint, "rank=3\n"); }};
  align_with_checkpoints<double>(target, 3, {.steps = 3}, checkpoints);
  EXPECT_EQ(io::load_checkpoint_head(path).precision, "float64");
  EXPECT_EQ(io::load_checkpoint_head(path).run, "rank=3\n");
  EXPECT_EQ(io::load_checkpoint<double>(path).trace.steps.size(), 3U);
  EXPECT_EQ(folder.names(), std::vector<std::string>{"c.npz"});
  expect_refused([&] { io::load_checkpoint<float>(path); }, {"c.npz", "float64", "float32"});
}

TEST(CheckpointFile, OtherFilesAndDamagedOnesAreRefused) {
  const Folder folder;
  const auto path = folder / "c.npz";
  const auto target = some_target<double>();
  const Checkpoints<double> checkpoints{
      1, [&](const Checkpoint<double>& checkpoint) { io::save_checkpoint<double>(path, checkpoint, "r"); }};
  align_with_checkpoints<double>(target, 3, {.steps = 2}, checkpoints);
  const std::string whole = fixtures::read(path);
  const auto refused = [&](std::string_view name, const std::string& bytes,
                           std::initializer_list<std::string_view> in) {
    const auto other = folder.write(name, bytes);
    expect_refused([&] { io::load_checkpoint<double>(other); }, in);
  };
  refused("plain.npy", fixtures::npy_f8("(1, 1)", {1}), {"plain.npy", "no checkpoint", "itspace align --checkpoint"});
  refused("other.npz", fixtures::zip({{"x.npy", fixtures::npy_f8("(1, 1)", {1})}}), {"other.npz", "'format'"});
  refused("cut.npz", whole.substr(0, whole.size() / 2), {"cut.npz"});
  for (std::size_t i = 0; i < whole.size(); i += 97) {  // never a wrong result: whole, or refused
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 4);
    const auto other = folder.write("flipped.npz", flipped);
    try {
      const auto checkpoint = io::load_checkpoint<double>(other);
      EXPECT_EQ(checkpoint.current, io::load_checkpoint<double>(path).current) << i;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("flipped.npz"), std::string::npos) << error.what();
    }
  }
}

TEST(CheckpointFile, AnotherTargetOrNothingLeftToDo) {
  const auto target = some_target<double>();
  Checkpoint<double> last;
  const Checkpoints<double> checkpoints{2, [&](const Checkpoint<double>& checkpoint) { last = checkpoint; }};
  align_with_checkpoints<double>(target, 3, {.steps = 3}, checkpoints);
  EXPECT_THROW(resume<double>(target, last, {.steps = 2}, checkpoints), std::invalid_argument);
  const FeaturesTarget<double> other(Block<double>::Random(20, 5));
  EXPECT_THROW(resume<double>(other, last, {.steps = 3}, checkpoints), std::invalid_argument);
  // Another target of the same shape would make one trace of distances to two.
  for (const Solver solver : {Solver::paper, Solver::ritz}) {
    AlignOptions options{.steps = 3};
    options.solver = solver;
    const Block<double> features = Block<double>::Random(20, 8);
    Block<double> changed = features;
    changed.row(7) *= 1.01;
    align_with_checkpoints<double>(FeaturesTarget<double>(features), 3, options, checkpoints);
    EXPECT_NO_THROW(resume<double>(FeaturesTarget<double>(features), last, options, checkpoints));
    align_with_checkpoints<double>(FeaturesTarget<double>(features), 3, options, checkpoints);
    EXPECT_THROW(resume<double>(FeaturesTarget<double>(changed), last, options, checkpoints), std::invalid_argument);
  }
  EXPECT_THROW(align_with_checkpoints<double>(target, 3, {.steps = 3}, {.every = 0}), std::invalid_argument);
  EXPECT_THROW(align_with_checkpoints<double>(target, 3, {.steps = 3, .route = Route::root}, checkpoints),
               std::invalid_argument);
}

}  // namespace
