// Tests processes that are told to leave alone: the job goes on with others in their places, and no
// step is trained twice.
#include <cstdio>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/mixed.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

constexpr TimeMs kPatienceMs = 60'000;  // Longer than any save takes here.

// Any process leaves, one or several, also the scheduler; nothing else happens.
ClusterOptions DrawLeaves(uint64_t seed) {
  Random random(MixBits(seed) ^ 0x1ea7u);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.outages = 0;
  options.weather = {.loss_percent = 2, .repeat_percent = 2, .delay_ms_max = 10};
  options.slow_worker = -1;
  options.num_servers = 1 + static_cast<uint32_t>(random.Below(3));
  options.num_workers = 1 + static_cast<uint32_t>(random.Below(3));
  options.replicas = static_cast<uint32_t>(random.Below(2) * random.Below(options.num_servers));
  options.steps_per_epoch = 40;
  options.checkpoint_every = random.Below(2) == 0 ? 0 : 3 + random.Below(20);
  options.delta_every = random.Below(3);
  options.dead_after_ms = 4000;
  options.restart_after_ms = 20 + static_cast<TimeMs>(random.Below(1000));
  TimeMs at = 0;
  for (uint64_t left = 1 + random.Below(3); left > 0; --left) {
    at += 300 + static_cast<TimeMs>(random.Below(2500));
    const uint64_t who = random.Below(1 + options.num_servers + options.num_workers);
    Fault leave{.at = at, .kind = Fault::Kind::kLeave, .lasts = kPatienceMs};
    if (who == 0) {
      leave.role = Role::kScheduler;
    } else if (who <= options.num_servers) {
      leave.rank = static_cast<uint32_t>(who - 1);
    } else {
      leave.role = Role::kWorker;
      leave.rank = static_cast<uint32_t>(who - 1 - options.num_servers);
    }
    options.faults.push_back(leave);
  }
  return options;
}

// All members and the scheduler are told to leave at once.
ClusterOptions DrawAllLeave(uint64_t seed) {
  ClusterOptions options = DrawLeaves(seed);
  options.faults.clear();
  const TimeMs at = 300 + static_cast<TimeMs>(seed % 2000);
  const Fault leave{.at = at, .kind = Fault::Kind::kLeave, .lasts = kPatienceMs};
  for (uint32_t s = 0; s < options.num_servers; ++s) {
    options.faults.push_back(leave);
    options.faults.back().rank = s;
  }
  for (uint32_t w = 0; w < options.num_workers; ++w) {
    options.faults.push_back(leave);
    options.faults.back().role = Role::kWorker;
    options.faults.back().rank = w;
  }
  options.faults.push_back(leave);
  options.faults.back().role = Role::kScheduler;
  return options;
}

using Draw = ClusterOptions (*)(uint64_t seed);

struct Figures {
  uint64_t runs = 0, again = 0, leaves = 0, promoted = 0, taken_over = 0;
};

Figures RunAll(const char* what, Draw draw, bool unsaved = false) {
  Figures figures;
  for (const uint64_t seed : Seeds(300)) {
    ClusterOptions options = draw(seed);
    options.scheduler_sabotage.leaves_unsaved = unsaved;
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run(600'000);
    ++figures.runs;
    figures.again += outcome.steps_again > 0;
    figures.leaves += outcome.leaves;
    figures.promoted += outcome.promoted > 0;
    figures.taken_over += outcome.taken_over > 0;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n"
                                << DescribeDraw(options) << "\n"
                                << RepeatCommand(seed);
    if (!unsaved) {
      EXPECT_EQ(outcome.steps_again, 0u) << DescribeDraw(options) << "\n" << RepeatCommand(seed);
    }
    if (testing::Test::HasFailure()) break;
  }
  const auto number = [](uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf(
      "figure: %s: %llu runs, %llu leaves; steps were trained again in %llu, others went on with a "
      "server's rows in %llu, another scheduler took over in %llu\n",
      what, number(figures.runs), number(figures.leaves), number(figures.again),
      number(figures.promoted), number(figures.taken_over));
  return figures;
}

TEST(Leaving, NoStepIsTrainedTwice) {
  const Figures figures = RunAll("processes that leave", DrawLeaves);
  if (figures.runs == 1) return;
  EXPECT_GT(figures.leaves, figures.runs);
  EXPECT_GT(figures.promoted, figures.runs / 50);
  EXPECT_GT(figures.taken_over, figures.runs / 10);
}

TEST(Leaving, AllAtOnceGoOnWhereTheyWere) {
  const Figures figures = RunAll("all leave at once", DrawAllLeave);
  if (figures.runs > 1) {
    EXPECT_GT(figures.leaves, 2 * figures.runs);
  }
}

// One member leaves a job without checkpoints and copies, so all its steps are lost with it.
ClusterOptions DrawCostlyLeave(uint64_t seed) {
  ClusterOptions options = DrawLeaves(seed);
  options.replicas = 0;
  options.checkpoint_every = options.delta_every = 0;
  options.faults.resize(1);
  options.faults[0].at += 500;
  options.faults[0].role = seed % 2 == 0 ? Role::kServer : Role::kWorker;
  options.faults[0].rank = 0;
  return options;
}

TEST(PlantedInLeaves, MembersThatAreLetGoUnsavedAreNoticed) {
  const Figures figures =
      RunAll("members that are let go unsaved", DrawCostlyLeave, /*unsaved=*/true);
  if (figures.runs > 1) {
    EXPECT_GT(figures.again, figures.runs / 2);
  }
}

}  // namespace
}  // namespace hdps::sim
