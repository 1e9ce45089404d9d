// SPDX-License-Identifier: Apache-2.0
//
// Files: NumPy arrays in, factors and traces out.
//
// An Array is opened, checked against the size of its file before anything is allocated, and memory-mapped;
// as<Scalar>() borrows the mapped values where the file already holds them that way and converts a copy where it does
// not. Values in an .npz are held against the checksum (CRC-32) that the file keeps of them when they are opened, which
// reads them once; an .npy keeps none. Output goes to a temporary file beside the target and is renamed: a killed run
// leaves the old file or the new one, never half.
//
// Every failure throws std::runtime_error that names the file, what is wrong with it and what to do.
#pragma once

#include <itspace/block.hpp>
#include <itspace/export.hpp>
#include <itspace/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace itspace::io {

class AtomicFile;     // inside
struct StoredMember;  // inside

struct ArrayInfo {
  std::filesystem::path path;
  std::string key;                    // the array's name inside an .npz, empty for an .npy
  std::string type = "float64";       // "float16", "float32", "float64", "int8" ... "uint64", "bool"
  std::vector<Index> shape = {0, 0};  // as in the file: 0, 1 or 2 dimensions (others are refused)
  bool fortran_order = false;
  bool big_endian = false;
  std::uint64_t bytes = 0;  // of the values
};

// Cheap to copy: copies share the mapping. A default-constructed Array is 0 x 0.
class ITSPACE_API Array {
 public:
  const ArrayInfo& info() const { return info_; }
  // A scalar is 1 x 1, a vector of n is n x 1.
  Index rows() const;
  Index cols() const;

  // The values as a row-major block. Those of the mapped file (which it keeps open) where the file holds native-endian
  // Scalar in C order, suitably aligned; otherwise converted. Integers beyond 2^24 (float) or 2^53
  // (double) are rounded to the nearest; a finite float64 beyond float32 is refused, with its place.
  template <Storage Scalar>
  HeldBlock<Scalar> as() const;
  template <Storage Scalar>
  bool is_borrowed() const;

  // The rows first, first + 1, ... into out, converted in the same way; nothing else is read.
  // @pre they are rows of this array, and out has its columns.
  template <Storage Scalar>
  void read_rows(Index first, BlockView<Scalar> out) const;

  // The unit roundoff of the values' own type (float16 2^-10, float32, float64; 0 for integers): what a check of them
  // may demand.
  double epsilon() const;

 private:
  friend Array open_array(const std::filesystem::path& path, std::string_view key,
                          std::optional<StoredMember>& unchecked);
  ArrayInfo info_;
  std::shared_ptr<const void> keep_alive_;  // the mapping, or inflated bytes
  const std::byte* values_ = nullptr;
};

// Opens an .npy file, or one array of an .npz. The kind is told from the content, not the name. `key` names the array
// of an .npz; without it "sigma" is taken if it is there, else the only array; anything else is an error that lists the
// keys.
ITSPACE_API Array open_array(const std::filesystem::path& path, std::string_view key = {});

// The names in an .npz, in file order (without ".npy"); empty for an .npy.
ITSPACE_API std::vector<std::string> array_keys(const std::filesystem::path& path);

// Files that belong together: each is written whole beside its destination before the first is renamed, so that a run
// which ends in between leaves all the old ones.
//
//     io::Outputs outputs;
//     io::save_npy<double>(outputs, "Y.npy", factor);
//     io::save_text(outputs, "run.json", text);
//     outputs.finish();          // may take long: everything goes to the disk
//     outputs.commit_files();    // only renames
//     outputs.commit_streams();  // pipes and devices, last: a reader that has gone costs no file
class ITSPACE_API Outputs {
 public:
  Outputs();
  ~Outputs();
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  void finish();
  void commit_files();  // finish() where it was not called, then one rename after the other
  void commit_streams();

  AtomicFile& add(const std::filesystem::path& path);  // for the writers of this library

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

template <Storage Scalar>
ITSPACE_API void save_npy(const std::filesystem::path& path, const ConstBlockView<Scalar>& block);
template <Storage Scalar>
ITSPACE_API void save_npy(Outputs& outputs, const std::filesystem::path& path, const ConstBlockView<Scalar>& block);

// One named array of an .npz to write: values are copied into the file, uncompressed.
struct NamedBlock {
  std::string key;
  Block<double> values;
  bool vector = false;  // write shape (rows,) instead of (rows, cols); @pre one column
};
ITSPACE_API void save_npz(const std::filesystem::path& path, std::span<const NamedBlock> arrays);

// Writes the whole text or leaves what was there.
ITSPACE_API void save_text(const std::filesystem::path& path, std::string_view text);
ITSPACE_API void save_text(Outputs& outputs, const std::filesystem::path& path, std::string_view text);

// Throws unless a file can be created at `path` (folder exists and is writable, path is not a folder): asked before
// long work, so that it is not lost at the end.
ITSPACE_API void check_writable(const std::filesystem::path& path);

// Which file a path leads to, whatever it is called: through symbolic links (even to a file that is not there yet),
// hard links and different spellings. nullopt: a device or a pipe, where nothing is overwritten.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;  // of the file; of its folder where it does not exist yet,
  std::string name;                     // and then its name in there
  bool open_descriptor = false;         // /dev/stdout, /dev/fd/N: written where it stands, never replaced
};
ITSPACE_API std::optional<FileIdentity> identity_of(const std::filesystem::path& path);
// Two writes to one open descriptor follow each other and destroy nothing: those are not the same file.
ITSPACE_API bool same_file(const std::optional<FileIdentity>& a, const std::optional<FileIdentity>& b);

// What ties a trace to its factor: "fnv1a64:" and the FNV-1a hash (64 bits, hexadecimal) of the text
// "float64 ROWSxCOLS\n" (or float32) followed by the values, row by row, as little-endian bytes. The order and the
// endianness of a file do not matter; its type does.
template <Storage Scalar>
ITSPACE_API std::string checksum_of(const ConstBlockView<Scalar>& block);
ITSPACE_API std::string checksum_of(const Array& array);

// The trace as JSON, schema "itspace.trace/1", and back.
ITSPACE_API std::string to_json(const Trace& trace);
ITSPACE_API Trace trace_from_json(std::string_view text);
ITSPACE_API Trace load_trace(const std::filesystem::path& path);

}  // namespace itspace::io
