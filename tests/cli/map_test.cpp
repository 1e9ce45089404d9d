// SPDX-License-Identifier: Apache-2.0
//
// itspace map against the library and against what a map is for: target samples get the source's mean and covariance.
#include "program.hpp"

#include <itspace/align.hpp>
#include <itspace/covariance.hpp>
#include <itspace/map_file.hpp>
#include <itspace/shift_noise.hpp>
#include <itspace/start.hpp>
#include <itspace/targets.hpp>

#include <Eigen/QR>
#include <cmath>
#include <limits>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;
constexpr Index map_dim = 12, rank = 4;

// n samples whose covariance is, to rounding, rank 4 of its own plus 0.01 I, around a mean of that size.
Matrix domain(Index samples, std::uint64_t seed, double offset) {
  Matrix scales = Matrix::Constant(1, map_dim, 0.1);
  for (Index i = 0; i < rank; ++i) scales(0, i) = 3.0 + static_cast<double>(i);
  Matrix draws = gaussian(samples, map_dim, seed);
  draws.rowwise() -= draws.colwise().mean().eval();
  const Matrix white = Matrix(draws.householderQr().householderQ() * Matrix::Identity(samples, map_dim)) *
                       std::sqrt(static_cast<double>(samples - 1));
  const Matrix turn = gaussian(map_dim, map_dim, seed + 1).householderQr().householderQ();
  const Matrix turned = white * scales.row(0).asDiagonal() * turn;
  return turned.array() + offset;
}

class MapCommand : public ProgramTest {
 protected:
  MapCommand() : source(domain(400, 1, 5)), target(domain(300, 10, -2)) {
    write("source.npy", source);
    write("target.npy", target);
  }

