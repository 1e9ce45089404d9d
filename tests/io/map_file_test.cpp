// SPDX-License-Identifier: Apache-2.0
//
// Maps in files: the same map back, bytes that NumPy reads, and everything else refused by name.
#include <gtest/gtest.h>

#include <functional>
#include <itspace/map_file.hpp>
#include <itspace/random.hpp>
#include <limits>
#include <sstream>

#include "fixtures.hpp"

namespace {

using namespace itspace;
using fixtures::expect_refused;
using fixtures::Folder;
using fixtures::Member;

LowRankGaussian model(Index dim, Index rank, std::uint64_t seed) {
  LowRankGaussian result{Block<double>(dim, rank), Eigen::VectorXd(dim), 0.3};
  Random(seed).fill_normal<double>(result.factor);
  Block<double> mean(dim, 1);
  Random(seed + 1).fill_normal<double>(mean);
  result.mean = mean.col(0);
  result.deviations = mean.col(0).cwiseAbs();
  result.samples = static_cast<double>(10 + seed);
  return result;
}

TransportMap some_map(MapKind kind, const Kept& kept = {}) {
  LowRankGaussian from = model(9, 3, 1);
  LowRankGaussian to = model(9, 2, 5);
  from.standardised = to.standardised = kind == MapKind::scale_monge;
  return {from, to, kind, kept};
}

Kept some_kept() {
  return {0.5, 0.25, Eigen::VectorXd::LinSpaced(9, 0, 1)};
}

// As NumPy keeps a text: four bytes to a character.
std::string npy_text(std::string_view text) {
  std::string values;
  for (const char c : text) {
    values += c;
    values.append(3, '\0');
  }
  return fixtures::npy_of(std::string("<U").append(std::to_string(text.size())), "()", values);
}

// (3,) or (3, 4)
std::string shape(std::initializer_list<Index> lengths) {
  std::ostringstream text;
  for (const Index length : lengths) {
    text << (text.str().empty() ? '(' : ' ') << length << ',';
  }
  std::string result = text.str();
  if (lengths.size() > 1) {
    result.pop_back();
  }
  return result += ')';
}

template <class Values>
std::string npy_values(const Values& values, const std::string& shape) {
  std::string bytes;
  for (Index i = 0; i < values.size(); ++i) {
    bytes += fixtures::raw(values.data()[i], false);
  }
  return fixtures::npy_of("<f8", shape, bytes);
}

std::string npy_vector(const Eigen::VectorXd& v) {
  return npy_values(v, shape({v.size()}));
}

// The members of a map file of the first format, written without the library's writer.
std::vector<Member> first_members_of(const TransportMap::Parts& parts) {
  const auto matrix = [](const Block<double>& m) { return npy_values(m, shape({m.rows(), m.cols()})); };
  const auto vector = [](const Eigen::VectorXd& v) { return npy_vector(v); };
  return {{"format.npy", npy_text("itspace.map/1")},
          {"kind.npy", npy_text(name(parts.kind))},
          {"scalar.npy", fixtures::npy_f8("()", {parts.scalar})},
          {"basis.npy", matrix(parts.basis)},
          {"core.npy", matrix(parts.core)},
          {"mean_from.npy", vector(parts.mean_from)},
          {"mean_to.npy", vector(parts.mean_to)},
          {"from_root.npy", matrix(parts.from_root)},
          {"to_root.npy", matrix(parts.to_root)},
          {"from_remainder.npy", fixtures::npy_f8("()", {parts.from_remainder})},
          {"to_remainder.npy", fixtures::npy_f8("()", {parts.to_remainder})}};
}

// The same of the present format.
std::vector<Member> members_of(const TransportMap::Parts& parts) {
  std::vector<Member> members = first_members_of(parts);
  members.front().content = npy_text("itspace.map/2");
  if (parts.scale_from.size() > 0) {
    members.push_back({"scale_from.npy", npy_vector(parts.scale_from)});
    members.push_back({"scale_to.npy", npy_vector(parts.scale_to)});
  }
  members.push_back({"samples_from.npy", fixtures::npy_f8("()", {parts.samples_from})});
  members.push_back({"samples_to.npy", fixtures::npy_f8("()", {parts.samples_to})});
  members.push_back({"kept_mean.npy", fixtures::npy_f8("()", {parts.kept.mean})});
  members.push_back({"kept_covariance.npy", fixtures::npy_f8("()", {parts.kept.covariance})});
  if (parts.kept.deviations.size() > 0) {
    members.push_back({"kept_deviations.npy", npy_vector(parts.kept.deviations)});
  }
  return members;
}

void expect_same(const TransportMap& a, const TransportMap& b) {
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.parts().scalar, b.parts().scalar);
  EXPECT_EQ(a.parts().basis, b.parts().basis);
  EXPECT_EQ(a.parts().core, b.parts().core);
  EXPECT_EQ(a.parts().mean_from, b.parts().mean_from);
  EXPECT_EQ(a.parts().mean_to, b.parts().mean_to);
  EXPECT_EQ(a.parts().from_root, b.parts().from_root);
  EXPECT_EQ(a.parts().to_root, b.parts().to_root);
  EXPECT_EQ(a.parts().from_remainder, b.parts().from_remainder);
  EXPECT_EQ(a.parts().to_remainder, b.parts().to_remainder);
  EXPECT_EQ(a.parts().scale_from, b.parts().scale_from);
  EXPECT_EQ(a.parts().scale_to, b.parts().scale_to);
  EXPECT_EQ(a.parts().samples_from, b.parts().samples_from);
  EXPECT_EQ(a.parts().samples_to, b.parts().samples_to);
  EXPECT_EQ(a.parts().kept.mean, b.parts().kept.mean);
  EXPECT_EQ(a.parts().kept.covariance, b.parts().kept.covariance);
  EXPECT_EQ(a.parts().kept.deviations, b.parts().kept.deviations);
}

