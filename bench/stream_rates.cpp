// SPDX-License-Identifier: Apache-2.0
//
// A sweep over a file of features, from 1 to N threads, beside merely reading the file: by one thread, and by as many.
// From the page cache (warm) and after the system was asked to drop the file from it (cold).
//
//   itspace_stream_rates FILE [GB] [MOST_THREADS]     FILE is made, 3 GB of it unless told otherwise, and removed
#include <itspace/io.hpp>
#include <itspace/itspace.hpp>
#include <itspace/row_files.hpp>
#include <itspace/row_stream.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace itspace;
using Clock = std::chrono::steady_clock;

constexpr Index dim = 1024, rank = 16, chunk = Index(8) << 20;

// Samples with variances 1/j around a mean of ten; a piece of them again and again.
void write_features(const std::string& path, Index rows) {
  constexpr Index at_once = 4096;
  Block<float> piece(at_once, dim);
  Random(1).fill_normal<float>(piece);
  for (Index j = 0; j < dim; ++j)
    for (Index i = 0; i < at_once; ++i) piece(i, j) = piece(i, j) / std::sqrt(static_cast<float>(j + 1)) + 10;
  io::RowWriter<float> writer(path, rows, dim);
  for (Index first = 0; first < rows; first += at_once) writer.write(piece.topRows(std::min(at_once, rows - first)));
  writer.commit();
}

void drop_from_cache(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY);
  fsync(file);
  posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  close(file);
}

void read_by(const std::string& path, Index threads) {
  const auto size = static_cast<Index>(std::filesystem::file_size(path));
  std::vector<std::thread> readers;
  for (Index t = 0; t < threads; ++t)
    readers.emplace_back([&path, begin = size * t / threads, end = size * (t + 1) / threads] {
      const int file = open(path.c_str(), O_RDONLY);
      std::vector<char> buffer(static_cast<std::size_t>(chunk), 1);
      for (Index at = begin; at < end;) {
        const ssize_t got = pread(file, buffer.data(), static_cast<std::size_t>(std::min(chunk, end - at)), at);
        if (got <= 0) break;
        at += got;
      }
      close(file);
    });
  for (auto& reader : readers) reader.join();
}

// Medians of what is done in turns, in GB/s.
std::vector<double> rates(const std::string& path, bool cold, const std::vector<std::function<void()>>& works) {
  const double gigabytes = static_cast<double>(std::filesystem::file_size(path)) / 1e9;
  std::vector<std::vector<double>> all(works.size());
  for (int turn = 0; turn < (cold ? 3 : 5); ++turn)
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (cold) drop_from_cache(path);
      const auto begin = Clock::now();
      works[i]();
      all[i].push_back(gigabytes / std::chrono::duration<double>(Clock::now() - begin).count());
    }
  std::vector<double> medians;
  for (auto& one : all) {
    std::sort(one.begin(), one.end());
    medians.push_back(one[one.size() / 2]);
  }
  return medians;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || std::filesystem::exists(arguments[1])) {
    std::fprintf(stderr, "usage: itspace_stream_rates FILE [GB] [MOST_THREADS], a FILE that does not exist yet\n");
    return 2;
  }
  const std::string path = arguments[1];
  const double gigabytes = count > 2 ? std::atof(arguments[2]) : 3;
  const Index most = count > 3 ? std::atol(arguments[3]) : threads();
  write_features(path, static_cast<Index>(gigabytes * 1e9 / (dim * sizeof(float))));
  const io::RowFiles files({path});
  const StreamedFeatures<float> target(files.source<float>());
  Block<float> y(dim, rank), product(dim, rank);
  Random(2).fill_normal<float>(y);
  std::printf(
      "%.2f GB of float32, %ld x %ld, rank %ld\n\n| page cache | threads | read() by one, GB/s | by as many | product "
      "| of "
      "read() by one | of as many |\n|---|---|---|---|---|---|---|\n",
      static_cast<double>(files.bytes()) / 1e9, static_cast<long>(files.rows()), static_cast<long>(dim),
      static_cast<long>(rank));
  for (const bool cold : {false, true})
    for (Index t = 1; t <= most; t *= 2) {
      set_threads(t);
      const std::vector<double> found =
          rates(path, cold, {[&] { read_by(path, 1); }, [&] { read_by(path, t); }, [&] { target.apply(y, product); }});
      std::printf("| %s | %ld | %.2f | %.2f | %.2f | %.2f | %.2f |\n", cold ? "cold" : "warm", static_cast<long>(t),
                  found[0], found[1], found[2], found[2] / found[0], found[2] / found[1]);
      std::fflush(stdout);
    }
  std::filesystem::remove(path);
  return 0;
}
