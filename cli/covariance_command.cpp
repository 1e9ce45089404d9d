// SPDX-License-Identifier: Apache-2.0
//
// itspace covariance: the matrix itself, for those who want it, a band of rows for each sweep over the features.
#include "arguments.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "progress.hpp"
#include "streamed_target.hpp"
#include "text.hpp"

#include <itspace/covariance_bands.hpp>
#include <itspace/row_stream.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace covariance 'part-*.npy' --memory 2GiB --out S.npy
      d x d values, in as many sweeps over the files as the memory makes of them
  itspace align --target 'part-*.npy' --memory 2GiB --rank 16 --out Y.npy
      what most people want instead: no covariance is needed to align, and none is made

Entry (i, j) and entry (j, i) come from different sums and agree up to rounding. The matrix is written in float64.)";

struct Arguments {
  std::vector<std::string> names;
  std::filesystem::path out, mean;
  std::optional<std::uint64_t> memory;
  bool quiet = false;
};

template <Storage Data>
int run_on(const Arguments& given, const io::RowFiles& files) {
  using Streamed = StreamedFeatures<double, Data>;
  const Index d = files.cols();
  const std::uint64_t least = Streamed::least_memory(d) + bytes_of_band_row(d);
  const std::uint64_t left = memory_for_chunks(given.memory, files, {{}, 1, sizeof(double)}, least);
  const std::uint64_t for_rows = std::max(Streamed::least_memory(d), std::min(left / 4, default_stream_memory));
  const Index band = band_rows(d, left - for_rows);
  const Index sweeps_needed = (d + band - 1) / band;
  if (!given.quiet) {
    print_note(fmt::format("features, {} samples of dimension {}: the covariance is {}, {} of {}{}", files.rows(), d,
                           bytes_text(8.0 * static_cast<double>(d) * static_cast<double>(d)),
                           sweeps_needed == 1 ? "1 sweep" : fmt::format("{} sweeps", sweeps_needed),
                           bytes_text(static_cast<double>(files.bytes())), flat_files_text(files)));
    print_note(
        "align, distance and info take features as they are and make no covariance; it is worth its room where it is "
        "used often and d is small beside the number of samples");
  }
  Progress line(!given.quiet);
  SweepProgress progress(line, files.bytes(), sweeps_needed);
  const std::uint64_t row_bytes = files.bytes() / static_cast<std::uint64_t>(std::max<Index>(1, files.rows()));
  const Streamed target(std::make_shared<WatchedRows<Data>>(files.source<Data>(), row_bytes, progress), for_rows);
  io::RowWriter<double> writer(given.out, d, d);
  covariance_bands<double>(target, band, [&](const ConstBlockView<double>& rows) { writer.write(rows); });
  line.clear();
  writer.commit();
  if (!given.mean.empty()) io::save_npy<double>(given.mean, Block<double>(target.mean()));
  if (!given.quiet) {
    print_note(progress.summary(target.sweeps()));
    print_line(fmt::format("The covariance ({}) of {} samples is in {}.", shape_text(d, d), target.samples(),
                           quoted(given.out)));
  }
  return exit_code::success;
}

int run(const Arguments& given) {
  NamedFiles inputs;
  for (const std::string& name : given.names) inputs.push_back({"FILE", name});
  check_files(inputs, {{"--out", given.out}, {"--mean", given.mean}});
  const io::RowFiles files(given.names);
  io::check_writable(given.out);
  if (!given.mean.empty()) io::check_writable(given.mean);
  const bool narrow = files.type() == "float32" || files.type() == "float16";
  return with_data_type(Precision::automatic, narrow, [&]<class Data>() { return run_on<Data>(given, files); });
}

}  // namespace

Command add_covariance(CLI::App& program) {
  CLI::App* app = program.add_subcommand("covariance", "the covariance matrix of features larger than memory");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  app->add_option("FILE", given->names, "features: .npy files, patterns, file.h5:/dataset, .parquet and .arrow files")
      ->required();
  add_path(*app, "--out", given->out, "the covariance, d x d (.npy)")->required();
  add_path(*app, "--mean", given->mean, "the mean, d x 1 (.npy)");
  add_memory(*app, given->memory);
  add_threads(*app);
  app->add_flag("--quiet", given->quiet, "print nothing but errors");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