class MapFile : public ::testing::Test {
 protected:
  // Writes the map's members after `change`, and expects the file to be refused with these words.
  template <class Change>
  void expect_broken(Change change, std::initializer_list<std::string_view> parts) {
    auto members = members_of(some_map(MapKind::monge).parts());
    change(members);
    const auto path = folder.write("broken.npz", fixtures::zip(members));
    expect_refused([&] { io::load_map(path); }, {"broken.npz"});
    expect_refused([&] { io::load_map(path); }, parts);
  }
  static Member& find(std::vector<Member>& members, std::string_view member) {
    return *std::ranges::find(members, member, &Member::name);
  }

  Folder folder;
};

TEST_F(MapFile, AllKindsComeBackBitForBit) {
  for (const MapKind kind : map_kinds) {
    for (const Kept& kept : {Kept{}, some_kept(), Kept{0, 0, Eigen::VectorXd::Zero(9)}}) {
      const TransportMap map = some_map(kind, kept);
      io::save_map(folder / "map.npz", map);
      ASSERT_NO_THROW(expect_same(io::load_map(folder / "map.npz"), map)) << name(kind);
      io::save_map(folder / "map.npz", map.inverse());
      ASSERT_NO_THROW(io::load_map(folder / "map.npz")) << name(kind) << " inverse";
    }
  }
  EXPECT_EQ(folder.names(), std::vector<std::string>{"map.npz"});
}

TEST_F(MapFile, HoldsTheArraysNumpyWouldWrite) {
  const TransportMap map = some_map(MapKind::scale_monge, some_kept());
  io::save_map(folder / "map.npz", map);
  const std::string bytes = fixtures::read(folder / "map.npz");
  for (const Member& member : members_of(map.parts())) {
    EXPECT_NE(bytes.find(member.name + std::string(1, '\x35')), std::string::npos) << member.name;  // then the padding
    EXPECT_NE(bytes.find(member.content), std::string::npos) << member.name;
  }
}

TEST_F(MapFile, WhatNumpyWroteIsRead) {
  const TransportMap map = some_map(MapKind::monge);
  auto members = members_of(map.parts());
  expect_same(io::load_map(folder.write("plain.npz", fixtures::zip(members))), map);
  for (Member& member : members) {
    member.deflated = true;  // numpy.savez_compressed
  }
  find(members, "format.npy").content = fixtures::npy_of("|S13", "()", "itspace.map/2");
  members.push_back({"note.npy", fixtures::npy_f8("(1,)", {1})});  // what is not ours is left alone
  expect_same(io::load_map(folder.write("compressed.npz", fixtures::zip(members))), map);
}

