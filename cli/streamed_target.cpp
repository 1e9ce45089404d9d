// SPDX-License-Identifier: Apache-2.0
//
// Memory is planned before anything is read.
#include "streamed_target.hpp"

#include "text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace itspace::cli {

namespace {

constexpr std::uint64_t mib = std::uint64_t(1) << 20;

std::uint64_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

// In the largest unit of which it is at least one.
std::string in_largest_unit(double bytes, double step, const std::array<const char*, 5>& units, int digits) {
  std::size_t unit = 0;
  for (; bytes >= step && unit + 1 < units.size(); ++unit) bytes /= step;
  return unit == 0 ? fmt::format("{:.0f} {}", bytes, units[0]) : fmt::format("{:.{}g} {}", bytes, digits, units[unit]);
}

// The program itself: code, libraries, threads, the r x r work, and what the allocator holds back. A number and not a
// measurement, so that the same command makes the same chunks, and with them the same bits.
constexpr std::uint64_t bytes_of_program = 40 * mib;

// And with MPI, whose libraries and messages to neighbours are in the memory of each rank.
constexpr std::uint64_t bytes_of_mpi = 16 * mib;
constexpr std::uint64_t most_in_an_exchange = std::uint64_t(1) << 22;  // values, those that come and those that go

// The blocks of d rows that a run holds at its fullest, in columns: those of the solver (three iterates, basis, B,
// product and completion; [V, Q, P], its product and the step before), a random start, what a checkpoint copies, and
// the slabs and sums that the kernels make of them; and in double the sums of the stream.
std::uint64_t bytes_of_blocks(Index dim, const RunSize& run) {
  const auto d = static_cast<std::uint64_t>(dim), r = static_cast<std::uint64_t>(run.rank);
  constexpr std::uint64_t oversampling = 8, usual_guard = 16;
  const bool ritz = run.options.solver == Solver::ritz;
  const std::uint64_t guard =
      run.options.guard ? static_cast<std::uint64_t>(std::max<Index>(0, *run.options.guard)) : usual_guard;
  const std::uint64_t width = r + guard, widest = ritz ? width + r : r + oversampling;
  const std::uint64_t of_solver = ritz ? 8 * width + 6 * r : 9 * r + 2 * oversampling;
  const std::uint64_t in_scalar = of_solver + 2 * r + 4 * widest, in_double = widest;
  const std::uint64_t exchanged = run.spread ? 2 * run.scalar_bytes * std::min(d * widest, most_in_an_exchange) : 0;
  return d * (in_scalar * run.scalar_bytes + in_double * sizeof(double)) + exchanged;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view option, std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array<Unit, 11> units{{{"KiB", 0x1p10},
                                               {"MiB", 0x1p20},
                                               {"GiB", 0x1p30},
                                               {"TiB", 0x1p40},
                                               {"kB", 1e3},
                                               {"KB", 1e3},
                                               {"MB", 1e6},
                                               {"GB", 1e9},
                                               {"TB", 1e12},
                                               {"B", 1},
                                               {"", 1}}};
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return text.ends_with(u.name); });
  std::string_view digits = text.substr(0, text.size() - unit->name.size());
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  const bool is_number = !digits.empty() && digits.find_first_not_of("0123456789.") == std::string_view::npos &&
                         digits.front() != '.' && std::count(digits.begin(), digits.end(), '.') <= 1;
  const double value = is_number ? parse_real(option, digits) : -1;
  if (!(value > 0 && value * unit->bytes < 0x1p62))
    misuse(fmt::format("{} is '{}', which is no amount of memory", option, text), "give for instance 2GiB or 500MB");
  return static_cast<std::uint64_t>(value * unit->bytes);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> units{"bytes", "kB", "MB", "GB", "TB"};
  return in_largest_unit(bytes, 1000, units, 3);
}

std::string memory_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  return in_largest_unit(static_cast<double>(bytes), 1024, units, 4);  // four digits: 1023 KiB
}

CLI::Option* add_memory(CLI::App& app, std::optional<std::uint64_t>& value) {
  const std::string flag = "--memory";
  return app
      .add_option_function<std::string>(
          flag, [flag, &value](const std::string& text) { value = parse_bytes(flag, text); },
          "read features anew for each step, within this memory (under mpirun: of each rank)")
      ->type_name("SIZE");
}

bool asks_for_stream(const std::vector<std::string>& names, const std::optional<std::uint64_t>& memory) {
  return memory || names.size() > 1 || io::names_row_files(names.front());
}

bool is_streamed(const std::vector<std::string>& names, const std::optional<std::uint64_t>& memory, Kind as) {
  if (asks_for_stream(names, memory)) return true;
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(names.front(), ignored);
  if (ignored || machine_memory() == 0 || bytes <= machine_memory()) return false;
  if (as == Kind::covariance || as == Kind::factor) return false;
  try {
    const io::RowFiles files(names);
    return as == Kind::features || files.rows() != files.cols();
  } catch (const std::runtime_error&) {
    return false;  // an .npz, or Fortran order: as before
  }
}

