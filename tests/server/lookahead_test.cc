// Tests requests that refer to another's key list, prefetched rows, and what is reported of them
// later.
#include <set>
#include <vector>

#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

std::vector<TableRows> Gradient(Key key, float value) { return {{0, 1, {key}, {value}}}; }

TEST(KeyListCache, ARequestMayNameTheKeysOfAnother) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  const std::vector<TableRows> keys = {{0, 1, {7, 8}, {}}, {1, 2, {5}, {}}};
  PullRequest pull = server.PullOf(0, PullMode::kPrefetch, keys);
  pull.list = 3;
  server.FromPeer(worker, pull, 1);
  ASSERT_EQ(server.TakeReply<PullReply>(1)->code, Code::kOk);

  PushRequest push = server.PushOf(0, 0, 1, {{0, 1, {7, 8}, {1, 1}}, {1, 2, {5}, {2, 4}}});
  push.tables.clear();
  push.keys = Buffer();
  push.list = 4;
  server.FromPeer(worker, push, 2);
  EXPECT_EQ(server.Ack(2).code, Code::kNotFound);
  EXPECT_EQ(server.node().counters().pushes, 0u);
  push.list = 3;
  const Buffer gradients = push.gradients;
  push.gradients = Buffer::CopyOf<float>(std::vector<float>{1});
  server.FromPeer(worker, push, 3);
  EXPECT_EQ(server.Ack(3).code, Code::kCorruption);
  push.gradients = gradients;
  server.FromPeer(worker, push, 4);
  EXPECT_EQ(server.Ack(4).code, Code::kOk);
  EXPECT_EQ(server.Read(0, {7, 8}), (std::vector<float>{-1, -1}));
  EXPECT_EQ(server.Read(1, {5}), (std::vector<float>{-2, -4}));

  // The list of another worker is not known here, and rows with their state have no list.
  server.FromPeer(ServerHarness::WorkerPeer(1), push, 5);
  EXPECT_FALSE(server.TakeReply<PushAck>(5).has_value());  // From a stranger.
  PullRequest with_state = server.PullOf(0, PullMode::kWithState, keys);
  with_state.list = 9;
  server.FromPeer(worker, with_state, 6);
  EXPECT_EQ(server.TakeReply<PullReply>(6)->code, Code::kCorruption);
}

TEST(KeyListCache, OnlyTheLastFewAreKept) {
  Job job = TestJob(Mode::kSync);
  job.cluster.pushes_in_flight_max = 2;
  job.train.lookahead = 1;  // 1 + 2 + 2 lists.
  ServerHarness server({.job = job, .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  PullRequest pull = server.PullOf(0, PullMode::kPrefetch, {{0, 1, {7}, {}}});
  for (pull.list = 1; pull.list <= 6; ++pull.list) server.FromPeer(worker, pull, pull.list);
  pull.tables.clear();
  pull.keys = Buffer();
  for (pull.list = 1; pull.list <= 6; ++pull.list) {
    server.replies().clear();
    server.FromPeer(worker, pull, 10 + pull.list);
    const auto reply = server.TakeReply<PullReply>(10 + pull.list);
    EXPECT_EQ(reply->code, pull.list == 1 ? Code::kNotFound : Code::kOk) << pull.list;
  }
}

TEST(Lookahead, ARepairBringsWhatChangedAndTheDenseRows) {
  Job job = TestJob(Mode::kSync);
  job.tables.push_back(TableOf("dense", 2, OptimizerKind::kSgd));
  job.tables.back().dense = true;
  ServerHarness server({.job = job, .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  const auto push = [&](Clock clock, Key wide, Key deep) {
    server.Push(0, static_cast<uint64_t>(clock), clock, 1,
                {{0, 1, {wide}, {1}}, {1, 2, {deep}, {1, 2}}});
  };
  push(0, 7, 5);
  const std::vector<TableRows> keys = {
      {0, 1, {7, 8, 9, 10}, {}}, {1, 2, {5, 6, 7}, {}}, {2, 2, {0, 1}, {}}};
  PullRequest pull = server.PullOf(3, PullMode::kPrefetch, keys);
  pull.list = 1;
  pull.pushed = 1;
  server.FromPeer(worker, pull, 1);  // Answered at once, although steps 1 and 2 are not complete.
  const auto ahead = server.TakeReply<PullReply>(1);
  ASSERT_TRUE(ahead.has_value());
  EXPECT_EQ(ahead->min_clock, 1);
  EXPECT_EQ(ahead->tables.size(), 2u);
  EXPECT_EQ(ahead->rows.size(), (4 + 2 * 3) * sizeof(float));
  EXPECT_EQ(server.node().counters().staleness_max, 0u);

  push(1, 8, 5);
  PullRequest repair = pull;
  repair.mode = PullMode::kRefresh;
  repair.since = ahead->min_clock;
  repair.tables.clear();
  repair.keys = Buffer();
  server.FromPeer(worker, repair, 2);
  EXPECT_FALSE(server.TakeReply<PullReply>(2).has_value());  // The pull waits at the gate.
  push(2, 10, 5);
  const auto repaired = server.TakeReply<PullReply>(2);
  ASSERT_TRUE(repaired.has_value());
  ASSERT_EQ(repaired->tables.size(), 3u);
  EXPECT_EQ(repaired->tables[0].num_keys, 2u);
  EXPECT_EQ(repaired->tables[1].num_keys, 1u);
  EXPECT_EQ(repaired->tables[2].num_keys, 2u);
  const std::span<const Key> order = pull.keys.As<Key>();
  const std::span<const uint32_t> at = repaired->positions.As<uint32_t>();
  ASSERT_EQ(at.size(), 3u);
  EXPECT_EQ((std::set<Key>{order[at[0]], order[at[1]]}), (std::set<Key>{8, 10}));
  EXPECT_LT(at[0], at[1]);
  EXPECT_EQ(order[4 + at[2]], 5u);
  const std::span<const float> rows = repaired->rows.As<float>();
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.end()),
            (std::vector<float>{-1, -1, -3, -6, 0, 0, 0, 0}));
  repair.since = 3;  // No step has changed a row since.
  server.FromPeer(worker, repair, 3);
  EXPECT_EQ(server.TakeReply<PullReply>(3)->positions.size(), 0u);
}

TEST(Lookahead, ARepairBringsWhatWasStored) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 1});
  const PeerId worker = ServerHarness::WorkerPeer(0);
  server.Push(0, 0, 0, 1, Gradient(7, 1));
  const uint64_t ahead = server.Pull(0, 1, PullMode::kPrefetch, {{0, 1, {7, 8}, {}}});
  EXPECT_EQ(server.TakeReply<PullReply>(ahead)->min_clock, 1);
  server.FromPeer(worker, server.StoreOf(0, 1, {{0, 1, {7}, {5}}}), 100);
  PullRequest repair = server.PullOf(1, PullMode::kRefresh, {{0, 1, {7, 8}, {}}});
  repair.since = 1;
  server.FromPeer(worker, repair, 101);
  const auto repaired = server.TakeReply<PullReply>(101);
  ASSERT_TRUE(repaired.has_value());
  ASSERT_EQ(repaired->tables[0].num_keys, 1u);
  EXPECT_EQ(repaired->rows.As<float>()[0], 5);
}