TEST_F(MapFile, TheFirstFormatIsStillRead) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    TransportMap::Parts parts = some_map(kind).parts();
    const auto path = folder.write("first.npz", fixtures::zip(first_members_of(parts)));
    parts.samples_from = parts.samples_to = 0;  // it knew none
    expect_same(io::load_map(path), TransportMap(parts));
  }
  // It knew no scales either: a file that claims both is damaged.
  const auto path = folder.write("first.npz", fixtures::zip(first_members_of(some_map(MapKind::scale).parts())));
  expect_refused([&] { io::load_map(path); }, {"first.npz", "scale_from", "kind scale"});
}

TEST_F(MapFile, AnotherFormatIsRefusedByName) {
  folder.write("a.npy", fixtures::npy_f8("(2,)", {1, 2}));
  folder.write("a.npz", fixtures::zip({{"sigma.npy", fixtures::npy_f8("(1, 1)", {1})}}));
  folder.write("a.txt", "hello, this is no array");
  expect_refused([&] { io::load_map(folder / "a.npy"); }, {"a.npy", "plain array", "itspace.map/2"});
  expect_refused([&] { io::load_map(folder / "a.npz"); }, {"a.npz", "'format'", "'sigma'", "itspace.map/2"});
  expect_refused([&] { io::load_map(folder / "a.txt"); }, {"a.txt", "neither .npy nor .npz"});
  expect_refused([&] { io::load_map(folder / "none.npz"); }, {"none.npz", "does not exist"});
  const auto with_format = [](std::string text) {
    return [text](std::vector<Member>& members) { find(members, "format.npy").content = npy_text(text); };
  };
  expect_broken(with_format("itspace.online/1"), {"no transport map", "'itspace.online/1'", "'itspace.map/2'"});
  expect_broken(with_format("itspace.map/3"), {"'itspace.map/3'", "reads 'itspace.map/1' and 'itspace.map/2'"});
  expect_broken(with_format("itspace.map/10"), {"'itspace.map/10'", "this version reads"});
  expect_broken([](auto& members) { find(members, "format.npy").content = fixtures::npy_f8("()", {1}); },
                {"'format'", "text without dimensions"});
  expect_broken([](auto& members) { find(members, "format.npy").content = fixtures::npy_of("<U13", "()", "short"); },
                {"'format'", "text without dimensions"});
  expect_broken([](auto& members) { find(members, "kind.npy").content = npy_text("magic"); }, {"'magic'", "monge"});
}

