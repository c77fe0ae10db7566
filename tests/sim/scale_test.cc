// Tests servers that join and leave while the job runs: their shards move, and no step is lost.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

TEST(Scale, ServersComeAndGoAndEveryPushCountsOnce) {
  uint64_t runs = 0, bad = 0, scaled = 0;
  for (const uint64_t seed : Seeds(400)) {
    Random random(MixBits(seed) ^ 0x5ca1eu);
    const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
    ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
    options.steps_per_epoch = 15;
    options.epochs = 3;
    options.outages = 0;
    options.checkpoint_every = random.Below(2) * 7;
    options.replicas = static_cast<uint32_t>(random.Below(3));
    options.num_servers = std::max(options.num_servers, options.replicas + 1);
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Cluster cluster(options, files.get());
    TimeMs now = 300 + static_cast<TimeMs>(random.Below(1500));
    cluster.Run(now);
    if (!cluster.over()) cluster.AddServer();
    cluster.Run(now += static_cast<TimeMs>(random.Below(3000)));
    if (!cluster.over()) cluster.DismissServer();
    const Outcome outcome = cluster.Run();
    ++runs;
    bad += !outcome.good();
    scaled += outcome.scaled;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    EXPECT_EQ(outcome.went_back, 0u) << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  std::printf("figure: scaling: %llu runs, %llu bad; the servers changed %llu times\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bad),
              static_cast<unsigned long long>(scaled));
  if (runs == 1) return;
  EXPECT_GT(scaled, runs / 2);
}

}  // namespace
}  // namespace hdps::sim