TEST(Lookahead, InSyncRowsAheadWaitForTheStepsTheirWorkerHasPushed) {
  ServerHarness server({.job = TestJob(Mode::kSync), .workers = 2});
  PullRequest ahead = server.PullOf(2, PullMode::kPrefetch, {{0, 1, {7}, {}}});
  ahead.pushed = 1;
  server.FromPeer(ServerHarness::WorkerPeer(0), ahead, 100);
  const uint64_t turn = server.Pull(0, 1, PullMode::kTrain, {{0, 1, {7}, {}}});
  server.Push(0, 0, 0, 1, Gradient(7, 1));
  EXPECT_FALSE(server.TakeReply<PullReply>(100).has_value());
  EXPECT_FALSE(server.TakeReply<PullReply>(turn).has_value());
  server.Push(1, 0, 0, 1, Gradient(7, 1));
  const auto of_turn = server.TakeReply<PullReply>(turn), early = server.TakeReply<PullReply>(100);
  ASSERT_TRUE(of_turn.has_value() && early.has_value());
  EXPECT_EQ(early->min_clock, 1);
  EXPECT_EQ(early->rows.As<float>()[0], of_turn->rows.As<float>()[0]);
  EXPECT_EQ(server.node().counters().pulls_parked, 2u);
}

TEST(Lookahead, InSspRowsAheadWaitForTheClockTheyAreUsedAt) {
  Job job = TestJob(Mode::kSsp);
  job.train.staleness_bound = 1;
  job.train.lookahead = 2;
  ServerHarness server({.job = job, .workers = 2});
  const uint64_t near = server.Pull(0, 1, PullMode::kPrefetch, {{0, 1, {7}, {}}});
  const uint64_t far = server.Pull(0, 2, PullMode::kPrefetch, {{0, 1, {7}, {}}});
  EXPECT_TRUE(server.TakeReply<PullReply>(near).has_value());
  EXPECT_FALSE(server.TakeReply<PullReply>(far).has_value());
  server.Advance(0, 1);
  server.Advance(1, 1);
  EXPECT_TRUE(server.TakeReply<PullReply>(far).has_value());
  EXPECT_EQ(server.node().counters().staleness_max, 1u);
  // The prefetched rows are still right: a repair reports no change.
  server.Push(1, 0, 0, 1, Gradient(7, 1));
  const uint64_t repair = server.Pull(0, 2, PullMode::kRefresh, {{0, 1, {7}, {}}});
  EXPECT_EQ(server.TakeReply<PullReply>(repair)->tables[0].num_keys, 0u);
}

}  // namespace
}  // namespace hdps
