// Tests shards that move from busy servers while the job trains: rows are sent ahead, and every
// push counts once.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

ClusterOptions DrawBalanced(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xba1aceu);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.num_servers = 2 + static_cast<uint32_t>(random.Below(3));
  options.steps_per_epoch = 25;
  options.epochs = 2;
  options.outages = 0;
  options.balance_after_s = 1;
  options.checkpoint_every = random.Below(2) * 15;
  options.delta_every = options.checkpoint_every > 0 ? random.Below(2) * 5 : 0;
  options.rows_leave = options.mode == Mode::kSync && random.Below(2) == 0;
  return options;
}

TEST(BalanceSim, ShardsMoveAndEveryPushCountsOnce) {
  uint64_t runs = 0, bad = 0, moved = 0, runs_moved = 0;
  for (const uint64_t seed : Seeds(150)) {
    ClusterOptions options = DrawBalanced(seed);
    options.replicas = static_cast<uint32_t>(seed / 3 % 2);
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ++runs;
    bad += !outcome.good();
    moved += outcome.scaled;
    runs_moved += outcome.scaled > 0;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    EXPECT_EQ(outcome.went_back, 0u) << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  std::printf("figure: balancing: %llu runs, %llu bad; shards moved %llu times, in %llu runs\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bad),
              static_cast<unsigned long long>(moved), static_cast<unsigned long long>(runs_moved));
  if (runs == 1) return;
  EXPECT_GT(runs_moved, runs / 2);
}

TEST(BalanceSim, MembersThatDieMeanwhileCostNoPush) {
  uint64_t runs = 0, bad = 0, moved = 0, killed = 0;
  for (const uint64_t seed : Seeds(150)) {
    Random random(MixBits(seed) ^ 0xdead5u);
    ClusterOptions options = DrawBalanced(seed);
    options.replicas = static_cast<uint32_t>(seed / 3 % 2);
    options.checkpoint_every = 15;
    options.restart_after_ms = 300 + static_cast<TimeMs>(random.Below(2000));
    options.dead_after_ms = 3000;
    options.kills = 1 + static_cast<uint32_t>(random.Below(3));
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ++runs;
    bad += !outcome.good();
    moved += outcome.scaled;
    killed += outcome.restarted;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  std::printf(
      "figure: balancing under kills: %llu runs, %llu bad; shards moved %llu times, %llu kills\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bad),
      static_cast<unsigned long long>(moved), static_cast<unsigned long long>(killed));
}

TEST(BalanceSim, ChangesThatAreNotSentAreNoticed) {
  uint64_t runs = 0, noticed = 0;
  for (const uint64_t seed : Seeds(60)) {
    ClusterOptions options = DrawBalanced(seed);
    options.server_sabotage.ahead_changes_left = true;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ++runs;
    noticed += !outcome.good();
  }
  std::printf("figure: changes behind the copies not sent: noticed in %llu of %llu runs\n",
              static_cast<unsigned long long>(noticed), static_cast<unsigned long long>(runs));
  EXPECT_TRUE(NoticedOften(noticed, runs));
}

}  // namespace
}  // namespace hdps::sim
