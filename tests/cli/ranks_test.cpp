// SPDX-License-Identifier: Apache-2.0
//
// The program as the ranks of a job: what mpirun starts. The launcher is ITSPACE_MPIRUN; without itspace::mpi the
// program is told by the environment alone that it is one of several, and refuses.
#include "program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace itspace::cli_test {
namespace {

constexpr Index job_dim = 12, samples = 40;

class Ranks : public ProgramTest {
 protected:
  Ranks() { write("x.npy", gaussian(samples, job_dim, 1)); }

  // A line for the shell, with what it prints in out.txt and err.txt. Ranks may be more than processors.
  int in_shell(const std::string& line) const {
    return shell("export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; { " + line + "; } > out.txt 2> err.txt");
  }
#ifdef ITSPACE_MPIRUN
  int job(int ranks, const std::string& arguments) const {
    return in_shell(launcher(ranks) + " '" + program() + "' " + arguments);
  }
  static std::string launcher(int ranks) {
    return ITSPACE_MPIRUN " -n " + std::to_string(ranks);
  }

  // Ranks that run for ever, and a signal to one of them as soon as rank 0 has made a step; the job's exit code.
  int signalled(int ranks, int rank, const std::string& signal, const std::string& more) const {
    // Each rank says its process number before it becomes the program.
    write_bytes("rank.sh", "echo $$ > pid.$OMPI_COMM_WORLD_RANK\nexec '" + program() + "' \"$@\"\n");
    return in_shell(launcher(ranks) + " sh rank.sh align --target x.npy --rank 2 --steps 100000000 --out Y.npy " +
                    more + " & job=$!; until grep -q '^ *3 ' out.txt; do :; done; kill -" + signal + " $(cat pid." +
                    std::to_string(rank) + "); wait $job");
  }
#endif
  std::string out() const {
    return text_of("out.txt");
  }
  std::string err() const {
    return text_of("err.txt");
  }
  // Every objective to 100 eps (tr Sigma + ||Y||^2).
  void expect_same_objectives(const std::string& found_in, const std::string& expected_in) const {
    const Json found = json_of(found_in + ".json"), expected = json_of(expected_in + ".json");
    ASSERT_EQ(found["steps"].size(), expected["steps"].size());
    const double unit =
        2.3e-16 * (expected["target_trace"].get<double>() + array_of(expected_in + ".npy").squaredNorm());
    for (std::size_t k = 0; k < expected["steps"].size(); ++k)
      EXPECT_NEAR(found["steps"][k]["objective"].get<double>(), expected["steps"][k]["objective"].get<double>(),
                  100 * unit);
  }
  std::size_t errors_said() const {
    std::size_t count = 0;
    const std::string text = err(), word = "itspace: error:";
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
  }
};

// Copies that know nothing of each other would overwrite one another's results.
TEST_F(Ranks, ACommandOfOneProcessRefusesToBeStartedInCopies) {
  const auto copy = [&](int rank, const std::string& arguments) {
    return in_shell("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + " itspace " + arguments);
  };
  EXPECT_EQ(copy(0, "distance x.npy x.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"2 copies of `itspace distance`", "leave out mpirun"}));
  EXPECT_EQ(copy(1, "distance x.npy x.npy"), 0);  // the exit code of rank 0 is the job's, and so is its message
  EXPECT_EQ(out() + err(), "");
  EXPECT_EQ(copy(1, "--help"), 0);
  EXPECT_EQ(out() + err(), "");
#ifndef ITSPACE_MPIRUN
  EXPECT_EQ(copy(0, "align --target x.npy --rank 2 --out Y.npy"), 3);
  EXPECT_TRUE(mentions(err(), {"built without MPI", "overwrite", "-DITSPACE_MPI=ON"}));
  EXPECT_FALSE(exists("Y.npy"));
#endif
}

#ifdef ITSPACE_MPIRUN

TEST_F(Ranks, GiveTheResultOfOneProcess) {
  ASSERT_EQ(in_shell("itspace align --target x.npy --rank 3 --steps 4 --out one.npy --trace one.json"), 0);
  for (const int ranks : {2, 3}) {
    ASSERT_EQ(job(ranks, "align --target x.npy --rank 3 --steps 4 --out all.npy --trace all.json"), 0) << err();
    EXPECT_TRUE(mentions(err(), {"spread over " + std::to_string(ranks) + " ranks"}));
    EXPECT_TRUE(mentions(out(), {"Certified: all 4 steps"}));
    expect_same_objectives("all", "one");
    EXPECT_EQ(in_shell("itspace verify all.npy --target x.npy --trace all.json"), 0) << err();
  }
}

// float32; a start, which rank 0 reads; a covariance by its rows, with a ridge.
TEST_F(Ranks, ReadWhatOneProcessReads) {
  write_float("f.npy", gaussian(samples, job_dim, 1));
  ASSERT_EQ(job(2, "align --target f.npy --start x.npy --rank 2 --out F.npy --json"), 0) << err();
  EXPECT_EQ(Json::parse(out())["ranks"], 2);
  write("sigma.npy", power_law(job_dim, 3));
  ASSERT_EQ(job(3, "align --target sigma.npy --target-as covariance --trust --ridge 0.5 --rank 2 --out S.npy"), 0)
      << err();
  EXPECT_TRUE(exists("S.npy"));
}

TEST_F(Ranks, RefuseWhatNeedsOneProcess) {
  EXPECT_EQ(job(2, "align --target x.npy --rank 2 --floor --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"--floor is for one process"}));
  EXPECT_EQ(errors_said(), 1u);
  write("square.npy", power_law(job_dim, 3));
  EXPECT_EQ(job(2, "align --target square.npy --rank 2 --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"12 x 12", "--target-as covariance"}));
  EXPECT_EQ(errors_said(), 1u);
  EXPECT_FALSE(exists("Y.npy"));
}

// Each rank its share of the rows of all files, which end where no rank does.
TEST_F(Ranks, StreamWhatOneProcessHasInMemory) {
  const Matrix x = gaussian(samples, job_dim, 1);
  write("part-1.npy", x.topRows(17));
  write("part-2.npy", x.bottomRows(samples - 17));
  const std::string same = " --rank 3 --steps 4 --out all.npy --trace all.json";
  ASSERT_EQ(in_shell("itspace align --target x.npy --rank 3 --steps 4 --out one.npy --trace one.json"), 0);
  for (const std::string target : {"'part-*.npy'", "part-1.npy part-2.npy", "x.npy --memory 200MiB"}) {
    ASSERT_EQ(job(3, "align --target " + target + same), 0) << err();
    EXPECT_TRUE(mentions(err(), {"40 samples of dimension 12", "streamed", "over 3 ranks", "rank 0 read", "6 sweeps"}))
        << err();
    expect_same_objectives("all", "one");
  }
  // And they go on with its checkpoint.
  const std::string kept = "align --target 'part-*.npy' --checkpoint c.npz --checkpoint-every 2 --resume";
  ASSERT_EQ(in_shell("itspace " + kept + " --rank 3 --steps 4 --out kept.npy --trace kept.json"), 0) << err();
  ASSERT_EQ(job(2, kept + same), 0) << err();
  EXPECT_FALSE(mentions(err(), {"no checkpoint"})) << err();
  expect_same_objectives("all", "kept");
}

TEST_F(Ranks, AStreamThatFailsOnOneEndsAll) {
  Matrix bad = gaussian(samples, job_dim, 1);
  bad(31, 7) = std::nan("");
  write("part-1.npy", bad.topRows(30));
  write("part-2.npy", bad.bottomRows(10));
  EXPECT_EQ(job(3, "align --target 'part-*.npy' --rank 2 --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"on rank 2 of 3: ", "part-2.npy", "row 1, column 7 is nan"})) << err();
  EXPECT_EQ(errors_said(), 1u);
  EXPECT_EQ(job(2, "align --target x.npy --memory 3MiB --rank 2 --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"--memory is 3 MiB", "give --memory"})) << err();
  EXPECT_EQ(errors_said(), 1u);
  write("square.npy", power_law(job_dim, 3));
  EXPECT_EQ(job(2, "align --target square.npy --memory 1GiB --rank 2 --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"square", "--target-as features"})) << err();
  EXPECT_FALSE(exists("Y.npy"));
}

TEST_F(Ranks, ABadValueOfOneEndsAll) {
  Matrix bad = gaussian(samples, job_dim, 1);
  bad(31, 7) = std::nan("");
  write("bad.npy", bad);
  EXPECT_EQ(job(3, "align --target bad.npy --rank 2 --out Y.npy"), 2);
  EXPECT_TRUE(mentions(err(), {"on rank 2 of 3: bad.npy: row 31, column 7 is nan"}));
  EXPECT_EQ(errors_said(), 1u);
  EXPECT_FALSE(exists("Y.npy"));
}

// Each rank in a folder of its own, as on machines that do not share a disk.
TEST_F(Ranks, DifferentFilesEndAll) {
  write_bytes("apart.sh", "cd $OMPI_COMM_WORLD_RANK && exec '" + program() + "' \"$@\"\n");
  const auto apart = [&] { return in_shell(launcher(2) + " sh apart.sh align --target x.npy --rank 2 --out Y.npy"); };
  for (const std::string rank : {"0", "1"}) fs::create_directory(path(rank));
  write("0/x.npy", gaussian(samples, job_dim, 1));
  EXPECT_EQ(apart(), 3);
  EXPECT_TRUE(mentions(err(), {"on rank 1 of 2: ", "x.npy"}));
  EXPECT_EQ(errors_said(), 1u);
  write("1/x.npy", gaussian(samples + 1, job_dim, 1));
  EXPECT_EQ(apart(), 3);
  EXPECT_TRUE(
      mentions(err(), {"on rank 1 of 2: target x.npy is float64 41 x 12, but on rank 0 it is float64 40 x 12"}));
  write("1/x.npy", gaussian(samples, job_dim, 2));
  EXPECT_EQ(apart(), 3);
  EXPECT_TRUE(mentions(err(), {"x.npy has other values than on rank 0"}));
  EXPECT_EQ(errors_said(), 1u);
  EXPECT_FALSE(exists("0/Y.npy"));
}

TEST_F(Ranks, ARankThatDiesEndsAll) {
  EXPECT_NE(signalled(2, 1, "KILL", ""), 0);
  EXPECT_TRUE(mentions(err(), {"signal 9"}));  // the launcher's words: it names the rank
  EXPECT_FALSE(exists("Y.npy"));
}

TEST_F(Ranks, ARankThatHangsEndsAll) {
  EXPECT_EQ(signalled(3, 2, "STOP", "--rank-timeout 1"), 3);
  EXPECT_TRUE(mentions(err(), {"on rank 0 of 3: rank 2 of 3 has not answered for 1 s", "no result was written"}));
  EXPECT_EQ(errors_said(), 1u);
  EXPECT_FALSE(exists("Y.npy"));
}

// Any rank may be the one that is asked; all end after the same step, and the best iterate is written.
TEST_F(Ranks, ASignalToOneStopsAll) {
  EXPECT_EQ(signalled(2, 1, "TERM", ""), 143);
  EXPECT_TRUE(mentions(err(), {"stopped by an interrupt"})) << out();
  EXPECT_TRUE(exists("Y.npy"));
}

// Jobs with checkpoints. The step is short, so that the run has not converged when it is killed.
class KilledRanks : public Ranks {
 protected:
  static std::string arguments(const std::string& checkpoint, const std::string& out) {
    return "align --target x.npy --rank 3 --steps 40 --alpha 0.05 --checkpoint-every 4 --resume --checkpoint " +
           checkpoint + " --out " + out;
  }
  static std::string with_trace(const std::string& number) {
    return arguments("c" + number + ".npz", "Y" + number + ".npy") + " --trace Y" + number + ".json";
  }
  // On one rank: the program without a launcher.
  int go_on(int ranks, const std::string& number) const {
    return ranks == 1 ? in_shell("itspace " + with_trace(number)) : job(ranks, with_trace(number));
  }
  Json untimed(const std::string& number) const {
    Json json = json_of("Y" + number + ".json");
    for (Json& step : json["steps"]) step.erase("seconds");
    return json;
  }
};

// The factor goes to a pipe that nobody reads, so that no job ends before it is killed.
TEST_F(KilledRanks, GoOnWithAnyNumberOfRanks) {
  ASSERT_EQ(job(2, with_trace("")), 0) << err();
  make_pipe("never");
  write_bytes("rank.sh", "echo $$ > pid.$OMPI_COMM_WORLD_RANK\nexec '" + program() + "' \"$@\"\n");
  EXPECT_NE(in_shell(launcher(2) + " sh rank.sh " + arguments("killed", "never") +
                     " & job=$!; until [ -e killed ]; do :; done; kill -KILL $(cat pid.0 pid.1); wait $job"),
            0);
  for (const int ranks : {1, 2, 3}) {
    const std::string number = std::to_string(ranks);
    fs::copy_file(path("killed"), path("c" + number + ".npz"));
    ASSERT_EQ(go_on(ranks, number), 0) << err();
    EXPECT_FALSE(mentions(err(), {"no checkpoint"})) << err();
    expect_same_objectives("Y" + number, "Y");
  }
  EXPECT_EQ(text_of("Y2.npy"), text_of("Y.npy"));
  EXPECT_EQ(untimed("2"), untimed(""));
}

// That of one process too; and all refuse that of another run.
TEST_F(KilledRanks, GoOnWithACheckpointOfOneProcess) {
  ASSERT_EQ(go_on(1, ""), 0) << err();
  fs::copy_file(path("c.npz"), path("c3.npz"));
  ASSERT_EQ(go_on(3, "3"), 0) << err();
  expect_same_objectives("Y3", "Y");
  EXPECT_EQ(job(2, with_trace("") + " --seed 5"), 2);
  EXPECT_TRUE(mentions(err(), {"another run", "seed=0", "seed=5"})) << err();
  EXPECT_EQ(errors_said(), 1u);
}

#endif

}  // namespace
}  // namespace itspace::cli_test
