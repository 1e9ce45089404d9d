// SPDX-License-Identifier: Apache-2.0
//
// No output destroys an input or another output, by whatever name they are reached; every kind of place for every
// output.
#include "program.hpp"

#include <itspace/map_file.hpp>

#include <unistd.h>

#include <map>

namespace itspace::cli_test {
namespace {

using Texts = std::vector<std::string>;

struct Case {
  Texts arguments;
  std::string flag;                           // the output under test comes last
  std::map<std::string, std::string> inputs;  // flag -> file
  bool zip = false;                           // the output is an .npz
};

class Files : public ProgramTest {
 protected:
  Files() {
    write("x.npy", gaussian(9, 5, 2));
    write("other.npy", gaussian(8, 5, 3));
    write("start.npy", gaussian(5, 2, 4));
    write("weights.npy", Matrix::Ones(9, 1));
    io::save_map(path("map.npz"), TransportMap({gaussian(5, 2, 1), gaussian(5, 1, 2), 0.5},
                                               {gaussian(5, 2, 3), gaussian(5, 1, 4), 0.2}));
    fs::create_directory(path("sub"));
  }

  static std::vector<Case> cases() {
    const Texts align{"align", "--target", "x.npy", "--weights", "weights.npy", "--start", "start.npy", "--rank", "2"};
    const std::map<std::string, std::string> align_inputs{
        {"--target", "x.npy"}, {"--weights", "weights.npy"}, {"--start", "start.npy"}};
    const Texts map{"map", "--source", "x.npy", "--target", "other.npy", "--rank", "2"};
    const std::map<std::string, std::string> map_inputs{{"--source", "x.npy"}, {"--target", "other.npy"}};
    return {{align, "--out", align_inputs},
            {with(align, {"--out", "Y.npy"}), "--trace", align_inputs},
            {map, "--out", map_inputs, true},
            {with(map, {"--out", "m.npz"}), "--trace", map_inputs},
            {{"transform", "--map", "map.npz", "--in", "x.npy"}, "--out", {{"--map", "map.npz"}, {"--in", "x.npy"}}}};
  }
  static Texts with(Texts arguments, const Texts& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Every name under which `file` can be reached.
  Texts spellings(const std::string& file) const {
    for (const std::string link : {"link", "chain", "hard"}) fs::remove(path(link));
    fs::create_symlink(file, path("link"));
    fs::create_symlink(path("link"), path("chain"));
    if (exists(file)) fs::create_hard_link(path(file), path("hard"));
    Texts names{file, "./" + file, "sub/../" + file, path(file).string(), "link", "chain"};
    if (exists(file)) names.push_back("hard");
    return names;
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& name : files())
      if (fs::is_regular_file(path(name))) all[name] = text_of(name);
    return all;
  }
  void expect_refused(const Texts& arguments, const Texts& texts) const {
    const auto before = contents();
    const auto refused = run(arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments[0] << " " << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(mentions(refused.err, {"itspace: error: ", "are the same file"}));
    EXPECT_TRUE(mentions(refused.err, texts));
    EXPECT_EQ(contents(), before);
  }
};

TEST_F(Files, NoOutputIsAnInput) {
  for (const Case& one : cases())
    for (const auto& [input_flag, file] : one.inputs)
      for (const std::string& name : spellings(file))
        expect_refused(with(one.arguments, {one.flag, name}), {one.flag + " " + name, input_flag + " " + file});
}

TEST_F(Files, NoTwoOutputsAreOneFile) {
  for (const bool there : {false, true})
    for (const Case& one : {cases()[1], cases()[3]}) {
      const std::string out = one.arguments.back();
      if (there) write_bytes(out, "old");
      for (const std::string& name : spellings(out))
        expect_refused(with(one.arguments, {"--trace", name}), {"--out " + out, "--trace " + name});
    }
}

TEST_F(Files, StandardStreamsAreFilesWhereTheyAreRedirected) {
  const std::string transform = "itspace transform --quiet --map map.npz ";
  const auto before = text_of("x.npy");
  EXPECT_EQ(shell(transform + "--in - --out x.npy < x.npy 2> err"), 2);
  EXPECT_TRUE(mentions(text_of("err"), {"--out x.npy", "--in -"}));
  EXPECT_EQ(shell(transform + "--in x.npy --out - >> x.npy 2> err"), 2);
  EXPECT_EQ(shell(transform + "--in x.npy --out /dev/stdout >> x.npy 2> err"), 2);
  EXPECT_EQ(text_of("x.npy"), before);
  const std::string align = "itspace align --quiet --target x.npy --rank 2 ";
  EXPECT_EQ(shell(align + "--out both --trace /dev/stdout > both 2> err"), 2);
}

TEST_F(Files, NoIterateIsAnInputOrAnotherOutput) {
  fs::create_directory(path("steps"));
  for (const std::string name : {"Y_000.npy", "Y_002.npy", "Y_003.npy"})
    fs::copy_file(path("start.npy"), path("steps/" + name));
  fs::create_symlink("steps/Y_002.npy", path("to_iterate"));
  fs::create_hard_link(path("steps/Y_002.npy"), path("hard_to_iterate"));
  const Texts align{"align", "--target", "x.npy", "--rank", "2", "--steps", "2", "--iterates", "steps"};
  for (const std::string start : {"steps/Y_002.npy", "./steps/../steps/Y_000.npy", "to_iterate", "hard_to_iterate"})
    expect_refused(with(align, {"--out", "Y.npy", "--start", start}), {"--iterates", "--start " + start});
  for (const std::string out : {"steps/Y_002.npy", "steps/Y_001.npy", "to_iterate"})
    expect_refused(with(align, {"--out", out}), {"--iterates", "--out " + out});
  expect_refused(with(align, {"--out", "Y.npy", "--trace", "steps/Y_001.npy"}), {"--iterates", "--trace"});
  // The run does not reach these.
  EXPECT_EQ(run(with(align, {"--out", "steps/best.npy", "--start", "steps/Y_003.npy"})).exit_code, 0);
}

TEST_F(Files, DevicesMayBeNamedTwice) {
  EXPECT_EQ(run({"align", "--target", "x.npy", "--rank", "2", "--out", "/dev/null", "--trace", "/dev/null"}).exit_code,
            0);
  const auto both =
      run({"align", "--target", "x.npy", "--rank", "2", "--quiet", "--out", "/dev/stdout", "--trace", "/dev/stdout"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_TRUE(mentions(both.out, {"NUMPY", "itspace.trace/1"}));
}

TEST_F(Files, EveryPlaceForEveryOutput) {
  write_bytes("old", "old");
  for (const Case& one : cases()) {
    const std::string what = one.arguments[0] + " " + one.flag;
    const auto to = [&](const std::string& place) { return run(with(one.arguments, {one.flag, place, "--quiet"})); };
    EXPECT_EQ(to("/dev/null").exit_code, 0) << what;
    EXPECT_TRUE(fs::is_character_file("/dev/null"));

    auto before = files();
    for (const std::string place : {"sub", "nowhere/file", "x.npy/file"}) {
      const auto refused = to(place);
      EXPECT_EQ(refused.exit_code, 3) << what << " " << refused.err;
      EXPECT_TRUE(mentions(refused.err, {place}));
      EXPECT_EQ(files(), before);
    }

    // Through a link, keeping it and the mode of the old file.
    fs::permissions(path("old"), fs::perms::owner_read | fs::perms::owner_write);
    fs::remove(path("to_old"));
    fs::create_symlink("old", path("to_old"));
    EXPECT_EQ(to("to_old").exit_code, 0) << what;
    EXPECT_TRUE(fs::is_symlink(path("to_old")));
    EXPECT_EQ(fs::status(path("old")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    const std::string written = text_of("old");
    EXPECT_NE(written, "old") << what;

    // A pipe gets the same bytes and stays a pipe.
    if (!exists("pipe")) make_pipe("pipe");
    const pid_t child = begin(with(one.arguments, {one.flag, "pipe", "--quiet"}));
    const std::string piped = drain("pipe");
    EXPECT_EQ(end(child).exit_code, 0) << what;
    EXPECT_TRUE(fs::is_fifo(path("pipe")));
    if (one.flag == "--out") {  // a trace holds seconds
      EXPECT_EQ(piped, written) << what;
    }
    EXPECT_FALSE(piped.empty()) << what;

    if (geteuid() != 0) {
      fs::permissions(path("old"), fs::perms::owner_read);
      EXPECT_EQ(to("old").exit_code, 3) << what;
      EXPECT_EQ(text_of("old"), written) << what;
      fs::permissions(path("old"), fs::perms::owner_read | fs::perms::owner_write);
    }
  }
}

}  // namespace
}  // namespace itspace::cli_test
