// SPDX-License-Identifier: Apache-2.0
//
// itspace transform: samples through a map, a chunk of rows at a time.
#include "arguments.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <itspace/map_file.hpp>
#include <itspace/row_stream.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <memory>
#include <stdexcept>

namespace itspace::cli {

namespace {

constexpr auto examples = R"(
Examples:
  itspace transform --map map.npz --in tgt.npy --out mapped.npy
      the samples of the target, row by row, in the source's frame
  itspace transform --map map.npz --in mapped.npy --out back.npy --inverse
      and back
  zcat tgt.npy.gz | itspace transform --map map.npz --in - --out - | python3 classify.py
      standard streams: an .npy comes in and an .npy goes out, rows as they come

Rows are read, mapped and written in chunks, so a file may be larger than memory. float32 and float16 samples
give float32, all others float64. A row with a value that is not finite is refused, by its number; a file is then
not written at all (an old one stays), but rows before it have already gone to a standard output or a pipe. The same
holds for the checksum of an .npz, which is known to be right only with its last row. --out may not be one of the inputs.)";

struct Arguments {
  std::filesystem::path map, in, out;
  bool inverse = false, json = false, quiet = false;
};

bool is_stream(const std::filesystem::path& path) {
  return path == "-";
}

std::string input_name(const Arguments& given) {
  return is_stream(given.in) ? "standard input" : quoted(given.in);
}

void check_arguments(const Arguments& given) {
  check_files({{"--map", given.map}, {"--in", given.in}}, {{"--out", given.out}});
  if (is_stream(given.out) && given.json)
    misuse("--json and --out - both write to standard output", "give --out a file, or leave out --json");
  if (is_stream(given.out) && ::isatty(STDOUT_FILENO) != 0)
    misuse("--out is -, and standard output is a terminal, which cannot show an .npy",
           "redirect it to a file or a pipe, or give --out a file");
  if (is_stream(given.in) && ::isatty(STDIN_FILENO) != 0)
    misuse("--in is -, and standard input is a terminal", "pipe an .npy file into it, or give --in a file");
}

void check_dim(const Arguments& given, const io::RowReader& in, const TransportMap& map) {
  if (in.cols() == map.dim()) return;
  misuse(fmt::format("{} is {}: samples of dimension {}, but the map in {} has dimension {}", input_name(given),
                     shape_text(in.rows(), in.cols()), in.cols(), quoted(given.map), map.dim()),
         fmt::format("give samples in rows of {} values, the coordinates the map was made for", map.dim()));
}

// A finite row that the map takes out of the range of numbers.
template <Storage Scalar>
void check_mapped(const ConstBlockView<Scalar>& mapped, Index first, const std::string& input) {
  if (mapped.allFinite()) return;
  for (Index i = 0; i < mapped.rows(); ++i)
    for (Index j = 0; j < mapped.cols(); ++j)
      if (!std::isfinite(mapped(i, j)))
        misuse(fmt::format("{}: row {} is mapped beyond the largest number, to {} in column {}", input, first + i,
                           mapped(i, j), j),
               "rescale the samples, or give them as float64");
}

template <Storage Scalar>
void transform(const Arguments& given, io::RowReader& in, const TransportMap& map) {
  constexpr Index chunk_values = Index(1) << 20;
  const Index most = std::clamp<Index>(chunk_values / map.dim(), 1, std::max<Index>(in.rows(), 1));
  io::RowWriter<Scalar> out(given.out, in.rows(), in.cols());
  Block<Scalar> chunk(most, in.cols());
  Progress progress(!given.quiet);
  Index first = 0;
  while (const Index count = in.read<Scalar>(chunk)) {
    BlockView<Scalar> rows = chunk.topRows(count);
    check_finite_rows<Scalar>(rows, first, input_name(given));
    map.apply<Scalar>(rows);
    check_mapped<Scalar>(rows, first, input_name(given));
    out.write(rows);
    first += count;
    progress.show_step(first, in.rows(), "row");
  }
  out.commit();
}

TransportMap load(const Arguments& given) {
  const TransportMap map = io::load_map(given.map);
  if (!given.inverse) return map;
  try {
    return map.inverse();
  } catch (const std::invalid_argument& error) {  // a map that was made by us has an inverse
    throw std::runtime_error(fmt::format("{} has no inverse: {}\nthe file is damaged: make it again with `itspace map`",
                                         quoted(given.map), error.what()));
  }
}

int run(const Arguments& given) {
  check_arguments(given);
  // A filter whose reader has gone ends as every filter does, without a word.
  if (is_stream(given.out)) std::signal(SIGPIPE, SIG_DFL);
  const TransportMap map = load(given);
  io::RowReader in(given.in);
  check_dim(given, in, map);
  if (in.info().shape.size() < 2 && !given.quiet) print_note(fmt::format("{}: {}", input_name(given), as_one_column));
  const bool float32 = in.info().type == "float32" || in.info().type == "float16";
  if (float32)
    transform<float>(given, in, map);
  else
    transform<double>(given, in, map);

  const std::string_view type = float32 ? "float32" : "float64";
  if (given.json)
    print_json({{"command", "transform"},
                {"map", given.map.string()},
                {"kind", name(map.kind())},
                {"inverse", given.inverse},
                {"rows", in.rows()},
                {"dim", in.cols()},
                {"type", type},
                {"out", given.out.string()}});
  else if (!given.quiet)
    print_note(fmt::format("{} samples of dimension {} went through the {}{} map; the result ({}) is in {}", in.rows(),
                           in.cols(), given.inverse ? "inverse " : "", name(map.kind()), type,
                           is_stream(given.out) ? "standard output" : quoted(given.out)));
  return exit_code::success;
}

}  // namespace

Command add_transform(CLI::App& program) {
  CLI::App* app = program.add_subcommand("transform", "send samples through a map of `itspace map`");
  app->footer(examples);
  auto given = std::make_shared<Arguments>();
  add_path(*app, "--map", given->map, "a map of `itspace map`")->required();
  add_path(*app, "--in", given->in, "the samples, one per row (.npy or .npz); - for standard input")->required();
  add_path(*app, "--out", given->out, "the mapped samples (.npy); - for standard output")->required();
  app->add_flag("--inverse", given->inverse, "the map back: from the source's frame to the target's");
  add_threads(*app);
  app->add_flag("--json", given->json, "print one JSON object");
  app->add_flag("--quiet", given->quiet, "print nothing but errors");
  return {app, [given] { return run(*given); }};
}

}  // namespace itspace::cli
