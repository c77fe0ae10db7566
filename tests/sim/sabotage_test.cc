// Tests the checkers: each safety mechanism is removed, and the simulation must notice.
#include <cstdio>
#include <functional>
#include <memory>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/cluster.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

struct Tally {
  uint64_t noticed = 0, runs = 0;
};

// Counts in how many runs a problem was noticed.
Tally Noticed(const char* what, Mode mode, const std::function<void(ClusterOptions*)>& sabotage) {
  Tally tally;
  for (const uint64_t seed : Seeds(200)) {
    ClusterOptions options = DrawCluster(seed, mode);
    // A network on which a missing mechanism can matter.
    options.weather.loss_percent = 15;
    options.weather.repeat_percent = 15;
    options.epochs = 1;
    if (mode == Mode::kSsp) options.staleness_bound = 1;
    sabotage(&options);
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(options, files.get()).Run(120'000);
    tally.noticed += !outcome.good();
    ++tally.runs;
  }
  std::printf("figure: %s: noticed in %llu of %llu runs\n", what,
              static_cast<unsigned long long>(tally.noticed),
              static_cast<unsigned long long>(tally.runs));
  return tally;
}

// Expects a problem in most runs, so that a simulation that has become nearly blind fails too.
void ExpectNoticed(const char* what, Mode mode,
                   const std::function<void(ClusterOptions*)>& sabotage) {
  const Tally tally = Noticed(what, mode, sabotage);
  EXPECT_TRUE(NoticedOften(tally.noticed, tally.runs)) << what;
}

TEST(Sabotage, NothingIsNoticedWhenNothingIsBroken) {
  EXPECT_EQ(Noticed("nothing broken", Mode::kSsp, [](ClusterOptions*) {}).noticed, 0u);
}

TEST(Sabotage, NoLedgerIsNoticed) {
  ExpectNoticed("no push ledger", Mode::kAsync,
                [](ClusterOptions* o) { o->server_sabotage.no_ledger = true; });
}

TEST(Sabotage, NoGateIsNoticed) {
  ExpectNoticed("no staleness gate (ssp)", Mode::kSsp,
                [](ClusterOptions* o) { o->server_sabotage.no_gate = true; });
  ExpectNoticed("no staleness gate (sync)", Mode::kSync,
                [](ClusterOptions* o) { o->server_sabotage.no_gate = true; });
}

TEST(Sabotage, RowsReadAheadAndNotRepairedAreNoticed) {
  ExpectNoticed("no repair of rows read ahead", Mode::kSync, [](ClusterOptions* o) {
    o->lookahead = 2;
    o->server_sabotage.no_repair = true;
  });
  ExpectNoticed("repair that misses the first step", Mode::kSync, [](ClusterOptions* o) {
    o->lookahead = 1;
    o->since_late = true;
  });
}

// Members join, leave or die in the middle: a rollback, a move or another primary.
// Returns whether a problem was noticed often enough.
bool IsNoticed(const char* what, const std::function<ClusterOptions(uint64_t)>& draw,
               bool broken = true) {
  Tally tally;
  for (const uint64_t seed : Seeds(200)) {
    const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
    const Outcome outcome = Cluster(draw(seed), files.get()).Run(120'000);
    tally.noticed += !outcome.good();
    ++tally.runs;
    EXPECT_TRUE(broken || outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
  }
  std::printf("figure: %s: noticed in %llu of %llu runs\n", what,
              static_cast<unsigned long long>(tally.noticed),
              static_cast<unsigned long long>(tally.runs));
  return NoticedOften(tally.noticed, tally.runs);
}

// A worker dies while many frames are on their way that arrive seconds later, and all go back.
ClusterOptions DrawLateFrames(uint64_t seed) {
  Random random(MixBits(seed) ^ 0x01du);
  ClusterOptions options = DrawCluster(seed, Mode::kAsync);
  options.outages = 0;
  options.num_workers = 3;
  options.pushes_at_once = 8;
  options.wire = DType::kFp32;  // Tallies are larger than 16 bits can hold.
  options.steps_per_epoch = 120;
  options.epochs = 1;
  options.weather = {
      .loss_percent = 5, .repeat_percent = 25, .delay_ms_max = 200, .slow_percent = 25};
  // A dead worker's last frames are later than those of any living one.
  options.recorded = true;
  options.dead_after_ms = 5000;
  options.restart_after_ms = 4500;  // No process may come so early that it is refused as a mistake.
  options.faults = {{.at = 400 + static_cast<TimeMs>(random.Below(500)),
                     .role = Role::kWorker,
                     .rank = static_cast<uint32_t>(random.Below(3))}};
  return options;
}

// Rows are evicted and come again, only changes are saved, and the job goes back to these.
ClusterOptions DrawDeltas(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xde17au);
  ClusterOptions options = DrawCluster(seed, Mode::kSync);
  options.outages = 0;
  options.rows_leave = true;
  options.steps_per_epoch = 40;
  options.epochs = 1;
  options.checkpoint_every = 15;
  options.delta_every = 1;
  options.weather = {.loss_percent = 2, .repeat_percent = 2, .delay_ms_max = 5};
  options.dead_after_ms = 1000;
  options.restart_after_ms = 50;
  for (TimeMs at = 600; at < 12'000; at += 1000 + static_cast<TimeMs>(random.Below(1500))) {
    options.faults.push_back({.at = at, .role = Role::kServer, .rank = 0});
  }
  return options;
}

ClusterOptions DrawMove(uint64_t seed) {
  ClusterOptions options = DrawCluster(seed, seed % 2 == 0 ? Mode::kSync : Mode::kAsync);
  options.outages = 0;
  options.steps_per_epoch = 30;
  options.weather.loss_percent = 5;
  options.faults = {{.at = 700, .kind = Fault::Kind::kScale, .servers = 1}};
  return options;
}

TEST(Sabotage, NothingIsNoticedOfLateFramesWhenNothingIsBroken) {
  IsNoticed("late frames, nothing broken", DrawLateFrames, false);
}

TEST(Sabotage, NothingIsNoticedOfDeltasWhenNothingIsBroken) {
  IsNoticed("deltas of rows that leave, nothing broken", DrawDeltas, false);
}

TEST(Sabotage, NothingIsNoticedOfAMoveWhenNothingIsBroken) {
  IsNoticed("a move, nothing broken", DrawMove, false);
}

TEST(Sabotage, RequestsOfAnOlderViewAreNoticed) {
  EXPECT_TRUE(IsNoticed("requests of an older view served", [](uint64_t seed) {
    ClusterOptions options = DrawLateFrames(seed);
    options.server_sabotage.old_views_served = true;
    return options;
  }));
}

TEST(Sabotage, RowsLeftBehindInAMoveAreNoticed) {
  EXPECT_TRUE(IsNoticed("rows left behind in a move", [](uint64_t seed) {
    ClusterOptions options = DrawMove(seed);
    options.server_sabotage.moved_rows_left = true;
    return options;
  }));
}

TEST(Sabotage, DeltasWithoutDeletionsAreNoticed) {
  EXPECT_TRUE(IsNoticed("a delta without deletions", [](uint64_t seed) {
    ClusterOptions options = DrawDeltas(seed);
    options.server_sabotage.deltas_forget_erased = true;
    return options;
  }));
}

TEST(Sabotage, AdvanceBeforeAcknowledgementIsNoticed) {
  ExpectNoticed("advance before acknowledgement (ssp)", Mode::kSsp,
                [](ClusterOptions* o) { o->advance_early = true; });
  ExpectNoticed("advance before acknowledgement (sync)", Mode::kSync,
                [](ClusterOptions* o) { o->advance_early = true; });
}

}  // namespace
}  // namespace hdps::sim
