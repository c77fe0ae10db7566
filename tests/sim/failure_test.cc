// Tests runs that cannot succeed: all processes must end soon, with the right status and a reason.
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

using testing::HasSubstr;

constexpr TimeMs kSoonMs = 90'000;  // Simulated time; 20 s of silence count as death.

void ExpectAllEnded(const Cluster& cluster, int status, const std::string& reason, uint64_t seed) {
  for (const Node* node : cluster.nodes()) {
    ASSERT_TRUE(node->done()) << RepeatCommand(seed);
    EXPECT_EQ(node->exit_status(), status) << node->exit_reason() << "\n" << RepeatCommand(seed);
  }
  EXPECT_THAT(cluster.nodes().front()->exit_reason(), HasSubstr(reason)) << RepeatCommand(seed);
}

// It is not replaced, and there is no other.
TEST(Failure, TheOnlyServerThatVanishesIsNamedAndEndsTheJob) {
  for (const uint64_t seed : Seeds(100)) {
    ClusterOptions options = DrawCluster(seed, seed % 2 == 0 ? Mode::kSync : Mode::kAsync);
    options.outages = 0;
    options.num_servers = 1;
    options.steps_per_epoch = 1000;
    options.replace_after_s = 5;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Cluster cluster(options, files.get());
    cluster.Run(5000);
    cluster.KillServer(0);
    cluster.Run(kSoonMs);
    ExpectAllEnded(cluster, 3, "server 0 lost", seed);
  }
}

TEST(Failure, AWorkerThatFindsAMistakeEndsTheJobWithItsWords) {
  for (const uint64_t seed : Seeds(100)) {
    ClusterOptions options = DrawCluster(seed, seed % 2 == 0 ? Mode::kSync : Mode::kAsync);
    options.outages = 0;
    options.mistaken_at = 3;
    options.replace_after_s = 1;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    Cluster cluster(options, files.get());
    cluster.Run(kSoonMs);
    ExpectAllEnded(cluster, 2, "worker 0: train.csv:7:2: 'x': expected a number", seed);
  }
}

}  // namespace
}  // namespace hdps::sim
