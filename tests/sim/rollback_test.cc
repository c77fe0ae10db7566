// Tests servers and workers that die in the middle of a job: others replace them, the cluster goes
// back to the newest checkpoint, and the job ends with the result of an undisturbed one.
#include <cstdio>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

ClusterOptions DrawFailingCluster(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xfa11u);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.steps_per_epoch = 10;
  options.epochs = 3;
  options.checkpoint_every = random.Below(4) == 0 ? 0 : 3 + random.Below(8);
  options.kills = 1 + static_cast<uint32_t>(random.Below(4));
  options.restart_after_ms = 20 + static_cast<TimeMs>(random.Below(3000));
  options.dead_after_ms = 1000 + static_cast<TimeMs>(random.Below(3000));
  return options;
}

TEST(Rollback, WhoeverDiesEveryPushCountsOnce) {
  uint64_t runs = 0, bad = 0, went_back = 0, restarted = 0, loaded = 0, taken_over = 0;
  for (const uint64_t seed : Seeds(600)) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(DrawFailingCluster(seed), files.get()).Run();
    ++runs;
    bad += !outcome.good();
    went_back += outcome.went_back > 0;
    restarted += outcome.restarted > 0;
    loaded += outcome.loaded;
    taken_over += outcome.taken_over > 0;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  std::printf(
      "figure: rollback: %llu runs, %llu bad; %llu with processes started again, %llu went "
      "back, %llu of them to a checkpoint; in %llu another scheduler took over\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bad),
      static_cast<unsigned long long>(restarted), static_cast<unsigned long long>(went_back),
      static_cast<unsigned long long>(loaded), static_cast<unsigned long long>(taken_over));
  if (runs == 1) return;
  EXPECT_GT(went_back, runs / 2);
  EXPECT_GT(taken_over, runs / 8);
}

// Saves come by the simulated clock, at steps that differ from seed to seed, and the job goes back
// to them as to others.
TEST(Rollback, SavesByTheClockAreAsGood) {
  uint64_t runs = 0, loaded = 0, deltas = 0;
  for (const uint64_t seed : Seeds(200)) {
    ClusterOptions options = DrawFailingCluster(seed);
    options.checkpoint_every = seed % 4 == 0 ? 7 : 0;
    options.save_seconds = seed % 3 == 0 ? 0 : 1 + seed % 3;
    options.delta_seconds = 1;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ++runs;
    loaded += outcome.loaded;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
    const auto names = files->List("/out/checkpoint");
    ASSERT_TRUE(names.ok());
    for (const std::string& name : *names) {
      const Result<Manifest> manifest = ReadManifest(*files, JoinPath("/out/checkpoint", name));
      deltas += manifest.ok() && manifest->is_delta();
    }
  }
  std::printf("figure: saves by the clock: %llu runs, %llu loaded one, %llu deltas are left\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(loaded),
              static_cast<unsigned long long>(deltas));
  if (runs == 1) return;
  EXPECT_GT(loaded, runs / 4);
}

// Patience, the best figure and the rates go back with the job, and are restored with the
// scheduler: it ends after the same epoch, and every epoch is trained at its rate.
TEST(Rollback, EvaluationsEndTheJobBehindTheSameEpoch) {
  uint64_t runs = 0, went_back = 0, taken_over = 0;
  for (const uint64_t seed : Seeds(300)) {
    ClusterOptions options = DrawFailingCluster(seed);
    options.epochs = 8;
    options.judged = true;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ++runs;
    went_back += outcome.went_back > 0;
    taken_over += outcome.taken_over > 0;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
    const Result<FoundCheckpoint> best = OpenCheckpoint(*files, "/out", WhichCheckpoint::kBest);
    ASSERT_TRUE(best.ok()) << best.status().message();
    EXPECT_EQ(best->manifest.watched.best.best_clock, 2 * options.steps_per_epoch);
  }
  std::printf("figure: evaluations decide: %llu runs; %llu went back, in %llu another scheduler\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(went_back),
              static_cast<unsigned long long>(taken_over));
  if (runs == 1) return;
  EXPECT_GT(went_back, runs / 2);
  EXPECT_GT(taken_over, runs / 8);
}

// A lost server is not replaced: the others load its shards and the job continues.
TEST(Rollback, TheServersThatAreLeftTakeOver) {
  uint64_t runs = 0;
  for (const uint64_t seed : Seeds(200)) {
    ClusterOptions options = DrawFailingCluster(seed);
    options.num_servers = 2 + static_cast<uint32_t>(seed % 2);
    options.kills = options.outages = 0;
    options.replace_after_s = 2;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Cluster cluster(options, files.get());
    cluster.Run(300 + static_cast<TimeMs>(seed * 37 % 4000));
    if (cluster.nodes().front()->done()) continue;
    cluster.LoseServer(static_cast<uint32_t>(seed % options.num_servers));
    const Outcome outcome = cluster.Run();
    ++runs;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  std::printf("figure: a server lost for good: %llu runs\n", static_cast<unsigned long long>(runs));
}

}  // namespace
}  // namespace hdps::sim