void refuse_streamed(const std::string& what, const std::string& remedy) {
  misuse(fmt::format("{}, and the target is streamed", what), remedy);
}

void check_streamed(const TargetArguments& target, const io::RowFiles& files) {
  const Request& request = target.request;
  if (request.as == Kind::covariance || request.as == Kind::factor)
    refuse_streamed(fmt::format("--target-as is {}", name(request.as)),
                    "only features are: leave out --memory, and give one file");
  if (request.as == Kind::automatic && files.all_square()) {
    if (files.paths().size() > 1)
      refuse_streamed(
          fmt::format("all of the {} files are square, each of which may be a covariance", files.paths().size()),
          "say --target-as features, or give one covariance; `itspace barycenter` takes several");
    refuse_streamed(fmt::format("{} is square, which may be a covariance", quoted(request.path)),
                    "say --target-as features; a covariance is read without --memory");
  }
  if (!request.key.empty())
    refuse_streamed("--target-key is given", "arrays of an .npz are not: save it as .npy, or leave out --memory");
  if (!target.weights.empty())
    refuse_streamed("--weights are given", "leave them out, or give features that fit memory");
}

std::string description(const io::RowFiles& files) {
  return fmt::format("features, {} samples of dimension {}", files.rows(), files.cols());
}

std::string files_and_size(const io::RowFiles& files) {
  const std::size_t count = files.paths().size();
  return fmt::format("{}, streamed: {} of {}{}",
                     count == 1 ? quoted(files.paths().front()) : fmt::format("{} files", count),
                     bytes_text(static_cast<double>(files.bytes())), files.type(), flat_files_text(files));
}

std::string flat_files_text(const io::RowFiles& files) {
  const std::vector<std::string> flat = files.flat_files();
  if (flat.empty()) return "";
  return fmt::format("; {}{}: {}", quoted(std::filesystem::path(flat.front())),
                     flat.size() == 1 ? "" : fmt::format(" and {} more", flat.size() - 1), as_one_column);
}

std::string run_description(const io::RowFiles& files, const std::optional<std::uint64_t>& memory) {
  return fmt::format("{} of {}, memory {}", description(files), files.type(), memory.value_or(0));
}

Json stream_json(const TargetArguments& target, const io::RowFiles& files) {
  return {{"path", target.request.path.string()},
          {"files", files.paths().size()},
          {"taken_for", "features"},
          {"why", "streamed"},
          {"bytes", files.bytes()}};
}

std::uint64_t memory_for_chunks(const std::optional<std::uint64_t>& limit, const io::RowFiles& files,
                                const RunSize& run, std::uint64_t least_for_chunks) {
  const std::uint64_t whole = limit.value_or(machine_memory() / 2);
  const std::uint64_t blocks = bytes_of_blocks(files.cols(), run);
  const std::uint64_t program = bytes_of_program + (run.spread ? bytes_of_mpi : 0);
  const std::uint64_t needed = program + blocks + files.reader_bytes() + least_for_chunks;
  if (whole < needed) {
    const std::uint64_t reader = files.reader_bytes();
    misuse(
        fmt::format("--memory is {}, and this run needs {}: {} for the program, {} for blocks of {} rows at rank {}, "
                    "{}{} for the two smallest chunks of rows",
                    memory_text(whole), memory_text(needed), memory_text(program), memory_text(blocks), files.cols(),
                    run.rank, reader > 0 ? fmt::format("{} {}, ", memory_text(reader), files.reader_holds()) : "",
                    memory_text(least_for_chunks)),
        fmt::format("give --memory {}MiB or more{}{}", (needed + mib - 1) / mib,
                    blocks > needed / 2 ? ", or a smaller --rank" : "",
                    reader > needed / 2 && !files.reader_remedy().empty() ? ", or " + files.reader_remedy() : ""));
  }
  return whole - (needed - least_for_chunks);
}

SweepProgress::SweepProgress(Progress& line, std::uint64_t bytes_of_a_sweep, Index sweeps)
    : line_(line), expected_(static_cast<double>(bytes_of_a_sweep) * static_cast<double>(sweeps)) {}

void SweepProgress::add(std::uint64_t bytes) {
  constexpr double patience_in_seconds = 2, pause_in_seconds = 0.2;
  read_ += static_cast<double>(bytes);
  const auto now = Clock::now();
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  if (elapsed < patience_in_seconds || std::chrono::duration<double>(now - shown_).count() < pause_in_seconds) return;
  shown_ = now;
  const double rate = read_ / elapsed, left = std::max(0.0, expected_ - read_) / rate;
  line_.show(fmt::format("read {} of {}, {}/s, about {:.0f} s to go", bytes_text(read_),
                         bytes_text(std::max(expected_, read_)), bytes_text(rate), left));
}

std::string SweepProgress::summary(Index sweeps) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - began_).count();
  return fmt::format("read {} in {} {}, {}/s", bytes_text(read_), sweeps, sweeps == 1 ? "sweep" : "sweeps",
                     bytes_text(read_ / std::max(elapsed, 1e-9)));
}

}  // namespace itspace::cli
