// SPDX-License-Identifier: Apache-2.0
//
// Names into files, files into one source of rows.
#include <itspace/row_files.hpp>

#include <fcntl.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include "core/require.hpp"
#include "error.hpp"
#include "row_file.hpp"

namespace itspace::io {
namespace {

bool is_there(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(name, ignored);
}

struct Name {
  std::string file, dataset;
};

// "file.h5:/path" is a dataset, unless there is a file of just that name.
Name parse(const std::string& name) {
  const std::size_t colon = name.find(":/");
  if (colon == std::string::npos || colon == 0 || is_there(name)) {
    return {name, ""};
  }
  return {name.substr(0, colon), name.substr(colon + 1)};
}

bool is_pattern(const std::string& file) {
  return file.find_first_of("*?[") != std::string::npos && !is_there(file);
}

// Also how listing them ended: as ::glob says.
std::vector<std::string> files_matching(const std::string& pattern, int& outcome) {
  struct Found {
    glob_t value = {};
    ~Found() { ::globfree(&value); }
  } found;
  outcome = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found.value);
  if (outcome != 0) return {};
  return {found.value.gl_pathv, found.value.gl_pathv + found.value.gl_pathc};
}

std::vector<std::string> files_matching(const std::string& pattern) {
  int outcome = 0;
  std::vector<std::string> files = files_matching(pattern, outcome);
  if (outcome == GLOB_NOMATCH || (outcome == 0 && files.empty())) {
    fail("no file matches {}; check the pattern and the folder", in_quotes(pattern));
  }
  if (outcome != 0) {
    fail("the files that match {} cannot be listed; check the permissions of their folder", in_quotes(pattern));
  }
  return files;
}

// The endings that the Python package knows, in any case.
RowFileKind kind_of(const std::string& file) {
  constexpr std::array<std::string_view, 2> of_parquet{".parquet", ".pq"};
  constexpr std::array<std::string_view, 3> of_arrow{".arrow", ".feather", ".ipc"};
  std::string ending = std::filesystem::path(file).extension().native();
  for (char& letter : ending) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  if (std::ranges::find(of_parquet, ending) != of_parquet.end()) return RowFileKind::parquet;
  return std::ranges::find(of_arrow, ending) != of_arrow.end() ? RowFileKind::arrow_ipc : RowFileKind::npy;
}

RowFile examine(const std::string& file, const std::string& dataset) {
  if (!dataset.empty()) return examine_dataset(file, dataset);
  const RowFileKind kind = kind_of(file);
  return kind == RowFileKind::npy ? examine_npy(file) : examine_arrow(file, kind);
}

// Thousands of files have the same thousands of columns: one list of their names suffices.
void share_columns(const RowFile& first, RowFile& other) {
  if (!first.arrow || !other.arrow || *first.arrow->columns != *other.arrow->columns) return;
  ArrowFacts facts = *other.arrow;
  facts.columns = first.arrow->columns;
  other.arrow = std::make_shared<const ArrowFacts>(std::move(facts));
}

std::vector<RowFile> examine(const std::vector<std::string>& names) {
  std::vector<RowFile> files;
  for (const std::string& given : names) {
    const Name name = parse(given);
    for (const std::string& file : is_pattern(name.file) ? files_matching(name.file) : std::vector{name.file}) {
      files.push_back(examine(file, name.dataset));
      share_columns(files.front(), files.back());
    }
  }
  return files;
}

void require_alike(const RowFile& first, const RowFile& other) {
  if (other.cols != first.cols) {
    fail("{} has rows of {} values, and {} rows of {}; files that are streamed together have the same columns",
         other.name(), other.cols, first.name(), first.cols);
  }
  if (other.type != first.type) {
    fail("{} holds {}, and {} {}; files that are streamed together have the same type: convert one of them",
         other.name(), name(other.type), first.name(), name(first.type));
  }
  if (first.arrow && other.arrow) {
    const auto &columns = *first.arrow->columns, &others = *other.arrow->columns;
    for (std::size_t j = 0; j < std::min(columns.size(), others.size()); ++j) {
      if (columns[j].name != others[j].name) {
        fail("column {} of {} is {}, and of {} it is {}; files that are streamed together have the same columns", j,
             other.name(), in_quotes(others[j].name), first.name(), in_quotes(columns[j].name));
      }
    }
  }
}

template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_rows(const RowFile& info, const RegularFile& file) {
  switch (info.kind) {
    case RowFileKind::npy:
      return open_npy_rows<Data>(info, file);
    case RowFileKind::dataset:
      return open_dataset_rows<Data>(info);
    case RowFileKind::parquet:
    case RowFileKind::arrow_ipc:
      break;
  }
  return open_arrow_rows<Data>(info, file);
}

template <Storage Data>
class FilesSource : public RowSource<Data> {
 public:
  FilesSource(std::shared_ptr<const std::vector<RowFile>> files, Index first, Index count, Index cols)
      : files_(std::move(files)), count_(count), cols_(cols) {
    Index begin = -first;  // of a file, among the rows of this source
    for (const RowFile& file : *files_) {
      const Index from = std::max<Index>(0, begin), to = std::min(count, begin + file.rows);
      if (from < to) {
        parts_.push_back({&file, begin, from, to});
      }
      begin += file.rows;
    }
    restart();
  }

