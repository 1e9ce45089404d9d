// SPDX-License-Identifier: Apache-2.0
//
// Two feature sets to align, one sample per row.
#pragma once

#include <filesystem>
#include <itspace/block.hpp>
#include <string>

namespace itspace::experiments {

struct Domain {
  std::string description;
  Block<float> features;
};

struct DomainPair {
  Domain source, target;
};

// The 60,000 training images of Fashion-MNIST, pixels in [0, 1]: classes 0-4 against classes 5-9. `folder` holds
// train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz. Throws std::runtime_error where the files are not that.
DomainPair fashion_mnist_domains(const std::filesystem::path& folder);

// Gaussian samples with covariance eigenvalues i^(-1.2), along different axes in the two domains.
DomainPair power_law_domains();

}  // namespace itspace::experiments
