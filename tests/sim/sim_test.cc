// Simulates a whole cluster in one thread: whatever the network does, every push counts exactly
// once, no read is staler than the bound, and the job ends.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

Outcome Simulate(const ClusterOptions& options) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  return Cluster(options, files.get()).Run();
}

Mode ModeOf(uint64_t seed) {
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  return modes[seed % 3];
}

// Returns a random time during the run.
TimeMs MomentOf(uint64_t seed) { return 300 + static_cast<TimeMs>(Random(seed).Below(4000)); }

void Print(const char* what, uint64_t of, const char* how, uint64_t count) {
  std::printf("figure: %s: %llu runs, %llu of them %s\n", what, static_cast<unsigned long long>(of),
              static_cast<unsigned long long>(count), how);
}

// Totals over all runs: rare events must happen now and then, or they are not tested.
struct Sum {
  uint64_t runs = 0, bad = 0, frames = 0;
  uint64_t repeated = 0, parked = 0, dropped = 0, staleness_max = 0;
  TimeMs longest_ms = 0;
  void Add(const Outcome& o) {
    ++runs;
    bad += !o.good();
    frames += o.frames;
    repeated += o.servers.pushes_repeated > 0;
    parked += o.servers.pulls_parked > 0;
    dropped += o.servers.dropped > 0;
    staleness_max = std::max(staleness_max, o.servers.staleness_max);
    longest_ms = std::max(longest_ms, o.ended_at);
  }
  void Print(const char* what) const {
    std::printf(
        "figure: %s: %llu runs, %llu bad; %llu frames; longest %lld ms; runs with repeated pushes "
        "%llu, "
        "parked pulls %llu, frames dropped by a server %llu; largest staleness %llu\n",
        what, static_cast<unsigned long long>(runs), static_cast<unsigned long long>(bad),
        static_cast<unsigned long long>(frames), static_cast<long long>(longest_ms),
        static_cast<unsigned long long>(repeated), static_cast<unsigned long long>(parked),
        static_cast<unsigned long long>(dropped), static_cast<unsigned long long>(staleness_max));
  }
};

