// Attacks a cluster with changed copies of its frames: as a stranger the attacker changes nothing
// of the result, and under a member's peer id it ends no process.
#include <cstdio>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/attacker.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

constexpr TimeMs kForgivenMs = 600'000;

ClusterOptions Draw(uint64_t seed) {
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.weather.damage_percent = 0;
  options.checkpoint_every = seed % 2 == 0 ? 4 : 0;
  options.replicas = seed % 4 == 0 && options.num_servers > 1 ? 1 : 0;
  return options;
}

struct Attacked {
  Outcome outcome;
  uint64_t sent = 0;
};
Attacked RunAttacked(uint64_t seed, AttackAs as) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Cluster cluster(Draw(seed), files.get());
  if (as == AttackAs::kMember) cluster.network().ExpectForgedAddresses();
  const Attacker attacker(&cluster.network(), seed, as);
  Attacked attacked;
  attacked.outcome = cluster.Run(kForgivenMs);
  attacked.sent = attacker.sent();
  return attacked;
}

TEST(Attack, AStrangerChangesNothing) {
  uint64_t runs = 0, frames = 0, sent = 0;
  for (const uint64_t seed : Seeds(200)) {
    const Attacked attacked = RunAttacked(seed, AttackAs::kStranger);
    ++runs;
    frames += attacked.outcome.frames;
    sent += attacked.sent;
    EXPECT_TRUE(attacked.outcome.good()) << attacked.outcome.Describe() << "\n"
                                         << RepeatCommand(seed);
  }
  std::printf("figure: a stranger sends changed copies: %llu runs, %llu frames, %llu of them his\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(frames),
              static_cast<unsigned long long>(sent));
}

// A member's messages are believed, so they decide on the job: the same copies that change nothing
// under a stranger's peer id change nearly every job here.
TEST(Attack, UnderAMembersNumberNoProcessCrashes) {
  uint64_t runs = 0, frames = 0, sent = 0, good = 0;
  for (const uint64_t seed : Seeds(100)) {
    const Attacked attacked = RunAttacked(seed, AttackAs::kMember);
    ++runs;
    frames += attacked.outcome.frames;
    sent += attacked.sent;
    good += attacked.outcome.good();
  }
  std::printf(
      "figure: changed copies under a member's number: %llu runs, %llu frames, %llu of "
      "them changed, no crash; %llu ended as if nothing had been\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(frames),
      static_cast<unsigned long long>(sent), static_cast<unsigned long long>(good));
}

}  // namespace
}  // namespace hdps::sim
