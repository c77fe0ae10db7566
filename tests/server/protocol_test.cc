// Tests a server's answers: steps combined, repeats applied once, strangers and mistakes refused.
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

std::vector<TableRows> Gradient(Key key, float value) { return {{0, 1, {key}, {value}}}; }

TEST(Sync, OneUpdateAStepWhenAllHavePushed) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  EXPECT_EQ(server.Ack(server.Push(1, 0, 0, 1, {{0, 1, {7, 8}, {4, 8}}})).code, Code::kOk);
  EXPECT_EQ(server.Read(0, {7, 8}), (std::vector<float>{0, 0}));  // Held, not applied.
  EXPECT_EQ(server.node().counters().steps, 0u);
  EXPECT_EQ(server.Ack(server.Push(0, 0, 0, 3, {{0, 1, {7}, {12}}, {1, 2, {5}, {2, 4}}})).code,
            Code::kOk);
  // Mean over 4 examples.
  EXPECT_EQ(server.Read(0, {7, 8}), (std::vector<float>{-4, -2}));
  EXPECT_EQ(server.Read(1, {5}), (std::vector<float>{-0.5, -1}));
  EXPECT_EQ(server.node().counters().steps, 1u);
}

TEST(Sync, PullsWaitForTheStepBefore) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  server.Push(0, 0, 0, 1, Gradient(7, 2));
  const uint64_t early = server.Pull(0, 1, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_FALSE(server.TakeReply<PullReply>(early).has_value());
  const uint64_t advance = server.Advance(0, 1);
  EXPECT_EQ(server.TakeReply<AdvanceAck>(advance)->clock, 1);
  EXPECT_FALSE(server.TakeReply<PullReply>(early).has_value());
  server.Push(1, 0, 0, 1, Gradient(7, 4));  // The step is complete without further messages.
  const auto reply = server.TakeReply<PullReply>(early);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->code, Code::kOk);
  EXPECT_EQ(reply->min_clock, 1);
  EXPECT_EQ(reply->rows.As<float>()[0], -3);
  EXPECT_EQ(server.node().counters().staleness_max, 0u);
}

TEST(Sync, MeaningOfGradientsMeanAndCrossBatch) {
  // Two workers with 1 and 3 examples and gradient sums 4 and 24, and a third one without examples.
  struct Case {
    bool mean, cross;
    float change;
  };
  for (const Case& c : {Case{true, false, 28.0f / 4}, Case{false, false, 3 * 28.0f / 4},
                        Case{true, true, (4 + 8) / 3.0f}, Case{false, true, 4 + 8}}) {
    Job job = TestJob(Mode::kSync);
    job.parallel.gradients_mean = c.mean;
    job.parallel.cross_batch = c.cross;
    ServerHarness server({.job = job, .workers = 3});
    server.Push(0, 0, 0, 1, Gradient(7, 4));
    server.Push(1, 0, 0, 3, Gradient(7, 24));
    server.Push(2, 0, 0, 0, {});
    EXPECT_FLOAT_EQ(server.Read(0, {7})[0], -c.change) << c.mean << c.cross;
  }
}

TEST(Sync, RepeatsAreAcknowledgedAndTakenOnce) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.Ack(server.Push(0, 0, 0, 1, Gradient(7, 2))).code, Code::kOk);
  }
  server.Push(1, 0, 0, 1, Gradient(7, 4));
  EXPECT_EQ(server.Read(0, {7})[0], -3);
  // The repeat of an applied push comes late.
  EXPECT_EQ(server.Ack(server.Push(0, 0, 0, 1, Gradient(7, 2))).code, Code::kOk);
  EXPECT_EQ(server.Ack(server.Push(1, 0, 0, 1, Gradient(7, 4))).code, Code::kOk);
  EXPECT_EQ(server.Read(0, {7})[0], -3);
  EXPECT_EQ(server.node().counters().pushes, 2u);
  EXPECT_EQ(server.node().counters().pushes_repeated, 4u);
}

