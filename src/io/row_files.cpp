// SPDX-License-Identifier: Apache-2.0
//
// Names into files, files into one source of rows.
#include <itspace/row_files.hpp>

#include <fcntl.h>
#include <glob.h>

#include <algorithm>
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

std::vector<std::string> files_matching(const std::string& pattern) {
  struct Found {
    glob_t value = {};
    ~Found() { ::globfree(&value); }
  } found;
  const int outcome = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found.value);
  if (outcome == GLOB_NOMATCH || (outcome == 0 && found.value.gl_pathc == 0)) {
    fail("no file matches {}; check the pattern and the folder", in_quotes(pattern));
  }
  if (outcome != 0) {
    fail("the files that match {} cannot be listed; check the permissions of their folder", in_quotes(pattern));
  }
  return {found.value.gl_pathv, found.value.gl_pathv + found.value.gl_pathc};
}

std::vector<RowFile> examine(const std::vector<std::string>& names) {
  std::vector<RowFile> files;
  for (const std::string& given : names) {
    const Name name = parse(given);
    for (const std::string& file : is_pattern(name.file) ? files_matching(name.file) : std::vector{name.file}) {
      files.push_back(name.dataset.empty() ? examine_npy(file) : examine_dataset(file, name.dataset));
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
}

template <Storage Data>
class FilesSource : public RowSource<Data> {
 public:
  FilesSource(std::shared_ptr<const std::vector<RowFile>> files, Index first, Index count, Index cols)
      : files_(std::move(files)), first_(first), count_(count), cols_(cols) {
    rewind();
  }

  Index cols() const override { return cols_; }
  std::optional<Index> rows() const override { return count_; }

  void restart() override { rewind(); }

  // Rows of one file; the next call goes on with the next.
  Index read(BlockView<Data> out) override {
    for (; left_ > 0 && number_ < files_->size(); ++number_, next_ = 0) {
      const RowFile& info = (*files_)[number_];
      const Index count = std::min({out.rows(), info.rows - next_, left_});
      if (count > 0) {
        open(info);
        open_->read(next_, out.topRows(count));
      }
      next_ += count;
      left_ -= count;
      // With the last row, and not at the next call: what was read is the caller's only if the file is as it was.
      if ((next_ == info.rows || left_ == 0) && file_) {
        require_unchanged(info.path, info.state, file_->state());
        close();
      }
      if (count > 0) {
        return count;
      }
    }
    return 0;
  }

  std::string place_of(Index row) const override {
    row += first_;
    for (const RowFile& file : *files_) {
      if (row < file.rows) {
        return fmt::format("{}: row {}", file.name(), row);
      }
      row -= file.rows;
    }
    return fmt::format("row {} behind the last file", row);
  }

 private:
  void rewind() {
    close();
    number_ = 0;
    next_ = first_;
    left_ = count_;
    for (; number_ < files_->size() && next_ >= (*files_)[number_].rows; ++number_) {
      next_ -= (*files_)[number_].rows;
    }
  }

  void open(const RowFile& info) {
    if (open_) {
      return;
    }
    file_.emplace(info.path);
    require_unchanged(info.path, info.state, file_->state());
    ::posix_fadvise(file_->descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
    open_ = info.dataset.empty() ? open_npy_rows<Data>(info, *file_) : open_dataset_rows<Data>(info);
  }

  void close() {
    open_.reset();
    file_.reset();
  }

  std::shared_ptr<const std::vector<RowFile>> files_;
  Index first_, count_, cols_;
  std::size_t number_ = 0;  // of the file that is read
  Index next_ = 0;          // its next row
  Index left_ = 0;          // rows that are still to be read
  std::optional<RegularFile> file_;
  std::unique_ptr<OpenRowFile<Data>> open_;
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
    reader_bytes_ = std::max(reader_bytes_, file.reader_bytes);
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
  return !parsed.dataset.empty() || is_pattern(parsed.file);
}

}  // namespace itspace::io
