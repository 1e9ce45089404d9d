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

Domain images_of(const LabelledImages& images, int first_class, int last_class, const char* names) {
  std::vector<Index> rows;
  for (std::size_t i = 0; i < images.labels.size(); ++i)
    if (images.labels[i] >= first_class && images.labels[i] <= last_class) rows.push_back(static_cast<Index>(i));
  return {fmt::format("Fashion-MNIST classes {}-{} ({}): {} images, {} pixels", first_class, last_class, names,
                      rows.size(), images.pixels.cols()),
          images.pixels(rows, Eigen::indexing::all)};
}

}  // namespace

LabelledImages fashion_mnist_images(const std::filesystem::path& folder, const std::string& part) {
  const IdxArray images = read_idx(folder / (part + "-images-idx3-ubyte.gz"));
  const IdxArray labels = read_idx(folder / (part + "-labels-idx1-ubyte.gz"));
  if (images.shape.size() != 3 || labels.shape.size() != 1 || images.shape[0] != labels.shape[0])
    throw std::runtime_error(fmt::format("{}: the image and label files do not belong together", folder.string()));
  if (std::any_of(labels.values.begin(), labels.values.end(), [](std::uint8_t label) { return label >= classes; }))
    throw std::runtime_error(fmt::format("{}: a label is not in 0 to {}", folder.string(), classes - 1));
  const auto count = static_cast<Index>(images.shape[0]),
             pixels = static_cast<Index>(images.shape[1] * images.shape[2]);
  using Bytes = Eigen::Matrix<std::uint8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return {Eigen::Map<const Bytes>(images.values.data(), count, pixels).cast<float>() / 255.0f,
          {labels.values.begin(), labels.values.end()}};
}

DomainPair fashion_mnist_domains(const std::filesystem::path& folder) {
  const LabelledImages images = fashion_mnist_images(folder, "train");
  return {images_of(images, 0, source_classes - 1, "T-shirt, trouser, pullover, dress, coat"),
          images_of(images, source_classes, classes - 1, "sandal, shirt, sneaker, bag, boot")};
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
      Eigen::HouseholderQR<RowMajorMatrix<float>>(mixing).householderQ() * Block<float>::Identity(dim, dim);

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
