// Tests jobs that are told to stop while members die: progress is saved, and the next run completes
// it.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "gtest/gtest.h"
#include "tests/sim/mixed.h"
#include "tests/sim/seeds.h"

namespace hdps::sim {
namespace {

TimeMs Between(Random* random, TimeMs least, TimeMs most) {
  return least + static_cast<TimeMs>(random->Below(static_cast<uint64_t>(most - least + 1)));
}

Fault KillOf(const ClusterOptions& options, Random* random, TimeMs at) {
  const uint64_t who = random->Below(1 + options.num_servers + options.num_workers);
  if (who == 0) return {.at = at, .role = Role::kScheduler};
  if (who <= options.num_servers) {
    return {.at = at, .role = Role::kServer, .rank = static_cast<uint32_t>(who - 1)};
  }
  const auto rank = static_cast<uint32_t>(who - 1 - options.num_servers);
  return {.at = at, .role = Role::kWorker, .rank = rank};
}

void ByTime(std::vector<Fault>* faults) { std::ranges::stable_sort(*faults, {}, &Fault::at); }

ClusterOptions DrawLong(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a1u);
  const Mode modes[] = {Mode::kSync, Mode::kSsp, Mode::kAsync};
  ClusterOptions options = DrawCluster(seed, modes[seed % 3]);
  options.outages = 0;
  options.weather = {.loss_percent = 2, .repeat_percent = 2, .delay_ms_max = 10};
  options.slow_worker = -1;
  options.wire = DType::kFp32;  // Tallies are larger than 16 bits can hold.
  options.num_workers = 2;
  options.steps_per_epoch = 60;
  options.checkpoint_every = random.Below(3) == 0 ? 0 : 3 + random.Below(20);
  options.dead_after_ms = Between(&random, 1000, 2000);
  options.restart_after_ms = Between(&random, 50, 1000);
  return options;
}

// Kills one or two members within half a second of the stop, some of which have died before.
ClusterOptions DrawDrain(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a2u);
  ClusterOptions options = DrawLong(seed);
  options.replicas = static_cast<uint32_t>(random.Below(std::min(2u, options.num_servers)));
  options.told_again = random.Below(2) == 0;
  const TimeMs at = Between(&random, 1500, 3000);
  options.faults.push_back({.at = at, .kind = Fault::Kind::kDrain});
  for (uint64_t kills = 1 + random.Below(2); kills > 0; --kills) {
    options.faults.push_back(KillOf(options, &random, at + Between(&random, -400, 100)));
  }
  if (random.Below(2) == 0) {
    options.faults.push_back(KillOf(options, &random, Between(&random, 300, at - 500)));
  }
  ByTime(&options.faults);
  return options;
}

// Stops the job, and lets another run complete it.
Outcome RunTwice(const ClusterOptions& options, bool* drained) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  Outcome outcome = RunToItsEnd(options, files.get(), 120'000);
  *drained = outcome.stopped || outcome.ended_by_fault;
  return outcome;
}

// Kills the whole run in the drain, with its launcher, and starts another run.
Outcome RunAfterDeath(ClusterOptions options, bool* drained) {
  const auto drain = std::ranges::find(options.faults, Fault::Kind::kDrain, &Fault::kind);
  options.faults.push_back(
      {.at = drain->at + 1 + static_cast<TimeMs>(options.seed % 150), .kind = Fault::Kind::kEnd});
  ByTime(&options.faults);
  return RunTwice(options, drained);
}

struct Judged {
  uint64_t bad = 0, runs = 0;
};

// Counts the runs that were bad.
Judged Bad(const char* what, uint64_t count, const std::function<Outcome(uint64_t, bool*)>& run,
           bool broken) {
  uint64_t bad = 0, runs = 0, drained = 0, taken_over = 0, went_back = 0;
  for (const uint64_t seed : Seeds(count)) {
    bool was_drained = false;
    const Outcome outcome = run(seed, &was_drained);
    bad += !outcome.good();
    ++runs;
    drained += was_drained;
    taken_over += outcome.taken_over > 0;
    went_back += outcome.went_back > 0;
    EXPECT_TRUE(broken || outcome.good()) << outcome.Describe() << "\n" << RepeatCommand(seed);
  }
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::printf(
      "figure: %s: %s in %llu of %llu runs; %llu drained, in %llu the job went back, in %llu "
      "another scheduler took over\n",
      what, broken ? "noticed" : "bad", number(bad), number(runs), number(drained),
      number(went_back), number(taken_over));
  return {bad, runs};
}