Sum RunSeeds(const char* what, Mode mode, uint64_t count) {
  Sum sum;
  for (const uint64_t seed : Seeds(count)) {
    const Outcome outcome = Simulate(DrawCluster(seed, mode));
    sum.Add(outcome);
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  sum.Print(what);
  return sum;
}

// The final rows of a sync run have the same bits for every seed and any number of servers, and are
// compared with one expected digest.
TEST(Simulation, Sync) {
  const Sum sum = RunSeeds("sync", Mode::kSync, 1000);
  EXPECT_EQ(sum.staleness_max, 0u);
  if (sum.runs == 1) return;
  EXPECT_GT(sum.parked, 0u);
  EXPECT_GT(sum.repeated, 0u);
}

TEST(Simulation, Ssp) {
  const Sum sum = RunSeeds("ssp", Mode::kSsp, 1000);
  EXPECT_LE(sum.staleness_max, 3u);
  if (sum.runs == 1) return;
  EXPECT_GT(sum.staleness_max, 1u);
  EXPECT_GT(sum.parked, 0u);
  EXPECT_GT(sum.repeated, 0u);
}

TEST(Simulation, Async) {
  const Sum sum = RunSeeds("async", Mode::kAsync, 1000);
  if (sum.runs == 1) return;
  EXPECT_GT(sum.parked, 0u);  // Held until their own push, which was late, had arrived.
  EXPECT_GT(sum.repeated, 0u);
}

TEST(Simulation, SameSeedSameTrace) {
  uint64_t last = 0;
  for (const uint64_t seed : Seeds(20)) {
    const Outcome first = Simulate(DrawCluster(seed, ModeOf(seed)));
    const Outcome second = Simulate(DrawCluster(seed, ModeOf(seed)));
    EXPECT_EQ(first.trace, second.trace) << RepeatCommand(seed);
    EXPECT_EQ(first.frames, second.frames);
    EXPECT_NE(first.trace, last) << "two seeds, one run";
    last = first.trace;
  }
}

// No integer gradient may be rounded away, lost or doubled: 8 workers push 1,000 times each,
// several at once.
TEST(Simulation, EveryIntegerGradientIsThere) {
  for (const uint64_t seed : Seeds(3)) {
    ClusterOptions options;
    options.seed = seed;
    options.mode = Mode::kAsync;
    options.num_workers = 8;
    options.steps_per_epoch = 1000;
    options.epochs = 1;
    options.pushes_at_once = 12;  // More than may be in flight.
    const Outcome outcome = Simulate(options);
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    EXPECT_GT(outcome.servers.pushes_repeated, 100u);
    EXPECT_EQ(outcome.servers.pushes, 8u * 1000u * options.num_servers);
  }
}

// One of four workers computes five times as long. In sync the others wait for it, in async they do
// not. Time is simulated, so the figure does not depend on this machine.
TEST(Simulation, ASlowWorkerHoldsTheOthersOnlyInSync) {
  TimeMs fast_ms[2] = {0, 0};
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    ClusterOptions options;
    options.mode = mode;
    options.num_workers = 4;
    options.steps_per_epoch = 100;
    options.epochs = 1;
    options.slow_worker = 0;
    options.compute_ms_min = options.compute_ms_max = 200;
    options.weather = {
        .loss_percent = 0, .repeat_percent = 0, .delay_ms_max = 1, .slow_percent = 0};
    const Outcome outcome = Simulate(options);
    ASSERT_TRUE(outcome.good()) << outcome.Describe();
    fast_ms[mode == Mode::kAsync] = outcome.train_ms[1];
  }
  std::printf("figure: 100 steps beside a slow worker: sync %lld ms, async %lld ms\n",
              static_cast<long long>(fast_ms[0]), static_cast<long long>(fast_ms[1]));
  EXPECT_GE(fast_ms[0], 3 * fast_ms[1]);
}

// All processes die at some time. A new cluster on the remaining files ends with the rows of an
// uninterrupted run, with any number of servers.
TEST(Simulation, CheckpointKillAllResume) {
  uint64_t finished = 0, loaded = 0;
  for (const uint64_t seed : Seeds(300)) {
    ClusterOptions options = DrawCluster(seed, ModeOf(seed));
    options.checkpoint_every = seed % 2 == 0 ? 2 : 5;
    options.delta_every = seed % 2;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Outcome outcome = Cluster(options, files.get()).Run(MomentOf(seed));
    ASSERT_TRUE(outcome.problems.empty()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (outcome.finished) continue;
    ++options.incarnation;
    options.num_servers = 1 + options.num_servers % 3;
    outcome = Cluster(options, files.get()).Run();
    ASSERT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    ++finished;
    loaded += outcome.loaded;
  }
  Print("killed and finished by a second cluster", finished, "from a checkpoint", loaded);
  EXPECT_TRUE(finished <= 1 || loaded > finished / 4);
}

// Told to stop, a cluster drains: all end with status 0, and another cluster continues.
TEST(Simulation, StopDrainsAndResumes) {
  uint64_t finished = 0, loaded = 0;
  for (const uint64_t seed : Seeds(300)) {
    ClusterOptions options = DrawCluster(seed, ModeOf(seed));
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Cluster first(options, files.get());
    first.Run(MomentOf(seed));
    first.RequestStop(seed);
    Outcome outcome = first.Run();
    ASSERT_TRUE(outcome.finished && outcome.problems.empty()) << outcome.Describe() << "\n"
                                                              << RepeatCommand(seed);
    ++options.incarnation;
    outcome = Cluster(options, files.get()).Run();
    ASSERT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    ++finished;
    loaded += outcome.loaded;
  }
  Print("stopped and finished by a second cluster", finished, "from a checkpoint", loaded);
  EXPECT_TRUE(finished <= 1 || loaded > finished / 4);
}

}  // namespace
}  // namespace hdps::sim