TEST_F(MapFile, BrokenPartsAreRefused) {
  const auto set = [](std::string member, std::string content) {
    return [=](std::vector<Member>& members) { find(members, member).content = content; };
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_broken([](auto& members) { members.erase(members.begin() + 4); }, {"no array named 'core'"});
  expect_broken(set("scalar.npy", fixtures::npy_f8("(1,)", {1})), {"'scalar'", "1 dimensions", "0"});
  expect_broken(set("scalar.npy", fixtures::npy_f8("()", {-1})), {"scalar", "-1", "positive"});
  expect_broken(set("scalar.npy", fixtures::npy_f8("()", {nan})), {"'scalar'", "not finite"});
  expect_broken(set("to_remainder.npy", fixtures::npy_f8("()", {0})), {"remainders", "positive"});
  expect_broken(set("mean_to.npy", fixtures::npy_f8("(2,)", {1, 2})), {"means", "2"});
  expect_broken(set("core.npy", fixtures::npy_f8("(1, 2)", {1, 2})), {"core", "1 x 2"});
  expect_broken(set("basis.npy", fixtures::npy_f8("(9, 1)", {1, 1, 1, 1, 1, 1, 1, 1, 1})), {"core"});
  expect_broken(set("basis.npy", fixtures::npy_f8("(0, 0)", {})), {"basis", "0 x 0"});
  expect_broken(set("samples_to.npy", fixtures::npy_f8("()", {0.5})), {"0.5 samples"});
  expect_broken(set("kept_mean.npy", fixtures::npy_f8("()", {2})), {"kept.mean is 2"});
  expect_broken([](auto& members) { members.pop_back(); }, {"no array named 'kept_covariance'"});
  expect_broken(
      [](auto& members) {
        members.push_back({"scale_to.npy", fixtures::npy_f8("(1,)", {1})});
      },
      {"no array named 'scale_from'"});
  expect_broken(
      [](auto& members) {
        auto& basis = find(members, "basis.npy").content;
        basis[basis.size() - 2] ^= 0x10;  // an exponent bit of the last value
      },
      {"not orthonormal"});
}

// Whatever part is changed, the others contradict it.
TEST_F(MapFile, PartsThatContradictEachOtherAreRefused) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten, MapKind::scale_monge}) {
    const TransportMap::Parts honest = some_map(kind).parts();
    const auto expect_contradiction = [&](const std::function<void(TransportMap::Parts&)>& change,
                                          std::string_view part) {
      TransportMap::Parts parts = honest;
      change(parts);
      const auto path = folder.write("odd.npz", fixtures::zip(members_of(parts)));
      expect_refused([&] { io::load_map(path); }, {"odd.npz", part, "make it again"});
    };
    expect_contradiction([](auto& parts) { parts.core *= 1.01; }, "core contradicts");
    expect_contradiction([](auto& parts) { parts.core = -parts.core; }, "core contradicts");
    expect_contradiction([](auto& parts) { parts.core(0, 1) += 1e-6; }, "core contradicts");
    expect_contradiction([](auto& parts) { std::swap(parts.from_root, parts.to_root); }, "");
    expect_contradiction([](auto& parts) { parts.to_root *= 2; }, "core contradicts");
    expect_contradiction([](auto& parts) { parts.from_root(0, 1) += 0.1; }, "from_root");
    expect_contradiction([](auto& parts) { parts.from_root.setZero(); }, "from_root");
    expect_contradiction([](auto& parts) { parts.scalar *= 1.0001; }, "scalar");
    expect_contradiction([](auto& parts) { parts.from_remainder *= 2; }, "scalar");
    expect_contradiction(
        [](auto& parts) {
          parts.from_remainder *= 1e3;
          parts.to_remainder *= 1e3;
        },
        "below its remainder");
    expect_contradiction(
        [kind](auto& parts) { parts.kind = kind == MapKind::monge ? MapKind::whiten : MapKind::monge; },
        kind == MapKind::scale_monge ? "scale_from" : "core contradicts");
  }
  TransportMap::Parts shift = some_map(MapKind::mean).parts();
  shift.scalar = 2;
  const auto path = folder.write("odd.npz", fixtures::zip(members_of(shift)));
  expect_refused([&] { io::load_map(path); }, {"odd.npz", "scalar"});
}

// What was made here is read here: models of every scale and condition.
TEST_F(MapFile, OwnMapsAgreeWithThemselves) {
  for (const MapKind kind : {MapKind::monge, MapKind::whiten}) {
    for (const double remainder : {1e-10, 1e-6, 1e-2, 1.0}) {
      for (const double scale : {1e-60, 1e-8, 1.0, 1e8, 1e60}) {
        for (const double other : {1e-4, 1.0, 1e4}) {
          LowRankGaussian from = model(9, 3, 1);
          LowRankGaussian to = model(9, 2, 5);
          from.factor *= scale;
          from.remainder = remainder * scale * scale;
          to.factor *= scale * other;
          to.remainder = remainder * scale * scale * other * other;
          const TransportMap map(from, to, kind);
          io::save_map(folder / "own.npz", map);
          ASSERT_NO_THROW(expect_same(io::load_map(folder / "own.npz"), map))
              << name(kind) << " " << remainder << " " << scale << " " << other;
          io::save_map(folder / "own.npz", map.inverse());
          ASSERT_NO_THROW(io::load_map(folder / "own.npz")) << "inverse";
        }
      }
    }
  }
}

TEST_F(MapFile, ATruncatedFileIsRefused) {
  io::save_map(folder / "map.npz", some_map(MapKind::monge));
  const std::string bytes = fixtures::read(folder / "map.npz");
  for (std::size_t size = 1; size < bytes.size(); size += 97) {
    const auto path = folder.write("cut.npz", bytes.substr(0, size));
    expect_refused([&] { io::load_map(path); }, {"cut.npz"});
  }
}

TEST_F(MapFile, AnUnwritablePlaceIsNamed) {
  expect_refused([&] { io::save_map(folder / "none" / "map.npz", some_map(MapKind::monge)); }, {"map.npz", "none"});
}

}  // namespace