  Outcome make_map(const Texts& more = {}) const {
    Texts arguments{"--rank", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return make_map_without_rank(arguments);
  }
  Outcome make_map_without_rank(const Texts& more) const {
    Texts arguments{"map", "--source", "source.npy", "--target", "target.npy", "--steps", "6", "--out", "map.npz"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Matrix mapped_target() const {
    const auto done = run({"transform", "--map", "map.npz", "--in", "target.npy", "--out", "mapped.npy"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return array_of("mapped.npy");
  }
  void expect_refused(const Texts& more, int exit_code, const Texts& texts) const {
    const auto before = files();
    const auto refused = make_map(more);
    EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(mentions(refused.err, texts));
    EXPECT_EQ(files(), before);
  }

  Matrix source, target;
};

TEST_F(MapCommand, IsTheMapOfTheLibrary) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    const auto done =
        make_map({"--kind", std::string(name(kind)), "--alpha", "1.2", "--floor-share", "1e-3", "--shrink", "none"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const FeaturesTarget<double> from(target), to(source);
    const auto start = start_from_features<double>(source, rank);
    const auto factor = align<double>(from, start, {.steps = 6, .step_size = StepSize::alpha(1.2)}).factor;
    const TransportMap map(model_of<double>(from, factor, mean<double>(target), 1e-3),
                           model_of<double>(to, start, mean<double>(source), 1e-3), kind);
    const TransportMap read = io::load_map(path("map.npz"));
    EXPECT_EQ(read.kind(), kind);
    EXPECT_LE((read.matrix() - map.matrix()).norm(), 1e-12 * map.matrix().norm());
    Matrix expected = target;
    map.apply<double>(expected);
    EXPECT_LE((mapped_target() - expected).norm(), 1e-12 * expected.norm());
  }
}

// All kinds and ways to shrink, from the same calls of the library.
TEST_F(MapCommand, OfEveryKindIsTheMapOfTheLibrary) {
  source.col(3).setConstant(2);  // a constant feature on one side
  write("source.npy", source);
  for (const MapKind kind : map_kinds)
    for (const Shrink shrink : {Shrink::none, Shrink::noise, Shrink::halves}) {
      SCOPED_TRACE(std::string(name(kind)) + " " + std::string(name(shrink)));
      const Texts line{"--map", std::string(name(kind)), "--shrink", std::string(name(shrink)), "--json", "--seed",
                       "5"};
      const bool low_rank = kind != MapKind::mean && kind != MapKind::scale;
      const auto done = low_rank ? make_map(line) : make_map_without_rank(line);
      ASSERT_EQ(done.exit_code, 0) << done.err;
      auto from = model_of_features<double>(target), to = model_of_features<double>(source);
      Block<double> from_rows = target, to_rows = source;
      const bool scaled = kind == MapKind::scale_monge;
      if (scaled) standardise_features<double>(from.mean, from.deviations, from_rows);
      if (scaled) standardise_features<double>(to.mean, to.deviations, to_rows);
      const FeaturesTarget<double> from_target(from_rows), to_target(to_rows);
      const AlignOptions options{.steps = 6, .seed = 5};
      if (low_rank) {
        const auto start = start_from_features<double>(to_rows, rank);
        const auto factor = align<double>(from_target, start, options).factor;
        const auto finish = [&](LowRankGaussian& model, const FeaturesTarget<double>& of, const Block<double>& y) {
          model = model_of<double>(
              of, y, model.mean,
              ModelOptions{.deviations = model.deviations, .standardised = scaled, .samples = model.samples});
        };
        finish(from, from_target, factor);
        finish(to, to_target, start);
      }
      SeenShift seen;
      if (shrink == Shrink::noise) seen = seen_shift<double>(from_target, from, to_target, to, kind, 5);
      if (shrink == Shrink::halves) seen = seen_shift_by_halves<double>(from_rows, from, to_rows, to, kind, options);
      const Kept kept = shrink == Shrink::none ? Kept{} : seen.kept();
      const TransportMap map(from, to, kind, kept);
      const TransportMap read = io::load_map(path("map.npz"));
      EXPECT_EQ(read.kind(), kind);
      EXPECT_LE((read.matrix() - map.matrix()).norm(), 1e-9 * map.matrix().norm());
      EXPECT_EQ(read.parts().samples_from, 300);
      EXPECT_EQ(read.parts().samples_to, 400);
      EXPECT_NEAR(read.parts().kept.mean, kept.mean, 1e-9);
      Matrix expected = target;
      map.apply<double>(expected);
      EXPECT_LE((mapped_target() - expected).norm(), 1e-9 * expected.norm());
      const Json json = done.json();
      EXPECT_EQ(json["kind"], std::string(name(kind)));
      EXPECT_EQ(json["shrink"]["method"], std::string(name(shrink)));
      if (shrink != Shrink::none) {
        EXPECT_NEAR(json["shrink"]["mean"]["kept"].get<double>(), kept.mean, 1e-9);
        EXPECT_EQ(json["shrink"].contains("scales"), kept.deviations.size() > 0);
        EXPECT_EQ(json["shrink"].contains("covariance"), !json["align"].is_null());
      }
    }
}

// Halves of one domain: there is nothing to adapt to, and a map that keeps noise would move samples.
TEST_F(MapCommand, ShrinksWhatIsNoise) {
  write("target.npy", Matrix(source.topRows(200)));
  write("source.npy", Matrix(source.bottomRows(200)));
  ASSERT_EQ(make_map({"--shrink", "none"}).exit_code, 0);
  const double whole = io::load_map(path("map.npz")).displacement();
  const auto done = make_map();
  ASSERT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.out, {"mean kept", "covariance kept", "noise alone gives"}));
  EXPECT_LE(io::load_map(path("map.npz")).displacement(), 0.2 * whole);
}

TEST_F(MapCommand, CountsOfCovariancesAreAskedFor) {
  write_statistics("source.npz", mean<double>(source), covariance<double>(source));
  write_statistics("target.npz", mean<double>(target), covariance<double>(target));
  const Texts line{"map", "--source", "source.npz", "--target", "target.npz", "--rank",
                   "4",   "--steps",  "6",          "--out",    "map.npz"};
  const auto with = [&](Texts more) {
    Texts all = line;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  auto done = with({});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.err, {"not shrunk by noise", "--source-samples"}));
  EXPECT_EQ(io::load_map(path("map.npz")).parts().kept.mean, 1);
  done = with({"--shrink", "noise"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_TRUE(mentions(done.err, {"how many samples", "--source-samples", "--shrink none"}));
  EXPECT_EQ(with({"--shrink", "halves"}).exit_code, 2);
  EXPECT_EQ(with({"--source-samples", "1"}).exit_code, 2);
  ASSERT_EQ(with({"--source-samples", "400", "--target-samples", "300"}).exit_code, 0);
  const TransportMap by_count = io::load_map(path("map.npz"));
  ASSERT_EQ(make_map().exit_code, 0);
  const TransportMap by_rows = io::load_map(path("map.npz"));
  EXPECT_LT(by_count.parts().kept.mean, 1);
  EXPECT_LE((by_count.matrix() - by_rows.matrix()).norm(), 1e-6 * by_rows.matrix().norm());
  expect_refused({"--target-samples", "300"}, 2, {"--target-samples is 300", "counted"});
}

TEST_F(MapCommand, MappedSamplesHaveTheSourcesMeanAndLeadingCovariance) {
  const Matrix wanted = covariance<double>(source);
  const Matrix leading = start_from_features<double>(source, rank);
  for (const std::string kind : {"monge", "whiten"}) {
    const auto done = make_map({"--map", kind, "--solver", "ritz", "--shrink", "none"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const Matrix mapped = mapped_target();
    EXPECT_LE((mean<double>(mapped) - mean<double>(source)).norm(), 1e-10) << kind;
    const Matrix got = covariance<double>(mapped);
    EXPECT_GT((covariance<double>(target) - wanted).norm(), wanted.norm()) << kind;  // it was far
    EXPECT_LE((got - wanted).norm(), 1e-2 * wanted.norm()) << kind;                  // what rank 4 leaves out
    // Inside the leading subspace, up to what the two remainders lack of being isotropic.
    const Matrix difference = leading.transpose() * (got - wanted) * leading;
    EXPECT_LE(difference.norm(), 1e-2 * (leading.transpose() * wanted * leading).norm()) << kind;
  }
}

TEST_F(MapCommand, SaysWhatItFoundToPeopleAndMachines) {
  auto done = make_map();
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(
      mentions(done.out, {"Monge map from target target.npy into the frame of source source.npy", "dimension 12",
                          "displacement", "relative displacement", "mean share", "touched variance", "condition",
                          "Certified: all 6 steps", "itspace transform --map map.npz"}));
  EXPECT_TRUE(mentions(done.err, {"source source.npy: features, 400 samples", "target target.npy: features, 300"}));

  done = make_map({"--json", "--trace", "T.json"});
  const Json json = done.json();
  const MapDiagnosis diagnosis = io::load_map(path("map.npz")).diagnose(300, 400);
  EXPECT_EQ(json["kind"], "monge");
  EXPECT_EQ(json["rank"], 4);
  EXPECT_EQ(json["map_rank"], 8);
  EXPECT_EQ(json["means_known"], true);
  EXPECT_NEAR(json["displacement"].get<double>(), diagnosis.displacement, 1e-12 * diagnosis.displacement);
  EXPECT_NEAR(json["condition"].get<double>(), diagnosis.condition, 1e-12 * diagnosis.condition);
  EXPECT_NEAR(json["mean_share"].get<double>(), diagnosis.mean_share, 1e-12);
  EXPECT_EQ(json["warnings"].size(), diagnosis.warnings.size());
  EXPECT_EQ(json["align"]["trace"]["steps"].size(), 7u);
  EXPECT_EQ(json_of("T.json")["schema"], "itspace.trace/1");

  done = make_map({"--quiet"});
  EXPECT_EQ(done.out + done.err, "");
}

TEST_F(MapCommand, WarnsOfFewSamples) {
  write("target.npy", domain(9, 10, 40));
  const auto done = make_map();
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_TRUE(mentions(done.err, {"warning: the target has 9 samples for a map of rank 8", "lower the rank"}));
  EXPECT_EQ(done.err.find("the source has"), std::string::npos) << done.err;
}

TEST_F(MapCommand, StatisticsWithMeansGiveTheSameMap) {
  ASSERT_EQ(make_map({"--shrink", "none"}).exit_code, 0);
  const Matrix of_features = io::load_map(path("map.npz")).matrix();
  write_statistics("source.npz", mean<double>(source), covariance<double>(source));
  write_statistics("target.npz", mean<double>(target), covariance<double>(target));
  const auto done = run({"map", "--source", "source.npz", "--target", "target.npz", "--rank", "4", "--steps", "6",
                         "--out", "map.npz", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["means_known"], true);
  const TransportMap map = io::load_map(path("map.npz"));
  EXPECT_LE((map.matrix() - of_features).norm(), 1e-8 * of_features.norm());
  EXPECT_LE((map.parts().mean_to - mean<double>(source)).norm(), 1e-12);
}

TEST_F(MapCommand, ABareCovarianceHasNoMeanAndItSaysSo) {
  write("sigma.npy", covariance<double>(target));
  const auto done = run({"map", "--source", "source.npy", "--target", "sigma.npy", "--rank", "4", "--out", "map.npz"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(mentions(done.err, {"target sigma.npy is a covariance without a mean", "both means are taken for 0"}));
  const TransportMap map = io::load_map(path("map.npz"));
  EXPECT_EQ(map.parts().mean_from.norm(), 0);
  EXPECT_EQ(map.parts().mean_to.norm(), 0);
}

TEST_F(MapCommand, Float32FilesRunInFloat32) {
  write_float("source.npy", source);
  write_float("target.npy", target);
  const auto done = make_map({"--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.json()["align"]["trace"]["precision"], "float32");
  mapped_target();
  EXPECT_EQ(io::open_array(path("mapped.npy")).info().type, "float32");
  EXPECT_EQ(make_map({"--precision", "float64", "--json"}).json()["align"]["trace"]["precision"], "float64");
}

TEST_F(MapCommand, Misuse) {
  expect_refused({"--map", "magic"}, 2, {"--map is 'magic'", "scale or scale+monge"});
  expect_refused({"--kind", "magic"}, 2, {"--kind is 'magic'", "scale or scale+monge"});
  expect_refused({"--shrink", "magic"}, 2, {"--shrink is 'magic'", "none, noise or halves"});
  expect_refused({"--map", "scale", "--trace", "T.json"}, 2, {"--trace", "no alignment"});
  expect_refused({"--map", "scale"}, 2, {"--rank is 4", "kind scale", "leave out --rank"});
  expect_refused({"--map", "mean"}, 2, {"--rank is 4", "kind mean", "leave out --rank"});
  expect_refused({"--floor-share", "0"}, 2, {"--floor-share is 0", "(0, 1]"});
  expect_refused({"--alpha", "3"}, 2, {"--alpha is 3", "(0, 2)"});
  expect_refused({"--alpha", "1", "--lambda", "1"}, 2, {"--alpha 1 and --lambda 1"});
  expect_refused({"--source-as", "factor"}, 2, {"--source-as is factor", "features or a covariance"});
  expect_refused({"--trace", "map.npz"}, 2, {"--out map.npz and --trace map.npz are the same file"});
  expect_refused({"--trace", "none/T.json"}, 3, {"none"});
  expect_refused({"--wrong"}, 2, {"--wrong", "itspace map --help"});
  auto refused = run({"map", "--source", "source.npy", "--target", "target.npy", "--out", "map.npz"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--rank is required", "--map scale"}));
  refused = run(
      {"map", "--source", "source.npy", "--target", "target.npy", "--rank", "4", "--steps", "-1", "--out", "map.npz"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--steps is -1"}));
  refused = run({"map", "--source", "source.npy", "--target", "target.npy", "--rank", "13", "--out", "map.npz"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"--rank is 13", "12"}));
  refused = run({"map", "--source", "none.npy", "--target", "target.npy", "--rank", "4", "--out", "map.npz"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_TRUE(mentions(refused.err, {"none.npy"}));
  refused = run({"map", "--source", "source.npy", "--target", "target.npy", "--rank", "4", "--out", "none/map.npz"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_TRUE(mentions(refused.err, {"none"}));
  write("narrow.npy", gaussian(20, 5, 3));
  refused = run({"map", "--source", "narrow.npy", "--target", "target.npy", "--rank", "4", "--out", "map.npz"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(mentions(refused.err, {"dimension 5", "dimension 12", "narrow.npy"}));
  target(7, 3) = std::numeric_limits<double>::quiet_NaN();
  write("target.npy", target);
  expect_refused({}, 2, {"target.npy: row 7, column 3 is nan"});
}

TEST_F(MapCommand, HelpSaysWhichWayItMaps) {
  const auto help = run({"map", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(
      mentions(help.out, {"maps target samples into the source's frame", "--floor-share", "--map", "--shrink"}));
}

TEST_F(MapCommand, WhatOverflowsIsNamed) {
  write("huge.npy", Matrix(1e200 * gaussian(9, 5, 1)));
  write("other.npy", Matrix(1e200 * gaussian(8, 5, 2)));
  const auto done = run({"map", "--source", "huge.npy", "--target", "other.npy", "--rank", "2", "--out", "over.npz"});
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_TRUE(mentions(done.err, {"beyond the largest", "scale the data"}));
  EXPECT_FALSE(exists("over.npz"));
}

}  // namespace
}  // namespace itspace::cli_test
