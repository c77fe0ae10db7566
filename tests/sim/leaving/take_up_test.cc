// Tests workers that die while others stay: another process takes up the step in place, nobody goes
// back, and the job ends with the rows of an undisturbed run. Then parts of that are taken away.
#include <cstdio>
#include <functional>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/mixed.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

// Workers die one after the other, at times two at once, and nothing else happens. `often`: so
// often and on such a network that most steps that are taken up have been pushed in part.
ClusterOptions DrawDeaths(uint64_t seed, Mode mode, bool often = false) {
  Random random(MixBits(seed) ^ 0x7a4eu);
  ClusterOptions options = DrawCluster(seed, mode);
  options.outages = 0;
  options.slow_worker = -1;
  options.num_servers = 2 + static_cast<uint32_t>(random.Below(2));
  options.num_workers = 2 + static_cast<uint32_t>(random.Below(2));
  options.replicas = static_cast<uint32_t>(random.Below(2));
  options.steps_per_epoch = 60;
  options.epochs = 2;
  options.wire = DType::kFp32;  // Tallies are larger than 16 bits can hold.
  options.checkpoint_every = random.Below(2) == 0 ? 0 : 25;
  options.weather = {.loss_percent = 5, .repeat_percent = 5, .delay_ms_max = 30, .slow_percent = 5};
  options.dead_after_ms = 1000;
  options.restart_after_ms = 20 + static_cast<TimeMs>(random.Below(600));
  if (often) {
    options.weather = {
        .loss_percent = 15, .repeat_percent = 15, .delay_ms_max = 60, .slow_percent = 5};
    options.num_servers = 3;
    options.dead_after_ms = 2500;  // Or members would be lost that only hear little.
  }
  TimeMs at = 300;
  for (int kills = 0; kills < (often ? 16 : 6); ++kills) {
    at += static_cast<TimeMs>(random.Below(often ? 3500 : 2200));
    Fault kill{.at = at, .role = Role::kWorker};
    kill.rank = static_cast<uint32_t>(random.Below(options.num_workers));
    options.faults.push_back(kill);
    if (random.Below(4) > 0) continue;
    kill.rank = static_cast<uint32_t>(random.Below(options.num_workers));
    options.faults.push_back(kill);
  }
  return options;
}

constexpr Mode kModes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};

struct Figures {
  uint64_t runs = 0, replaced = 0, went_back = 0, bad = 0;
};

using Draw = std::function<ClusterOptions(uint64_t seed)>;

Figures RunAll(const char* what, const Draw& draw, bool broken) {
  Figures figures;
  for (const uint64_t seed : Seeds(200)) {
    const ClusterOptions options = draw(seed);
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run(300'000);
    ++figures.runs;
    figures.replaced += outcome.replaced;
    figures.went_back += outcome.went_back;
    // Where nothing is broken nobody goes back.
    figures.bad += !outcome.good() || outcome.went_back > 0;
    if (broken) continue;
    EXPECT_TRUE(outcome.good()) << outcome.Describe() << "\n"
                                << DescribeDraw(options) << "\n"
                                << RepeatCommand(seed);
    if (testing::Test::HasFailure()) break;
  }
  const auto number = [](uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf("figure: %s: %llu runs, %llu steps taken up in place, %llu ways back, %llu bad\n",
              what, number(figures.runs), number(figures.replaced), number(figures.went_back),
              number(figures.bad));
  return figures;
}

ClusterOptions DrawAnyDeaths(uint64_t seed) { return DrawDeaths(seed, kModes[seed % 3]); }

TEST(TakeUp, WorkersThatDieAreReplacedInPlace) {
  const Figures figures = RunAll("workers that die", DrawAnyDeaths, false);
  if (figures.runs == 1) return;
  EXPECT_GT(figures.replaced, 2 * figures.runs);
  // Who dies while the job saves or loads takes all back: one run in a hundred.
  EXPECT_LE(figures.went_back, figures.runs / 50);
}

TEST(TakeUp, NothingIsNoticedWhenNothingIsBroken) {
  RunAll(
      "workers that die often",
      [](uint64_t seed) { return DrawDeaths(seed, kModes[seed % 3], true); }, false);
}

// Another process comes five minutes later: requests of the others would be late after two.
TEST(TakeUp, ALatePlaceIsStillTakenUpInPlace) {
  for (const Mode mode : kModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    ClusterOptions options = DrawDeaths(/*seed=*/7, mode);
    options.restart_after_ms = 0;
    options.faults = {
        {.at = 700, .kind = Fault::Kind::kLoss, .role = Role::kWorker, .rank = 1},
        {.at = 300'000, .kind = Fault::Kind::kJoin, .role = Role::kWorker, .asks = 1}};
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run(600'000);
    EXPECT_TRUE(outcome.good()) << outcome.Describe();
    EXPECT_EQ(outcome.replaced, 1u);
    EXPECT_EQ(outcome.went_back, 0u);
    EXPECT_GT(outcome.ended_at, 300'000);
  }
}

void ExpectNoticed(const char* what, const Draw& draw) {
  const Figures figures = RunAll(what, draw, true);
  EXPECT_TRUE(NoticedOften(figures.bad, figures.runs)) << what;
}

// Returns a draw of deaths in one mode, broken in one way.
Draw Broken(Mode mode, const std::function<void(ClusterOptions*)>& sabotage) {
  return [=](uint64_t seed) {
    ClusterOptions options = DrawDeaths(seed, mode, true);
    sabotage(&options);
    return options;
  };
}

TEST(TakeUp, RowsReadAnewAreNoticed) {
  ExpectNoticed("who takes a place reads rows anew", Broken(Mode::kSync, [](ClusterOptions* o) {
                  // More servers, of which some have applied the step and others have not.
                  o->num_servers = 5;
                  o->weather.loss_percent = 25;
                  o->server_sabotage.heir_reads_anew = true;
                }));
}

TEST(TakeUp, PushesTakenAgainAreNoticed) {
  ExpectNoticed("pushes of the dead are taken again", Broken(Mode::kAsync, [](ClusterOptions* o) {
                  o->server_sabotage.heir_pushes_again = true;
                }));
}

TEST(TakeUp, PushesLeftOutAreNoticed) {
  ExpectNoticed("a place is told too far", Broken(Mode::kAsync, [](ClusterOptions* o) {
                  o->server_sabotage.stand_too_far = true;
                }));
}

TEST(TakeUp, ForgottenCountsAreNoticed) {
  ExpectNoticed("counts are forgotten", Broken(Mode::kSsp, [](ClusterOptions* o) {
                  o->server_sabotage.counts_forgotten = true;
                }));
}

TEST(TakeUp, PushesBelievedTakenAreNoticed) {
  ExpectNoticed(
      "every push before the last one counts as taken", Broken(Mode::kAsync, [](ClusterOptions* o) {
        o->pushes_at_once = 8;  // The push of a step is lost, and those behind it are not.
        o->server_sabotage.heir_believed = true;
      }));
}

TEST(TakeUp, OrdersBegunAnewAreNoticed) {
  ExpectNoticed("orders are begun anew", Broken(Mode::kSync, [](ClusterOptions* o) {
                  o->scheduler_sabotage.heir_begins_anew = true;
                }));
}

}  // namespace
}  // namespace hdps::sim