TEST(Sync, ARepeatedStoreUndoesNothing) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  const auto store = [&](uint64_t request_id, uint64_t sequence, Clock clock, float value) {
    server.FromPeer(worker, server.StoreOf(sequence, clock, {{0, 1, {7}, {value}}}), request_id);
    EXPECT_EQ(server.TakeReply<StoreAck>(request_id)->code, Code::kOk);
  };
  store(100, 0, 0, 10);
  server.Push(0, 0, 0, 1, Gradient(7, 2));
  EXPECT_EQ(server.Read(0, {7})[0], 8);
  store(100, 0, 0, 10);  // Late, after the push.
  EXPECT_EQ(server.Read(0, {7})[0], 8);
  store(101, 1, 1, 20);
  store(100, 0, 0, 10);  // Later still, after another store.
  EXPECT_EQ(server.Read(0, {7})[0], 20);
  for (uint64_t sequence = 2; sequence < 20; ++sequence) store(100 + sequence, sequence, 1, 30);
  store(100, 0, 0, 10);  // So late that it is no longer known.
  EXPECT_EQ(server.Read(0, {7})[0], 30);
}

TEST(Sync, ASecondPushOfAStepIsRefusedAndOneFarAheadPutOff) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  server.Push(0, 0, 0, 1, Gradient(7, 2));
  const PushAck second = server.Ack(server.Push(0, 1, 0, 1, Gradient(7, 2)));
  EXPECT_EQ(second.code, Code::kCorruption);
  EXPECT_EQ(second.sequence.value, 1u);
  EXPECT_NE(second.message.find("second push"), std::string::npos);
  EXPECT_EQ(server.Ack(server.Push(0, 2, 8, 1, Gradient(7, 2))).code, Code::kUnavailable);
  EXPECT_EQ(server.Ack(server.Push(0, 2, 7, 1, Gradient(7, 2))).code, Code::kOk);
  const Clock last = std::numeric_limits<Clock>::max() - 1;
  EXPECT_EQ(server.Ack(server.Push(0, 3, last, 1, Gradient(7, 2))).code, Code::kUnavailable);
}

// With two copies a step has three key lists. Their pushes are one update, with the examples of the
// worker counted once.
TEST(Sync, ThePushesOfAStepsKeyListsAreOneUpdate) {
  Job job = TestJob(Mode::kSync);
  job.parallel.interleave_num = 2;
  job.cluster.pushes_in_flight_max = 1;  // Pulls of one step may be as many as its lists.
  ServerHarness server({.job = job, .workers = 2});
  uint64_t request_id = 0;
  const auto push = [&](uint32_t worker, uint64_t sequence, uint32_t part, Key key, float value) {
    PushRequest request = server.PushOf(sequence, 0, 2, Gradient(key, value));
    request.part = part;
    server.FromPeer(ServerHarness::WorkerPeer(worker), request, 1000 + ++request_id);
    return server.Ack(1000 + request_id);
  };
  std::vector<uint64_t> pulls;
  for (uint32_t part = 0; part < 3; ++part) {
    PullRequest pull = server.PullOf(1, PullMode::kTrain, {{0, 1, {7 + part}, {}}});
    pull.part = part;
    for (int repeat = 0; repeat < 2; ++repeat) {  // A repeat takes the place of the first.
      pulls.push_back(2000 + part);
      server.FromPeer(ServerHarness::WorkerPeer(0), pull, pulls.back());
    }
  }
  EXPECT_EQ(push(0, 0, 1, 8, 4).code, Code::kOk);
  EXPECT_EQ(push(0, 0, 1, 8, 4).code, Code::kOk);  // The same once more.
  EXPECT_EQ(push(0, 1, 2, 9, 8).code, Code::kOk);
  const PushAck second = push(0, 2, 1, 8, 4);
  EXPECT_EQ(second.code, Code::kCorruption);
  EXPECT_NE(second.message.find("second push"), std::string::npos);
  const PushAck unknown = push(0, 2, 3, 8, 4);
  EXPECT_EQ(unknown.code, Code::kCorruption);
  EXPECT_NE(unknown.message.find("part 3"), std::string::npos);
  for (const uint32_t part : {0, 1, 2}) push(1, part, part, 7 + part, 4);
  EXPECT_EQ(server.Read(0, {7, 8, 9}), (std::vector<float>{0, 0, 0}));  // Part 0 is missing.
  for (const uint64_t pull : pulls) EXPECT_FALSE(server.TakeReply<PullReply>(pull).has_value());
  EXPECT_EQ(push(0, 2, 0, 7, 12).code, Code::kOk);
  // Means over 4 examples.
  EXPECT_EQ(server.Read(0, {7, 8, 9}), (std::vector<float>{-4, -2, -3}));
  EXPECT_EQ(server.node().counters().steps, 1u);
  EXPECT_EQ(server.node().counters().pushes, 6u);
  const float rows[] = {-4, -2, -3};
  for (uint32_t part = 0; part < 3; ++part) {
    const auto reply = server.TakeReply<PullReply>(2000 + part);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->rows.As<float>()[0], rows[part]);
  }
}

