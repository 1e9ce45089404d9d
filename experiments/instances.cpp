// SPDX-License-Identifier: Apache-2.0
#include "instances.hpp"

#include "domains.hpp"
#include "instances_synthetic.hpp"
#include "sampling.hpp"

#include <itspace/covariance.hpp>
#include <itspace/io.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

namespace itspace::experiments {
namespace {

namespace fs = std::filesystem;

struct PaperSet {
  const char *name, *title;
};
constexpr PaperSet paper_sets[] = {{"camelyon17", "Camelyon17, hospitals"},
                                   {"visda2017", "VisDA-2017, synthetic to real"},
                                   {"terra", "Terra Incognita/CCT-20, locations"}};

struct KnownFolder {
  const char *folder, *title;
};
constexpr KnownFolder known_folders[] = {{"office_caltech_googlenet1024", "Office-Caltech GoogLeNet"},
                                         {"office_caltech_surf800", "Office-Caltech SURF"},
                                         {"gas_drift_128", "Gas sensor drift"},
                                         {"music_genre_mgr58", "Music genres"}};

// Batch 6 of the gas sensors is a year and a half after batch 1 and the largest that has all six gases.
constexpr const char* default_pairs[] = {"office_caltech_googlenet1024:amazon:webcam",
                                         "office_caltech_surf800:amazon:caltech10", "gas_drift_128:batch1:batch6",
                                         "music_genre_mgr58:dom0:dom4"};

constexpr Index fashion_mnist_source_images = 3000;

const PaperSet* paper_set(const std::string& name) {
  const auto found =
      std::find_if(std::begin(paper_sets), std::end(paper_sets), [&](const PaperSet& set) { return name == set.name; });
  return found == std::end(paper_sets) ? nullptr : found;
}

struct PairName {
  std::string folder, from, to;
};

// FOLDER:FROM:TO, each a plain name.
std::optional<PairName> pair_named(const std::string& name) {
  const auto first = name.find(':'), second = name.find(':', first + 1);
  if (first == std::string::npos || second == std::string::npos) return std::nullopt;
  const PairName pair{name.substr(0, first), name.substr(first + 1, second - first - 1), name.substr(second + 1)};
  for (const std::string& part : {pair.folder, pair.from, pair.to})
    if (part.empty() || part.front() == '.' || part.find_first_of(":/\\") != std::string::npos) return std::nullopt;
  return pair;
}

// synthetic, synthetic-512.
std::optional<Index> synthetic_dim(const std::string& name) {
  const std::string plain = "synthetic";
  if (name == plain) return default_synthetic_dim;
  if (!name.starts_with(plain + "-")) return std::nullopt;
  const char *begin = name.data() + plain.size() + 1, *end = name.data() + name.size();
  Index dim = 0;
  const auto [rest, error] = std::from_chars(begin, end, dim);
  if (error != std::errc{} || rest != end || begin == end) return std::nullopt;
  return dim;
}

[[noreturn]] void refuse_name(const std::string& name) {
  throw std::invalid_argument(fmt::format(
      "there is no instance '{}'; pass camelyon17, visda2017, terra, FOLDER:FROM:TO (such as {}), fashion-mnist, "
      "synthetic or synthetic-D with D from {} to {}",
      name, default_pairs[0], least_synthetic_dim, most_synthetic_dim));
}

std::vector<int> read_labels(const fs::path& path, Index samples, const fs::path& features) {
  const io::Array array = io::open_array(path);
  if (std::min(array.rows(), array.cols()) != 1 && array.rows() * array.cols() != 0)
    throw std::invalid_argument(fmt::format("{} is {} x {}; labels are one integer per sample, so pass a vector of {}",
                                            path.string(), array.rows(), array.cols(), samples));
  const Index count = array.rows() * array.cols();
  if (count != samples)
    throw std::invalid_argument(fmt::format("{} has {} labels and {} has {} rows; there must be one label per row",
                                            path.string(), count, features.string(), samples));
  const auto held = array.as<double>();
  const auto values = held.view();
  std::vector<int> labels;
  for (Index i = 0; i < count; ++i) {
    const double value = array.rows() == count ? values(i, 0) : values(0, i);
    if (!(std::abs(value) <= std::numeric_limits<int>::max()) || value != std::trunc(value))
      throw std::invalid_argument(fmt::format(
          "{}[{}] is {}; a label is an integer of 32 bits. Number the classes first", path.string(), i, value));
    labels.push_back(static_cast<int>(value));
  }
  return labels;
}

// `layout` is what the folder should look like, for whoever has to make it.
LabelledSet read_set(const fs::path& folder, const std::string& domain, Labels labels, const std::string& layout) {
  const fs::path x = folder / (domain + "_x.npy"), y = folder / (domain + "_y.npy");
  for (const fs::path& path : {x, y}) {
    if (path == y && labels == Labels::ignored) continue;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) throw std::runtime_error(fmt::format("{} is missing; {}", path.string(), layout));
  }
  const io::Array array = io::open_array(x);
  if (array.rows() < 2 || array.cols() < 2)
    throw std::invalid_argument(fmt::format("{} is {} x {}; pass features of at least 2 samples (rows) and 2 features",
                                            x.string(), array.rows(), array.cols()));
  LabelledSet set{array.as<float>().view(), {}};
  check_finite<float>(set.features, x.string());
  if (labels == Labels::wanted) set.labels = read_labels(y, set.features.rows(), x);
  return set;
}

void check_two_classes(const LabelledSet& set, const std::string& where) {
  if (set.labels.empty()) return;
  if (std::any_of(set.labels.begin(), set.labels.end(), [&](int label) { return label != set.labels.front(); })) return;
  throw std::invalid_argument(
      fmt::format("{}: all {} labels are {}; there must be at least 2 classes. Supply samples of another, or run the "
                  "alignment experiment, which needs no labels",
                  where, set.labels.size(), set.labels.front()));
}

void load_files(const fs::path& folder, const std::string& from, const std::string& to, Labels labels,
                Instance& instance) {
  const std::string label_files =
      labels == Labels::wanted ? fmt::format(" and {}_y.npy and {}_y.npy (labels, n integers)", from, to) : "";
  const std::string layout = fmt::format(
      "wanted in {}: {}_x.npy and {}_x.npy (features, n x d, a row is a sample){}. Name the folder above it with "
      "--data or ITSPACE_DATA; docs/guides/features.md "
      "says how to make the files",
      folder.string(), from, to, label_files);
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw std::runtime_error(fmt::format("{} is no folder; {}", folder.string(), layout));
  instance.source = read_set(folder, from, labels, layout);
  instance.target = read_set(folder, to, labels, layout);
  const auto file = [&](const std::string& domain, const char* kind) { return (folder / (domain + kind)).string(); };
  if (instance.source.features.cols() != instance.target.features.cols())
    throw std::invalid_argument(fmt::format("{} has {} columns and {} has {}; both domains need the same features",
                                            file(from, "_x.npy"), instance.source.features.cols(), file(to, "_x.npy"),
                                            instance.target.features.cols()));
  check_two_classes(instance.source, file(from, "_y.npy"));
  check_two_classes(instance.target, file(to, "_y.npy"));
  instance.info.description = folder.string();
}

void load_fashion_mnist(const fs::path& folder, Labels labels, Instance& instance) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw std::runtime_error(
        fmt::format("{} is no folder; wanted there: {{train,t10k}}-{{images-idx3,labels-idx1}}-ubyte.gz. Install "
                    "dataset-fashion-mnist (Debian, Ubuntu), or set ITSPACE_FASHION_MNIST to the folder that has them",
                    folder.string()));
  if (labels == Labels::ignored) {
    DomainPair pair = fashion_mnist_domains(folder);
    instance.source.features = std::move(pair.source.features);
    instance.target.features = std::move(pair.target.features);
    instance.info.title = "Fashion-MNIST, classes 0-4 to 5-9";
    instance.info.description = pair.source.description + "; " + pair.target.description;
    return;
  }
  const LabelledImages train = fashion_mnist_images(folder, "train");
  LabelledImages test = fashion_mnist_images(folder, "t10k");
  std::vector<Index> rows = shuffled(train.pixels.rows(), 0, 0);
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(fashion_mnist_source_images)));
  instance.source.features = train.pixels(rows, Eigen::indexing::all);
  for (const Index row : rows) instance.source.labels.push_back(train.labels[static_cast<std::size_t>(row)]);
  instance.target = {std::move(test.pixels), std::move(test.labels)};
  instance.info.title = "Fashion-MNIST, training to test images";
  instance.info.description = fmt::format("{} of the {} training images, drawn with seed 0, and all {} test images",
                                          rows.size(), train.pixels.rows(), instance.target.features.rows());
}

}  // namespace

