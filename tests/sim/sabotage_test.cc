// A checker that has never failed proves nothing: each safety mechanism is taken out, and the
// simulation must notice.
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
  int noticed = 0, runs = 0;
};

// In how many of 200 runs something was noticed.
Tally Noticed(const char* what, Mode mode, const std::function<void(ClusterOptions*)>& sabotage) {
  Tally tally;
  for (const uint64_t seed : Seeds(200)) {
    ClusterOptions options = DrawCluster(seed, mode);
    // Weather in which a missing mechanism can matter at all.
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
  std::printf("figure: %s: noticed in %d of %d runs\n", what, tally.noticed, tally.runs);
  return tally;
}

// In most runs, not in some: a simulation that has become nearly blind fails too. Repeating a
// single seed says nothing about most.
void ExpectNoticed(const char* what, Mode mode,
                   const std::function<void(ClusterOptions*)>& sabotage) {
  const Tally tally = Noticed(what, mode, sabotage);
  if (tally.runs > 1) {
    EXPECT_GE(2 * tally.noticed, tally.runs) << what;
  }
}

TEST(Sabotage, NothingIsNoticedWhenNothingIsBroken) {
  EXPECT_EQ(Noticed("nothing broken", Mode::kSsp, [](ClusterOptions*) {}).noticed, 0);
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

TEST(Sabotage, AdvanceBeforeAcknowledgementIsNoticed) {
  ExpectNoticed("advance before acknowledgement (ssp)", Mode::kSsp,
                [](ClusterOptions* o) { o->advance_early = true; });
  ExpectNoticed("advance before acknowledgement (sync)", Mode::kSync,
                [](ClusterOptions* o) { o->advance_early = true; });
}

}  // namespace
}  // namespace hdps::sim
