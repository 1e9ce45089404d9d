// SPDX-License-Identifier: Apache-2.0
#include "domains.hpp"

#include "idx_file.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <itspace/random.hpp>
#include <stdexcept>

namespace itspace::experiments {
namespace {

constexpr int classes = 10;
constexpr int source_classes = 5;

Domain images_of(const IdxArray& images, const IdxArray& labels, int first_class, int last_class, const char* names) {
  const auto wanted = [&](std::uint8_t label) { return label >= first_class && label <= last_class; };
  const Index pixels = static_cast<Index>(images.shape[1] * images.shape[2]);
  const Index count = std::count_if(labels.values.begin(), labels.values.end(), wanted);

  Domain domain;
  domain.description = fmt::format("Fashion-MNIST classes {}-{} ({}): {} images, {} pixels", first_class, last_class,
                                   names, count, pixels);
  domain.features.resize(count, pixels);
  Index row = 0;
  for (std::size_t i = 0; i < labels.values.size(); ++i) {
    if (!wanted(labels.values[i])) continue;
    const std::uint8_t* image = images.values.data() + i * static_cast<std::size_t>(pixels);
    for (Index j = 0; j < pixels; ++j) domain.features(row, j) = static_cast<float>(image[j]) / 255.0f;
    ++row;
  }
  return domain;
}

}  // namespace

DomainPair fashion_mnist_domains(const std::filesystem::path& folder) {
  const IdxArray images = read_idx(folder / "train-images-idx3-ubyte.gz");
  const IdxArray labels = read_idx(folder / "train-labels-idx1-ubyte.gz");
  if (images.shape.size() != 3 || labels.shape.size() != 1 || images.shape[0] != labels.shape[0])
    throw std::runtime_error(fmt::format("{}: the image and label files do not belong together", folder.string()));
  if (std::any_of(labels.values.begin(), labels.values.end(), [](std::uint8_t label) { return label >= classes; }))
    throw std::runtime_error(fmt::format("{}: a label is not in 0 to {}", folder.string(), classes - 1));
  return {images_of(images, labels, 0, source_classes - 1, "T-shirt, trouser, pullover, dress, coat"),
          images_of(images, labels, source_classes, classes - 1, "sandal, shirt, sneaker, bag, boot")};
}

DomainPair power_law_domains() {
  constexpr Index samples = 4000, dim = 512;
  constexpr double decay = 1.2;

  // Axes that are neither those of the source nor unrelated to them.
  Block<float> mixing(dim, dim);
  Random(1).fill_normal<float>(mixing);
  mixing *= 1.0f / std::sqrt(static_cast<float>(dim));
  mixing.diagonal().array() += 1.0f;
  const Block<float> axes =
      Eigen::HouseholderQR<Block<float>>(mixing).householderQ() * Block<float>::Identity(dim, dim);

  Eigen::VectorXf scales(dim);
  for (Index i = 0; i < dim; ++i) scales[i] = static_cast<float>(std::pow(static_cast<double>(i + 1), -decay / 2));

  DomainPair pair;
  for (Domain* domain : {&pair.source, &pair.target}) {
    const bool is_source = domain == &pair.source;
    domain->features.resize(samples, dim);
    Random(is_source ? 2 : 3).fill_normal<float>(domain->features);
    domain->features *= scales.asDiagonal();
    if (!is_source) domain->features *= axes.transpose();
    domain->description = fmt::format("{} synthetic samples, {} features, eigenvalues i^-{}{}", samples, dim, decay,
                                      is_source ? "" : ", along other axes");
  }
  return pair;
}

}  // namespace itspace::experiments