  Index cols() const override { return cols_; }
  std::optional<Index> rows() const override { return count_; }

  void restart() override {
    next_ = 0;
    for (Part& part : parts_) {
      part.open.reset();
      part.unread = part.end - part.first;
    }
  }

  // Rows of one file; the next call goes on with the next.
  Index read(BlockView<Data> out) override {
    if (next_ == count_) {
      return 0;
    }
    const Index count = std::min(out.rows(), part_of(parts_, next_)->end - next_);
    read_at(next_, out.topRows(count));
    next_ += count;
    return count;
  }

  // HDF5 is for one thread at a time, and so is what is unpacked of a Parquet or Arrow file.
  bool reads_anywhere() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const Part& part) { return part.file->kind == RowFileKind::npy; });
  }

  void read_at(Index first, BlockView<Data> out) override {
    for (Index done = 0; done < out.rows();) {
      Part& part = *part_of(parts_, first + done);
      const Index count = std::min(out.rows() - done, part.end - (first + done));
      const std::shared_ptr<Open> open = opened(part);
      open->rows->read(first + done - part.begin, out.middleRows(done, count));
      finished(part, open, count);
      done += count;
    }
  }

  // Only where the last rows had to be waited for: the system need not be told of what it has at hand.
  void expect(Index first, Index count) override {
    if (!waited_.exchange(false)) {
      return;
    }
    const Index end = first + count;
    for (auto part = part_of(parts_, first); part != parts_.end() && part->first < end; ++part) {
      const RowFile& file = *part->file;
      const auto row_bytes = static_cast<std::uint64_t>(file.cols) * size_in_bytes(file.type);
      const Index from = std::max(first, part->first), to = std::min(end, part->end);
      opened(*part)->file.expect(file.offset + static_cast<std::uint64_t>(from - part->begin) * row_bytes,
                                 static_cast<std::uint64_t>(to - from) * row_bytes);
    }
  }

  std::string place_of(Index row) const override {
    const auto part = part_of(parts_, row);
    if (part == parts_.end()) {
      return fmt::format("row {} behind the last file", row);
    }
    return fmt::format("{}: row {}", part->file->name(), row - part->begin);
  }

 private:
  struct Open {
    explicit Open(const std::filesystem::path& path)
        : file(path, "was there when the run began and is gone; put it back and begin again") {}
    RegularFile file;
    std::unique_ptr<OpenRowFile<Data>> rows;
  };

  // What is read of a file: rows [first, end) of this source; the file's own first row would be row `begin`.
  struct Part {
    const RowFile* file;
    Index begin, first, end;
    Index unread = 0;
    std::shared_ptr<Open> open = nullptr;
  };

  template <class Parts>
  static auto part_of(Parts& parts, Index row) {
    return std::partition_point(parts.begin(), parts.end(), [&](const Part& part) { return part.end <= row; });
  }

  std::shared_ptr<Open> opened(Part& part) {
    const std::lock_guard lock(opening_);
    if (!part.open) {
      const RowFile& file = *part.file;
      auto open = std::make_shared<Open>(file.path);
      require_unchanged(file.path, file.state, open->file.state());
      ::posix_fadvise(open->file.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
      open->rows = open_rows<Data>(file, open->file);
      part.open = std::move(open);
    }
    return part.open;
  }

  // With the last row, and not at the next call: what was read is the caller's only if the file is as it was.
  void finished(Part& part, const std::shared_ptr<Open>& open, Index count) {
    if (open->file.had_to_wait()) {
      waited_ = true;
    }
    const std::lock_guard lock(opening_);
    part.unread -= count;
    if (part.unread == 0) {
      require_unchanged(part.file->path, part.file->state, open->file.state());
      part.open.reset();
    }
  }

  std::shared_ptr<const std::vector<RowFile>> files_;
  Index count_, cols_;
  Index next_ = 0;  // the row that read() goes on with
  std::mutex opening_;
  std::vector<Part> parts_;
  std::atomic<bool> waited_ = false;
};

}  // namespace