// A push says by which power of two its gradients were multiplied, and no other does.
TEST(Sync, ScaledGradientsAreDividedWhereTheyArrive) {
  for (const bool cross : {false, true}) {
    Job job = TestJob(Mode::kSync);
    job.parallel.cross_batch = cross;
    ServerHarness server({.job = job, .workers = 2});
    PushRequest scaled = server.PushOf(0, 0, 1, Gradient(7, 3 * 1024));
    scaled.scale_exponent = 10;
    server.FromPeer(ServerHarness::WorkerPeer(0), scaled, 900);
    EXPECT_EQ(server.Ack(900).code, Code::kOk);
    server.Push(1, 0, 0, 1, Gradient(7, 5));
    EXPECT_EQ(server.Read(0, {7})[0], -4);
  }
}

TEST(Sync, AnyOrderOfArrivalAndAnyNumberOfServersGiveTheSameBits) {
  // 3 workers, 5 steps, all rules: digests over all servers.
  for (const OptimizerKind kind : {OptimizerKind::kAdagrad, OptimizerKind::kLazyAdam,
                                   OptimizerKind::kFtrl, OptimizerKind::kAdamW}) {
    Job job = TestJob(Mode::kSync);
    job.tables = {TableOf("wide", 1, kind), TableOf("deep", 4, kind)};
    for (TableSpec& table : job.tables) table.init = {InitKind::kUniform, 0.1f};
    std::set<uint64_t> digests;
    for (uint64_t run = 0; run < 6; ++run) {
      const uint32_t servers = 1 + run % 3;
      uint64_t digest = 0;
      for (uint32_t rank = 0; rank < servers; ++rank) {
        ServerHarness server({.job = job, .workers = 3, .servers = servers, .rank = rank});
        Random order(run * 10 + rank);
        for (Clock clock = 0; clock < 5; ++clock) {
          std::vector<uint32_t> workers = {0, 1, 2};
          for (size_t i = 3; i > 1; --i) std::swap(workers[i - 1], workers[order.Below(i)]);
          for (const uint32_t worker : workers) {
            Random data(1000 + static_cast<uint64_t>(clock) * 10 + worker);
            std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}};
            for (Key key = 0; key < 40; ++key) {
              for (TableRows& table : rows) {
                if (data.Below(3) == 0) continue;
                table.keys.push_back(key);
                for (uint32_t i = 0; i < table.row_floats; ++i) {
                  table.floats.push_back(static_cast<float>(data.Normal()));
                }
              }
            }
            server.Push(worker, static_cast<uint64_t>(clock), clock, 1 + worker, rows);
          }
          for (const uint32_t worker : workers) server.Advance(worker, clock + 1);
        }
        digest += server.Digest();
      }
      digests.insert(digest);
    }
    EXPECT_EQ(digests.size(), 1u);
  }
}

// ---- async and ssp.

