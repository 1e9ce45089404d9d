// SPDX-License-Identifier: Apache-2.0
#include "instances.hpp"

#include "data.hpp"
#include "expect_throw.hpp"

#include <itspace/covariance.hpp>
#include <itspace/io.hpp>
#include <itspace/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>

namespace itspace::experiments {
namespace {

namespace fs = std::filesystem;
using test::expect_throws_naming;

// A data folder with a good instance "terra", which each test then spoils in one way.
class InstancesTest : public testing::Test {
 protected:
  InstancesTest() {
    fs::create_directories(terra_);
    Random(1).fill_normal<float>(source_x_);
    Random(2).fill_normal<float>(target_x_);
    save("source_x", source_x_);
    save("target_x", target_x_);
    save("source_y", source_y_);
    save("target_y", target_y_);
  }
  ~InstancesTest() override { fs::remove_all(data_); }

  void save(const std::string& what, const Block<float>& values) {
    io::save_npy<float>(terra_ / (what + ".npy"), values);
  }
  Instance load(Labels labels = Labels::wanted) { return load_instance("terra", folders_, labels); }

  const fs::path data_ = fs::path(testing::TempDir()) /
                         (std::string("itspace_") + testing::UnitTest::GetInstance()->current_test_info()->name());
  const fs::path terra_ = data_ / "terra";
  const DataFolders folders_{data_, data_ / "fashion-mnist"};
  Block<float> source_x_{4, 3}, target_x_{5, 3};
  Block<float> source_y_{{7}, {-2}, {7}, {-2}}, target_y_{{7}, {7}, {-2}, {-2}, {7}};
};

TEST_F(InstancesTest, LoadsFeaturesAndLabels) {
  const Instance instance = load();
  EXPECT_EQ(instance.source.features, source_x_);
  EXPECT_EQ(instance.target.features, target_x_);
  EXPECT_EQ(instance.source.labels, (std::vector{7, -2, 7, -2}));
  EXPECT_EQ(instance.target.labels, (std::vector{7, 7, -2, -2, 7}));
  EXPECT_EQ(instance.info.name, "terra");
  EXPECT_EQ(instance.info.dim, 3);
  EXPECT_EQ(instance.info.source_samples, 4);
  EXPECT_EQ(instance.info.target_samples, 5);
}

TEST_F(InstancesTest, LoadsAPairOfAFolderWithSeveralDomains) {
  const Instance instance = load_instance("terra:target:source", folders_, Labels::wanted);
  EXPECT_EQ(instance.source.features, target_x_);
  EXPECT_EQ(instance.target.features, source_x_);
  EXPECT_EQ(instance.info.title, "terra, target to source");
}

TEST_F(InstancesTest, NeedsNoLabelsWhereTheyAreIgnored) {
  fs::remove(terra_ / "source_y.npy");
  fs::remove(terra_ / "target_y.npy");
  EXPECT_TRUE(load(Labels::ignored).source.labels.empty());
  expect_throws_naming<std::runtime_error>({"source_y.npy is missing", "target_y.npy", "n x d", "--data"},
                                           [&] { load(); });
}

TEST_F(InstancesTest, SaysTheLayoutItWantedWhereTheFolderIsMissing) {
  fs::remove_all(terra_);
  expect_throws_naming<std::runtime_error>(
      {terra_.string() + " is no folder", "source_x.npy and target_x.npy", "source_y.npy", "ITSPACE_DATA"},
      [&] { load(); });
  expect_throws_naming<std::runtime_error>({"elsewhere is no folder", "a_x.npy and b_x.npy"},
                                           [&] { load_instance("elsewhere:a:b", folders_, Labels::wanted); });
  expect_throws_naming<std::runtime_error>({"fashion-mnist is no folder", "dataset-fashion-mnist"},
                                           [&] { load_instance("fashion-mnist", folders_, Labels::wanted); });
}

TEST_F(InstancesTest, RefusesLabelsAndFeaturesOfDifferentLengths) {
  save("target_y", Block<float>{{7}, {7}, {-2}});
  expect_throws_naming<std::invalid_argument>({"target_y.npy has 3 labels", "target_x.npy has 5 rows"},
                                              [&] { load(); });
}

TEST_F(InstancesTest, RefusesLabelsThatAreATable) {
  save("target_y", target_x_);
  expect_throws_naming<std::invalid_argument>({"target_y.npy is 5 x 3", "vector of 5"}, [&] { load(); });
}

TEST_F(InstancesTest, RefusesLabelsThatAreNotIntegers) {
  for (const float bad : {0.5f, std::numeric_limits<float>::quiet_NaN(), 1e12f}) {
    source_y_(2, 0) = bad;
    save("source_y", source_y_);
    expect_throws_naming<std::invalid_argument>({"source_y.npy[2] is", "integer"}, [&] { load(); });
  }
}

TEST_F(InstancesTest, RefusesOneClassOnly) {
  save("source_y", Block<float>::Constant(4, 1, 7));
  expect_throws_naming<std::invalid_argument>({"source_y.npy", "all 4 labels are 7", "at least 2 classes"},
                                              [&] { load(); });
}

TEST_F(InstancesTest, RefusesFeaturesThatAreNotFinite) {
  target_x_(3, 1) = std::numeric_limits<float>::quiet_NaN();
  save("target_x", target_x_);
  expect_throws_naming<std::invalid_argument>({"target_x.npy[3, 1] is nan", "finite"}, [&] { load(); });
}

TEST_F(InstancesTest, RefusesDomainsWithDifferentFeatures) {
  save("target_x", Block<float>::Zero(5, 4));
  expect_throws_naming<std::invalid_argument>({"source_x.npy has 3 columns", "target_x.npy has 4"}, [&] { load(); });
}

TEST_F(InstancesTest, RefusesTooFewSamples) {
  save("source_x", Block<float>::Zero(1, 3));
  expect_throws_naming<std::invalid_argument>({"source_x.npy is 1 x 3", "at least 2"}, [&] { load(); });
}

TEST_F(InstancesTest, RefusesNamesOfNoKnownForm) {
  for (const char* name : {"", "terro", "a:b", "a:b:c:d", "../x:a:b", "a:../b:c", "a/b:c:d", "a::b", "synthetic-",
                           "synthetic-1", "synthetic--5", "synthetic-12x", "synthetic-99999999999999999999"}) {
    EXPECT_FALSE(is_instance_name(name)) << name;
    expect_throws_naming<std::invalid_argument>({"no instance '" + std::string(name) + "'", "FOLDER:FROM:TO"},
                                                [&] { load_instance(name, folders_, Labels::wanted); });
  }
}

TEST_F(InstancesTest, NamesThePapersSetsAndWhatIsAtHand) {
  fs::create_directories(data_ / "music_genre_mgr58");
  const std::vector<std::string> names = default_instances(folders_, Labels::ignored);
  EXPECT_EQ(names,
            (std::vector<std::string>{"camelyon17", "visda2017", "terra", "music_genre_mgr58:dom0:dom4", "synthetic"}));
  EXPECT_EQ(default_instances(folders_, Labels::wanted).back(), "synthetic-512");
  for (const std::string& name : names) EXPECT_TRUE(is_instance_name(name)) << name;
  EXPECT_TRUE(is_supplied("terra", folders_));
  EXPECT_FALSE(is_supplied("camelyon17", folders_));
  EXPECT_FALSE(is_supplied("fashion-mnist", folders_));
  EXPECT_FALSE(is_supplied("gas_drift_128:batch1:batch6", folders_));
  EXPECT_TRUE(is_supplied("synthetic", folders_));
}

// Orthonormal leading directions of a set.
Block<double> leading_span(const Block<double>& sigma, Index rank) {
  const Block<double> factor = truncate<double>(sigma, rank);
  return factor * factor.colwise().norm().cwiseInverse().asDiagonal();
}

TEST_F(InstancesTest, MakesSyntheticDomainsWithTheStatedSpectrumAlongOtherAxes) {
  constexpr Index d = 256, rank = 16;
  const Instance instance = load_instance("synthetic-256", folders_, Labels::ignored);
  ASSERT_EQ(instance.source.features.rows(), 2 * d);
  ASSERT_EQ(instance.source.features.cols(), d);
  EXPECT_TRUE(instance.source.labels.empty());
  double trace = 0, squares = 0;
  for (Index i = 1; i <= d; ++i) {
    trace += std::pow(static_cast<double>(i), -1.2);
    squares += std::pow(static_cast<double>(i), -2.4);
  }
  for (const LabelledSet* set : {&instance.source, &instance.target}) {
    const Eigen::VectorXd values = leading_eigenvalues<double>(covariance<double>(set->features.cast<double>()), d);
    EXPECT_GT(values[d - 1], 0);  // full rank
    // A sum of chi-squares has the relative deviation sqrt(2 sum lambda^2/n)/sum lambda.
    EXPECT_NEAR(values.sum() / trace, 1, 4 * std::sqrt(2 * squares / (2 * d)) / trace);
  }
  // The share of the source's span that the target's keeps, against what sampling alone keeps of it.
  const auto half = [&](const LabelledSet& set, Index first) {
    const Block<double> rows = set.features.middleRows(first, d).cast<double>();
    return leading_span(covariance<double>(rows), rank);
  };
  const Block<double> source = half(instance.source, 0);
  const auto kept = [&](const Block<double>& span) { return (source.transpose() * span).squaredNorm() / rank; };
  const double by_sampling = kept(half(instance.source, d)), by_rotation = kept(half(instance.target, d));
  EXPECT_LT(by_rotation, 0.75 * by_sampling);
  EXPECT_GT(by_rotation, 2.0 * rank / d);  // unrelated spans keep rank/d
  EXPECT_EQ(instance.source.features, load_instance("synthetic-256", folders_, Labels::ignored).source.features);
}

TEST_F(InstancesTest, MakesSyntheticClassesThatAreNotPaired) {
  const Instance instance = load_instance("synthetic-32", folders_, Labels::wanted);
  EXPECT_EQ(instance.source.labels.size(), static_cast<std::size_t>(instance.source.features.rows()));
  EXPECT_EQ(std::set<int>(instance.source.labels.begin(), instance.source.labels.end()).size(), 10u);
  EXPECT_NE(instance.source.labels, instance.target.labels);
}

TEST(Instances, LoadFashionMnist) {
  const DataFolders folders{"", ITSPACE_FASHION_MNIST_FOLDER};
  if (!is_supplied("fashion-mnist", folders)) GTEST_SKIP() << "no Fashion-MNIST in " << folders.fashion_mnist;
  const Instance labelled = load_instance("fashion-mnist", folders, Labels::wanted);
  EXPECT_EQ(labelled.info.dim, 784);
  EXPECT_EQ(labelled.info.source_samples, 3000);
  EXPECT_EQ(labelled.info.target_samples, 10000);
  for (const LabelledSet* set : {&labelled.source, &labelled.target})
    EXPECT_EQ(std::set<int>(set->labels.begin(), set->labels.end()).size(), 10u);
  EXPECT_EQ(load_instance("fashion-mnist", folders, Labels::ignored).info.source_samples, 30000);
}

TEST(Instances, LoadTheRealSets) {
  ITSPACE_NEEDS_DATA("gas_drift_128");
  const DataFolders folders{test::data_folder(), ""};
  for (const std::string& name : default_instances(folders, Labels::wanted)) {
    if (!is_supplied(name, folders) || name.find(':') == std::string::npos) continue;
    const Instance instance = load_instance(name, folders, Labels::wanted);
    const std::set<int> source(instance.source.labels.begin(), instance.source.labels.end());
    EXPECT_EQ(source, (std::set<int>(instance.target.labels.begin(), instance.target.labels.end()))) << name;
    EXPECT_GT(instance.info.dim, 16) << name;
  }
}

}  // namespace
}  // namespace itspace::experiments
