// SPDX-License-Identifier: Apache-2.0
//
// Two feature sets to align, one sample per row.
#pragma once

#include <filesystem>
#include <itspace/block.hpp>
#include <string>
#include <vector>

namespace itspace::experiments {

struct Domain {
  std::string description;
  Block<float> features;
};

struct DomainPair {
  Domain source, target;
};

struct LabelledImages {
  Block<float> pixels;      // one image per row, in [0, 1]
  std::vector<int> labels;  // 0 to 9
};

// One part of Fashion-MNIST: "train" (60,000 images) or "t10k" (10,000). `folder` holds <part>-images-idx3-ubyte.gz and
// <part>-labels-idx1-ubyte.gz. Throws std::runtime_error where the files are not that.
LabelledImages fashion_mnist_images(const std::filesystem::path& folder, const std::string& part);

// The 60,000 training images of Fashion-MNIST, pixels in [0, 1]: classes 0-4 against classes 5-9. Throws as
// fashion_mnist_images.
DomainPair fashion_mnist_domains(const std::filesystem::path& folder);

// Gaussian samples with covariance eigenvalues i^(-1.2), along different axes in the two domains.
DomainPair power_law_domains();

}  // namespace itspace::experiments