TEST(Async, IntegerGradientsOfEightWorkersAreAllThere) {
  // 8 workers, 1000 pushes each, repeated and out of order within the window.
  constexpr uint32_t kWorkers = 8, kPushes = 1000, kKeys = 50;
  const std::unique_ptr<Executor> executor = NewTbbExecutor(2);
  ServerHarness server({.job = TestJob(Mode::kAsync), .workers = kWorkers}, nullptr,
                       executor.get());
  Random random(1);
  std::vector<float> expected(kKeys, 0);
  std::vector<uint64_t> next(kWorkers, 0);
  for (uint32_t i = 0; i < kWorkers * kPushes; i += 2) {
    uint32_t worker = static_cast<uint32_t>(random.Below(kWorkers));
    while (next[worker] == kPushes) worker = (worker + 1) % kWorkers;
    // Two in flight: the later one may come first, and each may be repeated.
    std::vector<PushRequest> pushes;
    for (const uint64_t sequence : {next[worker], next[worker] + 1}) {
      const Key a = random.Below(kKeys), b = (a + 1 + random.Below(kKeys - 1)) % kKeys;
      const float x = static_cast<float>(random.Below(9)), y = -static_cast<float>(random.Below(9));
      expected[a] -= x;
      expected[b] -= y;
      pushes.push_back(
          server.PushOf(sequence, static_cast<Clock>(sequence), 1, {{0, 1, {a, b}, {x, y}}}));
    }
    next[worker] += 2;
    if (random.Below(2) == 0) std::swap(pushes[0], pushes[1]);
    for (uint64_t again = random.Below(3); again-- > 0;) pushes.push_back(pushes[random.Below(2)]);
    for (const PushRequest& push : pushes) {
      server.FromPeer(ServerHarness::WorkerPeer(worker), push, 1u << 20);
    }
    for (Outgoing& reply : server.replies()) {
      PushAck ack;
      if (!DecodeMessage(reply.frame, &ack).ok()) continue;
      ASSERT_EQ(ack.code, Code::kOk) << ack.message;
    }
    server.replies().clear();
  }
  std::vector<Key> keys(kKeys);
  for (Key key = 0; key < kKeys; ++key) keys[key] = key;
  EXPECT_EQ(server.Read(0, keys), expected);
  EXPECT_EQ(server.node().counters().pushes, uint64_t{kWorkers} * kPushes);
}

TEST(Async, OneWorkerEqualsSync) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
        OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam, OptimizerKind::kLazyAdam,
        OptimizerKind::kAdamW, OptimizerKind::kFtrl}) {
    for (const bool mean : {true, false}) {
      for (const bool cross : {true, false}) {
        std::set<uint64_t> digests;
        for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
          Job job = TestJob(mode);
          job.parallel.gradients_mean = mean;
          job.parallel.cross_batch = cross;
          job.tables = {TableOf("deep", 3, kind)};
          ServerHarness server({.job = job, .workers = 1});
          Random random(5);
          for (Clock clock = 0; clock < 20; ++clock) {
            TableRows rows{0, 3, {1, 2, 3 + random.Below(5)}, std::vector<float>(9)};
            for (float& value : rows.floats) value = static_cast<float>(random.Normal());
            server.Push(0, static_cast<uint64_t>(clock), clock, 1 + random.Below(7), {rows});
            server.Advance(0, clock + 1);
          }
          digests.insert(server.Digest());
        }
        EXPECT_EQ(digests.size(), 1u) << static_cast<int>(kind) << mean << cross;
      }
    }
  }
}

TEST(Async, APullWaitsForItsOwnPushesThatAreOnTheirWay) {
  ServerHarness server({.job = TestJob(Mode::kAsync), .workers = 2});
  PullRequest pull = server.PullOf(2, PullMode::kTrain, {{0, 1, {7}, {}}});
  pull.pushed = 2;
  server.FromPeer(ServerHarness::WorkerPeer(0), pull, 500);
  server.Push(0, 1, 1, 1, Gradient(7, 1));
  server.Push(1, 0, 0, 1, Gradient(7, 8));  // Another worker's push does not count here.
  server.Push(1, 1, 1, 1, Gradient(7, 8));
  EXPECT_FALSE(server.TakeReply<PullReply>(500).has_value());
  server.Push(0, 0, 0, 1, Gradient(7, 1));
  const auto reply = server.TakeReply<PullReply>(500);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->rows.As<float>()[0], -18);
}

