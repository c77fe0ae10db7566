// Tests that servers count how old the rows of pushes are as the trace of the network has it.
#include <cstdio>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"
#include "tests/sim/staleness/age_trace.h"

namespace hdps::sim {
namespace {

struct Told {
  Outcome outcome;
  std::string differences;
  uint64_t pushes = 0, old_pushes = 0;
};

Told Simulate(const ClusterOptions& options) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Cluster cluster(options, files.get());
  AgeTrace trace(cluster.network(), options.num_workers);
  Told told{cluster.Run(), "", 0, 0};
  for (const auto& [server, readings] : told.outcome.server_readings) {
    const std::string own = trace.Compare(server, readings);
    if (!own.empty()) told.differences += "server " + std::to_string(server.value) + ": " + own;
  }
  told.pushes = trace.pushes();
  told.old_pushes = trace.old_pushes();
  return told;
}

ClusterOptions Draw(uint64_t seed) {
  ClusterOptions options = DrawCluster(seed, seed % 2 == 0 ? Mode::kAsync : Mode::kSsp);
  options.num_workers = 1 + static_cast<uint32_t>(seed / 2 % 4);
  return options;
}

// Frames are lost, repeated and late, workers are of unlike speeds, and rows are pulled ahead.
TEST(Staleness, IsCountedAsTheTraceHasIt) {
  uint64_t runs = 0, pushes = 0, old_pushes = 0;
  for (const uint64_t seed : Seeds(300)) {
    const Told told = Simulate(Draw(seed));
    ASSERT_TRUE(told.outcome.good()) << told.outcome.Describe() << "\n" << RepeatCommand(seed);
    ASSERT_EQ(told.differences, "") << RepeatCommand(seed);
    ++runs;
    pushes += told.pushes;
    old_pushes += told.old_pushes;
  }
  std::printf("figure: ages: %llu runs, %llu ages of a table in a push, %llu above a clock\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(pushes),
              static_cast<unsigned long long>(old_pushes));
  if (runs == 1) return;
  EXPECT_GT(pushes, 50 * runs);
  EXPECT_GT(old_pushes, runs);
}

TEST(Staleness, AnUpdateTooManyIsNoticed) {
  uint64_t noticed = 0, runs = 0;
  for (const uint64_t seed : Seeds(200)) {
    ClusterOptions options = Draw(seed);
    options.server_sabotage.ages_late = true;
    noticed += !Simulate(options).differences.empty();
    ++runs;
  }
  std::printf("figure: an age off by one update: noticed in %llu of %llu runs\n",
              static_cast<unsigned long long>(noticed), static_cast<unsigned long long>(runs));
  EXPECT_TRUE(NoticedOften(noticed, runs));
}

// A backup never answers a pull, and yet it leaves the same pushes out, divides the same rates and
// has the same compensated gradients. A primary is killed in each run.
TEST(Staleness, BackupsDoWithPushesWhatThePrimaryDoes) {
  uint64_t runs = 0, left_out = 0, promoted = 0;
  for (const uint64_t seed : Seeds(100)) {
    ClusterOptions options = Draw(seed);
    options.outages = 0;
    options.num_servers = 2 + static_cast<uint32_t>(seed % 2);
    options.num_workers = 2 + static_cast<uint32_t>(seed % 3);
    options.slow_worker = 0;
    options.replicas = 1;
    options.max_staleness = 1 + static_cast<uint32_t>(seed % 2);
    options.delay_compensation = 0.01;
    options.staleness_rate = seed % 3 != 0;
    options.dead_after_ms = 1000;
    options.restart_after_ms = 50;
    options.faults = {{.at = 600 + static_cast<TimeMs>(seed % 7) * 100, .role = Role::kServer}};
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run();
    ASSERT_TRUE(outcome.finished) << outcome.Describe() << "\n" << RepeatCommand(seed);
    for (const std::string& problem : outcome.problems) {
      ASSERT_EQ(problem.find("copies"), std::string::npos) << problem << RepeatCommand(seed);
    }
    ++runs;
    left_out += outcome.servers.pushes_too_old > 0;
    promoted += outcome.promoted > 0;
  }
  std::printf(
      "figure: %llu runs with copies, %llu of them left pushes out, %llu promoted a backup\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(left_out),
      static_cast<unsigned long long>(promoted));
  if (runs == 1) return;
  EXPECT_GT(left_out, runs / 4);
  EXPECT_GT(promoted, runs / 4);
}

}  // namespace
}  // namespace hdps::sim