bool is_instance_name(const std::string& name) {
  if (const auto dim = synthetic_dim(name)) return *dim >= least_synthetic_dim && *dim <= most_synthetic_dim;
  return name == "fashion-mnist" || paper_set(name) != nullptr || pair_named(name).has_value();
}

void check_instance_name(const std::string& name) {
  if (!is_instance_name(name)) refuse_name(name);
}

bool is_supplied(const std::string& name, const DataFolders& folders) {
  std::error_code ignored;
  if (name == "fashion-mnist") return fs::is_directory(folders.fashion_mnist, ignored);
  if (paper_set(name) != nullptr) return fs::is_directory(folders.features / name, ignored);
  if (const auto pair = pair_named(name)) return fs::is_directory(folders.features / pair->folder, ignored);
  return true;
}

std::string fingerprint(const std::string& name, const DataFolders& folders, Labels labels) {
  std::vector<fs::path> files;
  const auto add_domains = [&](const fs::path& folder, const std::string& from, const std::string& to) {
    for (const std::string& domain : {from, to}) {
      files.push_back(folder / (domain + "_x.npy"));
      if (labels == Labels::wanted) files.push_back(folder / (domain + "_y.npy"));
    }
  };
  if (name == "fashion-mnist") {
    for (const char* set : {"train", "t10k"})
      for (const char* kind : {"images-idx3", "labels-idx1"})
        files.push_back(folders.fashion_mnist / fmt::format("{}-{}-ubyte.gz", set, kind));
  } else if (paper_set(name) != nullptr) {
    add_domains(folders.features / name, "source", "target");
  } else if (const auto pair = pair_named(name)) {
    add_domains(folders.features / pair->folder, pair->from, pair->to);
  }
  std::string text = name;
  for (const fs::path& file : files) {
    std::error_code missing;
    const auto size = fs::file_size(file, missing);
    if (missing) continue;
    const auto written = fs::last_write_time(file, missing).time_since_epoch().count();
    text += fmt::format("; {} of {} bytes, written at {}", file.filename().string(), size, written);
  }
  return text;
}