TEST(Drain, WhoeverDiesWhatWasReachedIsSavedAndTheNextRunEndsIt) {
  Bad(
      "a drain with deaths", 400,
      [](uint64_t seed, bool* drained) { return RunTwice(DrawDrain(seed), drained); }, false);
}

TEST(Drain, AnotherRunForgetsTheStopOfOneThatWasKilled) {
  Bad(
      "killed in a drain", 200,
      [](uint64_t seed, bool* drained) { return RunAfterDeath(DrawDrain(seed), drained); }, false);
}

// No member comes in time, so the job continues with fewer; then the launcher starts the lost one.
ClusterOptions DrawLateReturn(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a3u);
  ClusterOptions options = DrawLong(seed);
  options.num_servers = 2 + static_cast<uint32_t>(random.Below(2));
  options.steps_per_epoch = 300;
  options.epochs = 1;
  options.replace_after_s = 1;
  options.restart_after_ms = options.dead_after_ms + 1500;
  options.faults = {{.at = Between(&random, 500, 1500),
                     .role = Role::kServer,
                     .rank = static_cast<uint32_t>(random.Below(options.num_servers))}};
  return options;
}

// A server with copies is lost, and before it is replaced the next one, so that all go back.
ClusterOptions DrawTwoLosses(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a4u);
  ClusterOptions options = DrawLong(seed);
  options.num_servers = 3;
  options.replicas = 1;
  options.never_fewer = true;
  options.restart_after_ms = options.dead_after_ms + 800;
  const TimeMs at = Between(&random, 500, 1500);
  const auto first = static_cast<uint32_t>(random.Below(3));
  options.faults = {{.at = at, .role = Role::kServer, .rank = first},
                    {.at = at + 500, .role = Role::kServer, .rank = (first + 1) % 3}};
  return options;
}

// A member dies, and another takes its place before its launcher restarts it. The job continues for
// longer than the launcher would wait for its end.
ClusterOptions DrawTakenPlace(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a6u);
  ClusterOptions options = DrawLong(seed);
  options.compute_ms_min = options.compute_ms_max = 350;
  options.dead_after_ms = 1000;
  options.restart_after_ms = 3500;
  Fault kill;
  do {
    kill = KillOf(options, &random, 1000);
  } while (kill.role == Role::kScheduler);
  options.faults = {kill, {.at = 3000, .kind = Fault::Kind::kJoin, .role = kill.role}};
  return options;
}

// A server saves to a slow disk, stands still and is replaced, and continues to write when it
// wakes.
ClusterOptions DrawLateSave(uint64_t seed) {
  Random random(MixBits(seed) ^ 0xd2a5u);
  ClusterOptions options = DrawLong(seed);
  options.mode = Mode::kAsync;
  options.num_servers = 2;
  options.replicas = 1;
  options.steps_per_epoch = 30;
  options.epochs = 1;
  options.checkpoint_every = 2;
  options.compute_ms_min = 100;
  options.compute_ms_max = 200;
  options.recorded = true;  // All go back when the worker is lost.
  const TimeMs at = Between(&random, 2000, 2500);
  Fault slow = {.at = at - 1500, .kind = Fault::Kind::kSlowDisk, .lasts = 1500};
  slow.places = {kServerPlaces};
  options.faults = {slow,
                    {.at = at,
                     .kind = Fault::Kind::kStandstill,
                     .role = Role::kServer,
                     .rank = 0,
                     .lasts = options.dead_after_ms + 1000},
                    {.at = at + options.dead_after_ms + 150, .role = Role::kWorker, .rank = 0}};
  options.restart_after_ms = 1500;
  return options;
}

Outcome RunOnce(const ClusterOptions& options) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  return Cluster(options, files.get()).Run(120'000);
}

using Draw = ClusterOptions (*)(uint64_t seed);

void ExpectQuiet(const char* what, Draw draw) {
  Bad(
      what, 200, [=](uint64_t seed, bool*) { return RunOnce(draw(seed)); }, false);
}
void ExpectNoticed(const char* what, const std::function<Outcome(uint64_t, bool*)>& run) {
  const Judged judged = Bad(what, 200, run, true);
  EXPECT_TRUE(NoticedOften(judged.bad, judged.runs)) << what;
}

