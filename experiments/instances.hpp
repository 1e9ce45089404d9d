// SPDX-License-Identifier: Apache-2.0
//
// The data of the experiments: a labelled source and a labelled target, found by name.
//
//   camelyon17, visda2017, terra    <data>/<name>/{source,target}_{x,y}.npy, made by the user (docs/guides/features.md)
//   FOLDER:FROM:TO                  <data>/FOLDER/{FROM,TO}_{x,y}.npy, for sets of several domains
//   fashion-mnist                   from Debian's dataset-fashion-mnist
//   synthetic                       power-law spectra, rotated axes, d = 2048 (synthetic-512: another d)
#pragma once

#include "results.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace itspace::experiments {

struct LabelledSet {
  Block<float> features;    // n x d
  std::vector<int> labels;  // n, or empty where the experiment needs none
};

struct Instance {
  InstanceInfo info;
  LabelledSet source, target;
};

struct DataFolders {
  std::filesystem::path features;       // ITSPACE_DATA, or --data
  std::filesystem::path fashion_mnist;  // of the Debian package
};

enum class Labels { ignored, wanted };

// Sizes and times of the files an instance is read from, so that results kept from them can be told from stale ones.
std::string fingerprint(const std::string& name, const DataFolders& folders, Labels labels);

// @throws std::invalid_argument that lists what there is, unless `name` could be an instance.
void check_instance_name(const std::string& name);

// The instances that an experiment runs when none is named: those whose data are at hand, and the paper's three, which
// are skipped by name where the user has not supplied them.
std::vector<std::string> default_instances(const DataFolders& folders, Labels labels);

// Whether there is a folder for the data of `name` at all; what is in it load_instance finds out. Anything of ours
// (synthetic) and any name that is not one of these is "supplied".
bool is_supplied(const std::string& name, const DataFolders& folders);

// Whether a name has one of the forms above, so that a misspelt one is refused before the work begins.
bool is_instance_name(const std::string& name);

// With labels wanted, fashion-mnist is 3,000 training images against the test images, and synthetic has classes and a
// milder rotation; with labels ignored, fashion-mnist is classes 0-4 against 5-9. A label is any int.
//
// @throws std::runtime_error (a file is missing: names the layout wanted) or std::invalid_argument (values: lengths
// differ, NaN, one class only).
Instance load_instance(const std::string& name, const DataFolders& folders, Labels labels);

}  // namespace itspace::experiments
