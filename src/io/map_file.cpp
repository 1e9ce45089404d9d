// SPDX-License-Identifier: Apache-2.0
//
// The parts of a map, each under its own key.
#include <algorithm>
#include <itspace/io.hpp>
#include <itspace/map_file.hpp>

#include "atomic_file.hpp"
#include "core/map_agreement.hpp"
#include "error.hpp"
#include "npy_writer.hpp"
#include "text_member.hpp"
#include "zip_writer.hpp"

namespace itspace::io {
namespace {

constexpr std::string_view family = "itspace.map/";
constexpr std::string_view first_format = "itspace.map/1";

// True for the first format, which knew neither scales nor counts.
bool is_first_format(const std::filesystem::path& path) {
  const auto keys = array_keys(path);
  if (keys.empty()) {
    fail("{}: is no transport map but a plain array; expected an .npz with format {}, as `itspace map` writes it",
         in_quotes(path), in_quotes(map_format));
  }
  if (std::ranges::find(keys, "format") == keys.end()) {
    fail(
        "{}: is no transport map: it has no key 'format' (its first key is {}); expected format {}, as `itspace map` "
        "writes it",
        in_quotes(path), in_quotes(keys.front()), in_quotes(map_format));
  }
  const std::string found = read_text(path, "format");
  if (found == map_format || found == first_format) {
    return found == first_format;
  }
  if (std::string_view(found).starts_with(family)) {
    fail(
        "{}: is a transport map of format {}, this version reads {} and {}; use an itspace that knows it, or make the "
        "map again with `itspace map`",
        in_quotes(path), in_quotes(found), in_quotes(first_format), in_quotes(map_format));
  }
  fail("{}: is no transport map, its format is {}; expected {}, as `itspace map` writes it", in_quotes(path),
       in_quotes(found), in_quotes(map_format));
}

Block<double> read(const std::filesystem::path& path, std::string_view key, std::size_t dimensions) {
  const Array array = open_array(path, key);
  if (array.info().shape.size() != dimensions) {
    fail("array {} of {}: has {} dimensions, a map's has {}; the file is damaged: make it again with `itspace map`",
         in_quotes(key), in_quotes(path), array.info().shape.size(), dimensions);
  }
  Block<double> values = array.as<double>().view();
  if (!values.allFinite()) {
    fail("array {} of {}: holds a value that is not finite; the file is damaged: make it again with `itspace map`",
         in_quotes(key), in_quotes(path));
  }
  return values;
}

void write_map(AtomicFile& file, const std::filesystem::path& path, const TransportMap& map) {
  const TransportMap::Parts& parts = map.parts();
  ZipWriter zip(file, in_quotes(path));
  const auto add = [&zip](std::string_view key, const auto& values, const std::vector<Index>& shape) {
    zip.add(std::string(key) + ".npy", npy_header<double>(shape), bytes_of(values.data(), values.size()));
  };
  const auto scalar = [&zip](std::string_view key, double value) {
    zip.add(std::string(key) + ".npy", npy_header<double>({}), bytes_of(&value, 1));
  };
  const auto vector = [&](std::string_view key, const Eigen::VectorXd& values) { add(key, values, {values.size()}); };
  const auto matrix = [&](std::string_view key, const Block<double>& values) {
    add(key, values, {values.rows(), values.cols()});
  };
  zip.add("format.npy", npy_text(map_format), "");
  zip.add("kind.npy", npy_text(name(parts.kind)), "");
  scalar("scalar", parts.scalar);
  matrix("basis", parts.basis);
  matrix("core", parts.core);
  vector("mean_from", parts.mean_from);
  vector("mean_to", parts.mean_to);
  matrix("from_root", parts.from_root);
  matrix("to_root", parts.to_root);
  scalar("from_remainder", parts.from_remainder);
  scalar("to_remainder", parts.to_remainder);
  if (parts.scale_from.size() > 0) {
    vector("scale_from", parts.scale_from);
    vector("scale_to", parts.scale_to);
  }
  scalar("samples_from", parts.samples_from);
  scalar("samples_to", parts.samples_to);
  scalar("kept_mean", parts.kept.mean);
  scalar("kept_covariance", parts.kept.covariance);
  if (parts.kept.deviations.size() > 0) {
    vector("kept_deviations", parts.kept.deviations);
  }
  zip.finish();
}

}  // namespace

void save_map(const std::filesystem::path& path, const TransportMap& map) {
  AtomicFile file(path);
  write_map(file, path, map);
  file.commit();
}

void save_map(Outputs& outputs, const std::filesystem::path& path, const TransportMap& map) {
  write_map(outputs.add(path), path, map);
}

TransportMap load_map(const std::filesystem::path& path) {
  const bool is_first = is_first_format(path);
  const std::string kind = read_text(path, "kind");
  const auto scalar = [&](std::string_view key) { return read(path, key, 0)(0, 0); };
  const auto vector = [&](std::string_view key) { return Eigen::VectorXd(read(path, key, 1).reshaped()); };
  const auto matrix = [&](std::string_view key) { return read(path, key, 2); };
  TransportMap::Parts parts;
  const auto known = map_kind_named(kind);
  if (!known) {
    fail("{}: holds a map of kind {}; {} are understood: make it again with `itspace map`", in_quotes(path),
         in_quotes(kind), map_kind_names());
  }
  parts.kind = *known;
  parts.scalar = scalar("scalar");
  parts.basis = matrix("basis");
  parts.core = matrix("core");
  parts.mean_from = vector("mean_from");
  parts.mean_to = vector("mean_to");
  parts.from_root = matrix("from_root");
  parts.to_root = matrix("to_root");
  parts.from_remainder = scalar("from_remainder");
  parts.to_remainder = scalar("to_remainder");
  if (!is_first) {
    const auto keys = array_keys(path);
    const auto has = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
    if (has("scale_from") || has("scale_to")) {
      parts.scale_from = vector("scale_from");
      parts.scale_to = vector("scale_to");
    }
    parts.samples_from = scalar("samples_from");
    parts.samples_to = scalar("samples_to");
    parts.kept.mean = scalar("kept_mean");
    parts.kept.covariance = scalar("kept_covariance");
    if (has("kept_deviations")) {
      parts.kept.deviations = vector("kept_deviations");
    }
  }
  try {
    TransportMap map(std::move(parts));
    check_agreement(map.parts());
    return map;
  } catch (const std::invalid_argument& error) {
    fail("{}: {}; the file is damaged: make it again with `itspace map`", in_quotes(path), error.what());
  }
}

}  // namespace itspace::io