TEST(Launchers, WhoIsStartedAgainLateStandsByOrJoins) {
  ExpectQuiet("started again when the job has gone on", DrawLateReturn);
}
TEST(Launchers, WhoFindsItsPlaceTakenStandsBy) {
  ExpectQuiet("a place that is taken", DrawTakenPlace);
}
TEST(Launchers, AViewWaitsForThoseOnTheirWay) { ExpectQuiet("two servers lost", DrawTwoLosses); }
TEST(Launchers, WhoWasReplacedWritesNothingIntoACheckpoint) {
  ExpectQuiet("a save that ends late", DrawLateSave);
}

TEST(PlantedInLaunchers, ARankThatIsRefusedIsNoticed) {
  ExpectNoticed("a rank that is taken is refused", [](uint64_t seed, bool*) {
    ClusterOptions options = DrawLateReturn(seed);
    options.scheduler_sabotage.taken_is_final = true;
    return RunOnce(options);
  });
}
TEST(PlantedInLaunchers, ARefusalThatEndsTheJobIsNoticed) {
  ExpectNoticed("status 2 of a member whose place is taken ends the job", [](uint64_t seed, bool*) {
    ClusterOptions options = DrawTakenPlace(seed);
    options.scheduler_sabotage.taken_is_final = true;
    options.launcher_sabotage.refusal_ends_job = true;
    return RunOnce(options);
  });
}
TEST(PlantedInLaunchers, AViewOfFewerServersIsNoticed) {
  ExpectNoticed("a view of fewer servers does not wait", [](uint64_t seed, bool*) {
    ClusterOptions options = DrawTwoLosses(seed);
    options.scheduler_sabotage.fewer_at_once = true;
    return RunOnce(options);
  });
}
// The job must go back to the very checkpoint that the server was writing; this happens in one run
// of ten.
TEST(PlantedInLaunchers, ASaveOverThatOfASuccessorIsNoticed) {
  const auto run = [](uint64_t seed, bool*) {
    ClusterOptions options = DrawLateSave(seed);
    options.server_sabotage.saves_over = true;
    return RunOnce(options);
  };
  const Judged judged = Bad("a save over a successor's", 200, run, true);
  EXPECT_TRUE(judged.runs == 1 || 33 * judged.bad >= judged.runs);
}
TEST(PlantedInDrains, AStopThatIsKeptIsNoticed) {
  ExpectNoticed("another run keeps the stop", [](uint64_t seed, bool* drained) {
    ClusterOptions options = DrawDrain(seed);
    options.scheduler_sabotage.stop_is_kept = true;
    return RunAfterDeath(options, drained);
  });
}
// Without a checkpoint on the way, everything must be trained again.
ClusterOptions DrawLossInDrain(uint64_t seed) {
  ClusterOptions options = DrawLong(seed);
  options.checkpoint_every = 0;
  options.replicas = 0;
  const TimeMs at = 1500 + static_cast<TimeMs>(seed % 1000);
  options.faults = {{.at = at - 50, .role = Role::kServer, .rank = 0},
                    {.at = at, .kind = Fault::Kind::kDrain}};
  return options;
}
TEST(PlantedInDrains, AStopBehindTheWayBackIsNoticed) {
  ExpectNoticed("a drain stops where it went back to", [](uint64_t seed, bool* drained) {
    ClusterOptions options = DrawLossInDrain(seed);
    options.scheduler_sabotage.stops_anywhere = true;
    return RunTwice(options, drained);
  });
}
TEST(PlantedInDrains, ALauncherThatStartsNobodyAgainIsNoticed) {
  ExpectNoticed("nobody is started again in a drain", [](uint64_t seed, bool* drained) {
    ClusterOptions options = DrawLossInDrain(seed);
    options.launcher_sabotage.none_in_drain = true;
    return RunTwice(options, drained);
  });
}
TEST(PlantedInDrains, AnEndWhileTheJobStandsIsNoticed) {
  ExpectNoticed("a stop while a member is lost ends the job", [](uint64_t seed, bool* drained) {
    ClusterOptions options = DrawLossInDrain(seed);
    options.faults[1].at += options.dead_after_ms + 200;
    options.restart_after_ms = options.dead_after_ms + 1500;
    options.scheduler_sabotage.stop_ends_a_stand = true;
    return RunTwice(options, drained);
  });
}

}  // namespace
}  // namespace hdps::sim