std::string RowFile::name() const {
  return dataset.empty() ? in_quotes(path) : in_quotes(path.native() + ":" + dataset);
}

RowFiles::RowFiles(const std::vector<std::string>& names) {
  const auto files = std::make_shared<const std::vector<RowFile>>(examine(names));
  if (files->empty()) {
    fail("there is no file to read rows from; name at least one");
  }
  const RowFile& first = files->front();
  for (const RowFile& file : *files) {
    require_alike(first, file);
    rows_ += file.rows;
    bytes_ += file.bytes();
    if (file.reader_bytes > reader_bytes_) {
      reader_bytes_ = file.reader_bytes;
      reader_holds_ = file.reader_holds;
      reader_remedy_ = file.reader_remedy;
    }
  }
  cols_ = first.cols;
  type_ = name(first.type);
  files_ = files;
}

std::vector<std::filesystem::path> RowFiles::paths() const {
  std::vector<std::filesystem::path> out;
  for (const RowFile& file : *files_) {
    out.push_back(file.path);
  }
  return out;
}

std::vector<std::string> RowFiles::flat_files() const {
  std::vector<std::string> out;
  for (const RowFile& file : *files_) {
    if (file.flat) {
      out.push_back(file.dataset.empty() ? file.path.string() : file.path.string() + ":" + file.dataset);
    }
  }
  return out;
}

bool RowFiles::all_square() const {
  return std::all_of(files_->begin(), files_->end(), [](const RowFile& file) { return file.rows == file.cols; });
}

template <Storage Data>
std::shared_ptr<RowSource<Data>> RowFiles::source(Index first, Index count) const {
  require(first >= 0 && count >= 0 && first <= rows_ && count <= rows_ - first, "rows ", first, " to ",
          first + count - 1, " were asked for, and the files have ", rows_, "; ask for rows that are there");
  return std::make_shared<FilesSource<Data>>(files_, first, count, cols_);
}
template std::shared_ptr<RowSource<float>> RowFiles::source(Index, Index) const;
template std::shared_ptr<RowSource<double>> RowFiles::source(Index, Index) const;

bool names_row_files(const std::string& name) {
  const Name parsed = parse(name);
  return !parsed.dataset.empty() || is_pattern(parsed.file) || kind_of(parsed.file) != RowFileKind::npy;
}

std::vector<std::filesystem::path> files_named(const std::string& name) {
  const std::string file = parse(name).file;
  if (!is_pattern(file)) return {file};
  int outcome = 0;
  const std::vector<std::string> matching = files_matching(file, outcome);
  return {matching.begin(), matching.end()};
}

}  // namespace itspace::io
