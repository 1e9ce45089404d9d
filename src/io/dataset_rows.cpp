// SPDX-License-Identifier: Apache-2.0
//
// Rows of a dataset in an HDF5 file, by libhdf5's C interface. The library is not made for several threads at once, so
// all calls are made under one lock.
#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "error.hpp"
#include "row_file.hpp"

namespace itspace::io {
namespace {

std::mutex& hdf5_lock() {
  static std::mutex lock;
  return lock;
}

class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) {
      close_(id_);
    }
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;

  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// libhdf5 prints its errors unless it is told not to; the messages here say what matters.
template <class Call>
auto quietly(Call call) {
  H5E_auto2_t print = nullptr;
  void* data = nullptr;
  H5Eget_auto2(H5E_DEFAULT, &print, &data);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  auto result = call();
  H5Eset_auto2(H5E_DEFAULT, print, data);
  return result;
}

Handle open_file(const std::filesystem::path& path) {
  Handle file(quietly([&] { return H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT); }), H5Fclose);
  if (!file.valid()) {
    fail("{}: is no HDF5 file that can be read; name an .npy file, or an HDF5 file as file.h5:/path", in_quotes(path));
  }
  return file;
}

// The names in the root group: what a wrong path is answered with.
std::string names_in(hid_t file) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->push_back(in_quotes(fmt::format("/{}", name)));
    return 0;
  };
  quietly([&] { return H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names); });
  constexpr std::size_t most = 20;
  const bool more = names.size() > most;
  names.resize(std::min(names.size(), most));
  return names.empty() ? "nothing" : fmt::format("{}{}", fmt::join(names, ", "), more ? ", ..." : "");
}

Handle open_dataset(hid_t file, const RowFile& info) {
  Handle dataset(quietly([&] {
                   const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
                   if (info.reader_bytes > 0) {
                     constexpr std::size_t slots = 10007;  // a prime, as libhdf5 asks for
                     H5Pset_chunk_cache(access.get(), slots, static_cast<std::size_t>(info.reader_bytes), 1.0);
                   }
                   return H5Dopen2(file, info.dataset.c_str(), access.get());
                 }),
                 H5Dclose);
  if (!dataset.valid()) {
    fail("{}: has no dataset {}; the file holds {}", in_quotes(info.path), in_quotes(info.dataset), names_in(file));
  }
  return dataset;
}

ElementType type_of(hid_t dataset, const RowFile& info) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.get());
  const char letter = kind == H5T_FLOAT                                                ? 'f'
                      : kind == H5T_INTEGER && H5Tget_sign(type.get()) == H5T_SGN_NONE ? 'u'
                      : kind == H5T_INTEGER                                            ? 'i'
                                                                                       : '?';
  const auto found = element_type_of(letter, H5Tget_size(type.get()));
  if (!found) {
    fail("{}: does not hold numbers of 1 to 8 bytes; save it as float32 or float64", info.name());
  }
  return *found;
}

// The unpacked chunks that one run of rows crosses: with these in the cache none is unpacked twice.
std::uint64_t bytes_of_chunk_band(hid_t dataset, const RowFile& info) {
  constexpr std::uint64_t most = std::uint64_t(64) << 20;
  const Handle made_by(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(made_by.get()) != H5D_CHUNKED) {
    return 0;
  }
  hsize_t chunk[2] = {1, 1};
  H5Pget_chunk(made_by.get(), 2, chunk);
  const std::uint64_t across = (static_cast<std::uint64_t>(info.cols) + chunk[1] - 1) / chunk[1] * chunk[1];
  return std::min<std::uint64_t>(most, 2 * chunk[0] * across * size_in_bytes(info.type));
}

template <Storage Data>
class DatasetRows : public OpenRowFile<Data> {
 public:
  explicit DatasetRows(const RowFile& info) : info_(info) {
    const std::lock_guard hold(hdf5_lock());
    file_.emplace(open_file(info.path));
    dataset_.emplace(open_dataset(file_->get(), info));
  }
  ~DatasetRows() override {
    const std::lock_guard hold(hdf5_lock());
    dataset_.reset();
    file_.reset();
  }

  void read(Index first, BlockView<Data> out) override {
    const std::lock_guard hold(hdf5_lock());
    const hsize_t from[] = {static_cast<hsize_t>(first), 0};
    const hsize_t count[] = {static_cast<hsize_t>(out.rows()), static_cast<hsize_t>(out.cols())};
    const Handle in_file(H5Dget_space(dataset_->get()), H5Sclose);
    const Handle in_memory(H5Screate_simple(info_.flat ? 1 : 2, count, nullptr), H5Sclose);
    const hid_t type = std::same_as<Data, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    const herr_t outcome = quietly([&] {
      return H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, from, nullptr, count, nullptr) < 0
                 ? herr_t(-1)
                 : H5Dread(dataset_->get(), type, in_memory.get(), in_file.get(), H5P_DEFAULT, out.data());
    });
    if (outcome < 0) {
      fail(
          "{}: rows {} to {} cannot be read; the file is damaged, has become shorter, or needs a filter (compression) "
          "that this libhdf5 does not have",
          info_.name(), first, first + out.rows() - 1);
    }
  }

 private:
  const RowFile& info_;
  std::optional<Handle> file_, dataset_;
};

}  // namespace

RowFile examine_dataset(const std::filesystem::path& path, const std::string& dataset) {
  RowFile info;
  info.path = path;
  info.kind = RowFileKind::dataset;
  info.dataset = dataset;
  info.state = RegularFile(path).state();
  const std::lock_guard hold(hdf5_lock());
  const Handle file = open_file(path);
  const Handle opened = open_dataset(file.get(), info);
  const Handle space(H5Dget_space(opened.get()), H5Sclose);
  hsize_t shape[2] = {1, 1};
  const int dimensions = H5Sget_simple_extent_ndims(space.get());
  if (dimensions != 1 && dimensions != 2) {
    fail("{}: has {} dimensions; rows are streamed from a dataset of two", info.name(), dimensions);
  }
  H5Sget_simple_extent_dims(space.get(), shape, nullptr);
  info.rows = static_cast<Index>(shape[0]);
  info.cols = static_cast<Index>(shape[1]);
  info.flat = dimensions == 1;
  info.type = type_of(opened.get(), info);
  if (!info.flat) {
    info.reader_bytes = bytes_of_chunk_band(opened.get(), info);
    info.reader_holds = fmt::format("for chunks of {}", info.name());
  }
  return info;
}

template <Storage Data>
std::unique_ptr<OpenRowFile<Data>> open_dataset_rows(const RowFile& info) {
  return std::make_unique<DatasetRows<Data>>(info);
}
template std::unique_ptr<OpenRowFile<float>> open_dataset_rows(const RowFile&);
template std::unique_ptr<OpenRowFile<double>> open_dataset_rows(const RowFile&);

}  // namespace itspace::io
