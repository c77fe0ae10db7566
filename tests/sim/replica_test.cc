// Tests servers that die while others hold copies of their rows: those take over at once, the job
// does not go back, and it ends with the result of an undisturbed one.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

// One server dies in the middle of the job, with any network.
ClusterOptions DrawReplicatedCluster(uint64_t seed) {
  Random random(MixBits(seed) ^ 0x4e91u);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.num_servers = 2 + static_cast<uint32_t>(random.Below(3));
  options.replicas = 1 + static_cast<uint32_t>(options.num_servers > 2 && random.Below(2) == 0);
  options.steps_per_epoch = 10;
  options.epochs = 3;
  options.checkpoint_every = random.Below(2) == 0 ? 0 : 3 + random.Below(8);
  options.outages = 0;
  options.kills = 1;
  options.kill_servers_only = true;
  options.cut_copies_ms = random.Below(3) == 0 ? static_cast<TimeMs>(random.Below(500)) : 0;
  options.restart_after_ms = 20 + static_cast<TimeMs>(random.Below(5000));
  // A member that hears nothing for this long is lost; the network may drop a quarter of all
  // frames.
  options.dead_after_ms = 3500 + static_cast<TimeMs>(random.Below(1500));
  return options;
}

struct Figures {
  uint64_t runs = 0, noticed = 0, promoted = 0, went_back = 0, taken_over = 0;
};

Figures RunAll(uint64_t seeds, const std::function<ClusterOptions(uint64_t)>& draw,
               bool expect_good, bool expect_no_return = false, uint64_t* copied = nullptr) {
  Figures figures;
  for (const uint64_t seed : Seeds(seeds)) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(draw(seed), files.get()).Run(600'000);
    ++figures.runs;
    figures.noticed += !outcome.good();
    figures.promoted += outcome.promoted > 0;
    figures.went_back += outcome.went_back > 0;
    figures.taken_over += outcome.taken_over > 0;
    if (copied != nullptr) *copied += outcome.scaled;
    if (!expect_good) continue;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
    if (expect_no_return) {
      EXPECT_EQ(outcome.went_back, 0u) << RepeatCommand(seed);
    }
    if (testing::Test::HasFailure()) break;
  }
  return figures;
}

void Print(const char* what, const Figures& f) {
  std::printf(
      "figure: %s: %llu runs, %llu bad; in %llu others went on with a lost server's rows, in "
      "%llu the job went back, in %llu another scheduler took over\n",
      what, static_cast<unsigned long long>(f.runs), static_cast<unsigned long long>(f.noticed),
      static_cast<unsigned long long>(f.promoted), static_cast<unsigned long long>(f.went_back),
      static_cast<unsigned long long>(f.taken_over));
}

TEST(Replicas, ALostServerCostsNoStep) {
  const Figures figures = RunAll(400, DrawReplicatedCluster, true, true);
  Print("a lost server with copies", figures);
  if (figures.runs > 1) {
    EXPECT_GT(figures.promoted, figures.runs / 2);
  }
}

// Kills one server after the other, each when the copies of the previous one exist again: in
// another process in its place, or, if none is started, at the remaining ones.
TEST(Replicas, CopiesAreMadeAgain) {
  uint64_t copied = 0;
  const Figures figures = RunAll(
      50,
      [](uint64_t seed) {
        Random random(MixBits(seed) ^ 0x4e93u);
        ClusterOptions options = DrawReplicatedCluster(seed);
        options.kills = 3;
        options.dead_after_ms = 1000;
        options.steps_per_epoch = 150;
        options.wire = DType::kFp32;  // Tallies are larger than 16 bits can hold.
        options.weather.loss_percent = std::min(options.weather.loss_percent, 5u);
        if (random.Below(3) == 0) {
          options.num_servers = 5;
          options.replicas = 1;
          options.restart_after_ms = 0;
          options.replace_after_s = 1;
          options.kill_gap_ms = 6000;
        } else {
          options.restart_after_ms = 20 + static_cast<TimeMs>(random.Below(2000));
          options.kill_gap_ms = 6000;
        }
        return options;
      },
      true, false, &copied);
  Print("a server lost, and lost again", figures);
  std::printf("figure: copies made again %llu times\n", static_cast<unsigned long long>(copied));
  if (figures.runs == 1) return;
  EXPECT_GT(copied, figures.runs / 2);
  // A loss while copies are made goes back to the checkpoint.
  EXPECT_LE(figures.went_back, 1 + figures.runs / 50);
}

