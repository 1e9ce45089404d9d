// SPDX-License-Identifier: Apache-2.0
//
// Features that are read anew for each product: which files, within how much memory, and how far the reading is.
#pragma once

#include "arguments.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/align.hpp>
#include <itspace/row_files.hpp>
#include <itspace/streamed.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace itspace::cli {

// "2GiB", "500MB", "65536": bytes. @throws std::invalid_argument naming the option.
std::uint64_t parse_bytes(std::string_view option, std::string_view text);
std::string bytes_text(double bytes);          // of files: "1.5 GB"
std::string memory_text(std::uint64_t bytes);  // "1.5 GiB"
CLI::Option* add_memory(CLI::App& app, std::optional<std::uint64_t>& value);

// Whether these are to be streamed: where a limit is given, several files, a pattern or a dataset, or one file of
// features that is larger than the machine's memory.
bool is_streamed(const std::vector<std::string>& names, const std::optional<std::uint64_t>& memory, Kind as);

// Whether only a stream takes these: a limit, several files, a pattern or a dataset.
bool asks_for_stream(const std::vector<std::string>& names, const std::optional<std::uint64_t>& memory);

// What is asked of a target in memory, and cannot be of rows that go by. @throws std::invalid_argument.
void check_streamed(const TargetArguments& target, const io::RowFiles& files);
[[noreturn]] void refuse_streamed(const std::string& what, const std::string& remedy);

std::string description(const io::RowFiles& files);     // "features, 100 samples of dimension 5"
std::string files_and_size(const io::RowFiles& files);  // "3 files, streamed: 1.5 GB of float32"
// "; labels.npy and 2 more: one dimension, taken for one column", and nothing where none has.
std::string flat_files_text(const io::RowFiles& files);
// What a checkpoint must have been made with: where chunks end depends on the memory.
std::string run_description(const io::RowFiles& files, const std::optional<std::uint64_t>& memory);
Json stream_json(const TargetArguments& target, const io::RowFiles& files);

// What a run holds beside the chunks of its stream.
struct RunSize {
  AlignOptions options;
  Index rank = 0;
  std::size_t scalar_bytes = 8;
  bool spread = false;  // one rank of a job, which sends and receives
};

// How much of `limit`, the memory of the whole program (without one: half of the machine's), is left for chunks.
// @throws std::invalid_argument saying how much is needed.
std::uint64_t memory_for_chunks(const std::optional<std::uint64_t>& limit, const io::RowFiles& files,
                                const RunSize& run, std::uint64_t least_for_chunks);

// Bytes that went by, and the line that says so.
class SweepProgress {
 public:
  // `sweeps`: as many as the run is expected to make.
  SweepProgress(Progress& line, std::uint64_t bytes_of_a_sweep, Index sweeps);

  void add(std::uint64_t bytes);
  // "read 12.0 GB in 7 sweeps, 1.1 GB/s"
  std::string summary(Index sweeps) const;

 private:
  using Clock = std::chrono::steady_clock;

  Progress& line_;
  double read_ = 0, expected_;
  Clock::time_point began_ = Clock::now(), shown_ = began_;
};

// The rows of another source, with an eye on how many there were.
template <Storage Data>
class WatchedRows : public RowSource<Data> {
 public:
  WatchedRows(std::shared_ptr<RowSource<Data>> rows, std::uint64_t row_bytes, SweepProgress& progress)
      : rows_(std::move(rows)), row_bytes_(row_bytes), progress_(progress) {}

  Index cols() const override { return rows_->cols(); }
  std::optional<Index> rows() const override { return rows_->rows(); }
  void restart() override { rows_->restart(); }
  Index read(BlockView<Data> out) override {
    const Index count = rows_->read(out);
    progress_.add(static_cast<std::uint64_t>(count) * row_bytes_);
    return count;
  }
  bool reads_anywhere() const override { return rows_->reads_anywhere(); }
  void read_at(Index first, BlockView<Data> out) override {
    rows_->read_at(first, out);
    const std::lock_guard lock(counting_);
    progress_.add(static_cast<std::uint64_t>(out.rows()) * row_bytes_);
  }
  void expect(Index first, Index count) override { rows_->expect(first, count); }
  std::string place_of(Index row) const override { return rows_->place_of(row); }

 private:
  std::mutex counting_;
  std::shared_ptr<RowSource<Data>> rows_;
  std::uint64_t row_bytes_;
  SweepProgress& progress_;
};

}  // namespace itspace::cli
