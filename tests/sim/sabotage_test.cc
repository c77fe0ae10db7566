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

// In how many of 200 runs something was noticed.
int Noticed(const char* what, Mode mode, const std::function<void(ClusterOptions*)>& sabotage) {
  int noticed = 0, runs = 0;
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
    noticed += !outcome.good();
    ++runs;
  }
  std::printf("figure: %s: noticed in %d of %d runs\n", what, noticed, runs);
  return noticed;
}

TEST(Sabotage, NothingIsNoticedWhenNothingIsBroken) {
  EXPECT_EQ(Noticed("nothing broken", Mode::kSsp, [](ClusterOptions*) {}), 0);
}

TEST(Sabotage, NoLedgerIsNoticed) {
  EXPECT_GT(Noticed("no push ledger", Mode::kAsync,
                    [](ClusterOptions* o) { o->server_sabotage.no_ledger = true; }),
            0);
}

TEST(Sabotage, NoGateIsNoticed) {
  EXPECT_GT(Noticed("no staleness gate (ssp)", Mode::kSsp,
                    [](ClusterOptions* o) { o->server_sabotage.no_gate = true; }),
            0);
  EXPECT_GT(Noticed("no staleness gate (sync)", Mode::kSync,
                    [](ClusterOptions* o) { o->server_sabotage.no_gate = true; }),
            0);
}

TEST(Sabotage, RowsReadAheadAndNotRepairedAreNoticed) {
  EXPECT_GT(Noticed("no repair of rows read ahead", Mode::kSync,
                    [](ClusterOptions* o) {
                      o->lookahead = 2;
                      o->server_sabotage.no_repair = true;
                    }),
            0);
  EXPECT_GT(Noticed("repair that misses the first step", Mode::kSync,
                    [](ClusterOptions* o) {
                      o->lookahead = 1;
                      o->since_late = true;
                    }),
            0);
}

TEST(Sabotage, AdvanceBeforeAcknowledgementIsNoticed) {
  EXPECT_GT(Noticed("advance before acknowledgement (ssp)", Mode::kSsp,
                    [](ClusterOptions* o) { o->advance_early = true; }),
            0);
  EXPECT_GT(Noticed("advance before acknowledgement (sync)", Mode::kSync,
                    [](ClusterOptions* o) { o->advance_early = true; }),
            0);
}

}  // namespace
}  // namespace hdps::sim