// Any member dies or is cut off: the job continues with copies or goes back.
TEST(Replicas, WhoeverDiesEveryPushCountsOnce) {
  const Figures figures = RunAll(
      400,
      [](uint64_t seed) {
        Random random(MixBits(seed) ^ 0x4e92u);
        ClusterOptions options = DrawReplicatedCluster(seed);
        options.outages = static_cast<uint32_t>(random.Below(3));
        options.kills = 1 + static_cast<uint32_t>(random.Below(4));
        options.kill_servers_only = random.Below(3) == 0;
        options.dead_after_ms = 1000 + static_cast<TimeMs>(random.Below(3000));
        return options;
      },
      true);
  Print("anybody lost, with copies", figures);
  if (figures.runs == 1) return;
  EXPECT_GT(figures.promoted, figures.runs / 4);
  EXPECT_GT(figures.went_back, figures.runs / 8);
}

// The scheduler has lost contact with a primary, and a worker has not heard of its successor.
ClusterOptions DrawCutOffCluster(uint64_t seed) {
  ClusterOptions options = DrawReplicatedCluster(seed);
  options.kills = 0;
  options.dead_after_ms = 3000;
  options.weather.loss_percent = 5;
  options.weather.slow_percent = 0;
  options.cut_off_at = 200 + static_cast<TimeMs>(seed * 37 % 800);
  options.compute_ms_max = 60;
  options.steps_per_epoch = 60;
  options.wire = DType::kFp32;  // Tallies are larger than 16 bits can hold.
  options.checkpoint_every = 0;
  return options;
}

TEST(Replicas, APrimaryThatIsCutOffAcknowledgesNothingBehindItsSuccessor) {
  const Figures figures = RunAll(300, DrawCutOffCluster, true, true);
  Print("a primary cut off", figures);
  if (figures.runs > 1) {
    EXPECT_GT(figures.promoted, figures.runs * 9 / 10);
  }
}

void ExpectNoticed(const char* what, const std::function<ClusterOptions(uint64_t)>& draw) {
  const Figures figures = RunAll(200, draw, false);
  std::printf("figure: %s: noticed in %llu of %llu runs\n", what,
              static_cast<unsigned long long>(figures.noticed),
              static_cast<unsigned long long>(figures.runs));
  EXPECT_TRUE(NoticedOften(figures.noticed, figures.runs)) << what;
}

ClusterOptions DrawForSabotage(uint64_t seed, Mode mode) {
  ClusterOptions options = DrawReplicatedCluster(seed);
  options.mode = mode;
  options.staleness_bound = 0;
  options.weather.loss_percent = options.weather.repeat_percent = 15;
  // Many pushes are in flight when a server dies.
  options.pushes_at_once = 8;
  options.steps_per_epoch = 150;
  options.epochs = 1;
  options.checkpoint_every = 0;
  options.slow_worker = -1;
  options.weather.delay_ms_max = 60;
  return options;
}

TEST(Replicas, AcknowledgementBeforeTheCopyIsNoticed) {
  ExpectNoticed("acknowledged before replicated", [](uint64_t seed) {
    ClusterOptions options = DrawForSabotage(seed, Mode::kAsync);
    // Frames that are on their way when their sender dies would still arrive.
    options.cut_copies_ms = 300;
    options.server_sabotage.ack_early = true;
    return options;
  });
}

TEST(Replicas, ACopyWithoutALedgerIsNoticed) {
  ExpectNoticed("a backup without a ledger", [](uint64_t seed) {
    ClusterOptions options = DrawForSabotage(seed, Mode::kAsync);
    options.server_sabotage.backup_forgets = true;
    return options;
  });
}

TEST(Replicas, ABackupThatIgnoresTheViewIsNoticed) {
  ExpectNoticed("a view ignored by the backup", [](uint64_t seed) {
    ClusterOptions options = DrawCutOffCluster(seed);
    // With a second copy the successor numbers its own changes.
    options.mode = Mode::kAsync;
    options.staleness_bound = 0;
    options.num_servers = 3;
    options.replicas = 2;
    options.server_sabotage.view_ignored = true;
    return options;
  });
}

// There are no leases: a replaced primary cannot answer because its backups do not confirm.
TEST(Replicas, APrimaryThatAcknowledgesAloneIsNoticed) {
  ExpectNoticed("a primary that acknowledges alone", [](uint64_t seed) {
    ClusterOptions options = DrawCutOffCluster(seed);
    options.mode = Mode::kAsync;
    options.staleness_bound = 0;
    options.server_sabotage.answers_alone = true;
    return options;
  });
}

}  // namespace
}  // namespace hdps::sim