TEST(Ssp, StalenessStaysWithinTheBoundAndIsMeasured) {
  Job job = TestJob(Mode::kSsp);
  job.train.staleness_bound = 2;
  ServerHarness server({.job = job, .workers = 2});
  for (Clock clock = 0; clock <= 2; ++clock) {
    const uint64_t pull = server.Pull(0, clock, PullMode::kTrain, {{0, 1, {7}, {}}});
    EXPECT_TRUE(server.TakeReply<PullReply>(pull).has_value()) << clock;
    server.Push(0, static_cast<uint64_t>(clock), clock, 1, Gradient(7, 1));
    server.Advance(0, clock + 1);
  }
  const uint64_t ahead = server.Pull(0, 3, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_FALSE(server.TakeReply<PullReply>(ahead).has_value());
  EXPECT_EQ(server.Read(0, {7})[0], -3);  // Its own pushes are applied on arrival.
  server.Advance(1, 1);
  EXPECT_TRUE(server.TakeReply<PullReply>(ahead).has_value());
  EXPECT_EQ(server.node().counters().staleness_max, 2u);
}

TEST(Ssp, ARepeatedPullIsAnsweredOnceAndTooManyAreRefused) {
  Job job = TestJob(Mode::kSsp);
  job.train.staleness_bound = 1;
  job.train.lookahead = 0;
  job.cluster.pushes_in_flight_max = 2;
  ServerHarness server({.job = job, .workers = 2});
  const auto pull = [&](Clock clock) {
    return server.PullOf(clock, PullMode::kTrain, {{0, 1, {7}, {}}});
  };
  const PeerId worker = ServerHarness::WorkerPeer(0);
  for (int i = 0; i < 3; ++i) server.FromPeer(worker, pull(5), 70);
  server.FromPeer(worker, pull(4), 71);
  server.FromPeer(worker, pull(3), 72);
  const auto refused = server.TakeReply<PullReply>(72);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, Code::kResourceExhausted);
  server.Advance(0, 5);
  server.Advance(1, 5);
  EXPECT_TRUE(server.TakeReply<PullReply>(70).has_value());  // Exactly one: TakeReply checks it.
  EXPECT_TRUE(server.TakeReply<PullReply>(71).has_value());
}

TEST(Async, APushOlderThanTheWindowIsRefused) {
  Job job = TestJob(Mode::kAsync);
  job.cluster.pushes_in_flight_max = 2;
  ServerHarness server({.job = job, .workers = 1});
  for (const uint64_t sequence : {5u, 6u, 7u}) server.Push(0, sequence, 0, 1, Gradient(7, 1));
  EXPECT_EQ(server.Ack(server.Push(0, 6, 0, 1, Gradient(7, 1))).code, Code::kOk);
  const PushAck ack = server.Ack(server.Push(0, 5, 0, 1, Gradient(7, 1)));
  EXPECT_EQ(ack.code, Code::kCorruption);
  EXPECT_EQ(server.Read(0, {7})[0], -3);
}

// Shows that the checks above can fail.
TEST(Sabotage, IsNoticed) {
  ServerHarness no_ledger(
      {.job = TestJob(Mode::kAsync), .workers = 1, .sabotage = {.no_ledger = true}});
  no_ledger.Push(0, 0, 0, 1, Gradient(7, 1));
  no_ledger.Push(0, 0, 0, 1, Gradient(7, 1));
  EXPECT_EQ(no_ledger.Read(0, {7})[0], -2);

  Job job = TestJob(Mode::kSsp);
  job.train.staleness_bound = 1;
  ServerHarness no_gate({.job = job, .workers = 2, .sabotage = {.no_gate = true}});
  const uint64_t pull = no_gate.Pull(0, 9, PullMode::kTrain, {{0, 1, {7}, {}}});
  EXPECT_TRUE(no_gate.TakeReply<PullReply>(pull).has_value());
  EXPECT_GT(no_gate.node().counters().staleness_max, 1u);
}

}  // namespace
}  // namespace hdps