std::vector<std::string> default_instances(const DataFolders& folders, Labels labels) {
  std::vector<std::string> names;
  for (const PaperSet& set : paper_sets) names.emplace_back(set.name);
  for (const char* pair : default_pairs)
    if (is_supplied(pair, folders)) names.emplace_back(pair);
  if (is_supplied("fashion-mnist", folders)) names.emplace_back("fashion-mnist");
  names.emplace_back(labels == Labels::ignored ? "synthetic" : "synthetic-512");
  return names;
}

Instance load_instance(const std::string& name, const DataFolders& folders, Labels labels) {
  check_instance_name(name);
  Instance instance;
  instance.info.name = name;
  if (const auto dim = synthetic_dim(name)) {
    fill_synthetic(*dim, labels, instance);
    instance.info.title = fmt::format("Synthetic, d = {}", *dim);
    instance.info.description = fmt::format("Gaussian samples, eigenvalues i^-1.2, rotated axes{}",
                                            labels == Labels::wanted ? ", 10 classes" : "");
  } else if (name == "fashion-mnist") {
    load_fashion_mnist(folders.fashion_mnist, labels, instance);
  } else if (const PaperSet* set = paper_set(name)) {
    instance.info.title = set->title;
    load_files(folders.features / name, "source", "target", labels, instance);
  } else {
    const PairName pair = *pair_named(name);
    const auto known = std::find_if(std::begin(known_folders), std::end(known_folders),
                                    [&](const KnownFolder& folder) { return pair.folder == folder.folder; });
    const std::string set_title = known == std::end(known_folders) ? pair.folder : known->title;
    instance.info.title = fmt::format("{}, {} to {}", set_title, pair.from, pair.to);
    load_files(folders.features / pair.folder, pair.from, pair.to, labels, instance);
  }
  instance.info.dim = instance.source.features.cols();
  instance.info.source_samples = instance.source.features.rows();
  instance.info.target_samples = instance.target.features.rows();
  return instance;
}

}  // namespace itspace::experiments
