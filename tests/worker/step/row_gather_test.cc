// Tests prefetched rows and requests for what is missing, answered in any order by servers of any
// clock.
#include "worker/step/row_gather.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/membership_messages.h"
#include "tests/common/protocol/request_keys.h"
#include "tests/worker/exchange/split_replies.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr uint32_t kServers = 2;
constexpr Clock kTurn = 7;  // Clock of the step.
constexpr uint64_t kList = 12;

Job SmallJob() {
  const auto job = ParseJob(R"({
    "data": {"format": "csv", "train": ["train.csv"],
             "columns": [{"name": "y", "type": "label"}, {"name": "a"}]},
    "model": {"type": "wide_deep", "embedding_dim": 3, "hidden": [4]},
    "parallel": {"dense_exchange": "allreduce"}
  })",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

// Returns the last of the first `applied` steps that changed a key's rows; keys change every 1 to 4
// steps.
Clock ChangedAt(Key key, Clock applied) {
  return applied - applied % static_cast<Clock>(1 + (key >> 20) % 4);
}
float RowOf(Key key, uint32_t table, Clock applied) {
  return static_cast<float>(key >> 20) + 1000.0f * static_cast<float>(ChangedAt(key, applied)) +
         100000.0f * static_cast<float>(table);
}

// Requests wait until the test answers them.
class WaitingNode : public ComputeRequests {
 public:
  struct Asked {
    Ticket ticket;
    std::vector<ServerRequest> requests;
  };
  void Start(Ticket ticket, std::vector<ServerRequest> requests,
             std::vector<ServerRequest> /*then*/) override {
    asked.push_back({ticket, std::move(requests)});
  }
  void Cancel(Ticket ticket) override { cancelled.push_back(ticket); }
  void Answer(const CommandDone&) override {}
  void Report(const Heartbeat&) override {}
  void Put(const KvPut&) override {}
  void Get(const KvGet&) override {}
  bool place_empty() const override { return false; }
  void Fail(Status) override {}

  std::deque<Asked> asked;
  std::vector<Ticket> cancelled;
};

class RowGatherTest : public testing::Test {
 protected:
  RowGatherTest()
      : job_(SmallJob()),
        clock_(NewSystemClock()),
        channel_([this] { channel_.OnTurn(node_, 0); }, *clock_, 60000) {
    Batch batch;
    batch.num_examples = 200;
    batch.labels.assign(batch.num_examples, 1.0f);
    batch.sparse.resize(1);
    batch.sparse[0].offsets.push_back(0);
    for (uint32_t i = 0; i < batch.num_examples; ++i) {
      batch.sparse[0].keys.push_back(uint64_t{i} << 20);
      batch.sparse[0].offsets.push_back(i + 1);
    }
    KeyFinder finder(job_);
    step_.parts.Assign(std::move(batch), 1, finder);
    ShardMap shards;
    for (uint32_t s = 0; s < job_.cluster.shards; ++s) {
      shards.owner.push_back({s * kServers / job_.cluster.shards});
    }
    std::vector<KeysOfTable> tables;
    for (uint32_t t = 0; t + 1 < job_.tables.size(); ++t) {
      tables.push_back({.table = {t},
                        .shard_by = job_.tables[t].shard_by,
                        .row_floats = job_.tables[t].dim,
                        .keys = step_.parts.KeysOf({t})});
    }
    step_.lists.resize(1);
    step_.lists[0].Compute(shards, kServers, tables);
  }

  // Answers the waiting request number `at`, like servers that have applied `applied` steps.
  void Answer(size_t at, Clock applied) {
    const WaitingNode::Asked asked = std::move(node_.asked[at]);
    node_.asked.erase(node_.asked.begin() + static_cast<ptrdiff_t>(at));
    std::vector<Frame> frames;
    for (const ServerRequest& request : asked.requests) {
      PullRequest pull;
      ASSERT_TRUE(DecodeMessage(request.frame, &pull).ok());
      EXPECT_EQ(pull.list, kList);
      frames.push_back(EncodeMessage(ReplyTo(request.server, pull, applied)));
    }
    channel_.OnReplies(asked.ticket, Status(), std::move(frames));
  }

  PullReply ReplyTo(ServerId server, const PullRequest& pull, Clock applied) const {
    const bool repair = pull.mode == PullMode::kRefresh;
    const ServerKeys& its = step_.lists[0].at(server);
    const auto keys = KeysByTable(its.tables, its.keys.As<Key>());
    std::vector<float> rows;
    std::vector<uint32_t> positions;
    PullReply reply = ReplyWith(step_.lists[0], server, Buffer());
    reply.min_clock = applied;
    for (size_t t = 0; t < reply.tables.size(); ++t) {
      TableKeys& table = reply.tables[t];
      const uint32_t count = std::exchange(table.num_keys, 0);
      std::vector<uint32_t> some;
      for (uint32_t i = 0; i < count; ++i) {
        const Key key = keys[t][i];
        if (repair && ChangedAt(key, applied) <= pull.since) continue;
        some.push_back(i);
        rows.insert(rows.end(), table.row_floats, RowOf(key, table.table.value, applied));
      }
      table.num_keys = static_cast<uint32_t>(some.size());
      if (some.size() < count) positions.insert(positions.end(), some.begin(), some.end());
    }
    reply.rows = Buffer::CopyOf(std::span<const float>(rows));
    reply.positions = Buffer::CopyOf(std::span<const uint32_t>(positions));
    return reply;
  }

  // Returns what each waiting request asks of its first server.
  std::vector<PullRequest> Waiting() const {
    std::vector<PullRequest> pulls;
    for (const WaitingNode::Asked& asked : node_.asked) {
      EXPECT_EQ(asked.requests.size(), kServers);
      EXPECT_TRUE(DecodeMessage(asked.requests[0].frame, &pulls.emplace_back()).ok());
    }
    return pulls;
  }

  void ExpectRowsOfTheTurn(RowGather& gather) {
    ASSERT_TRUE(gather.ready());
    ASSERT_TRUE(gather.Take(std::nullopt).ok());
    for (uint32_t t = 0; t + 1 < job_.tables.size(); ++t) {
      const std::span<const Key> keys = step_.parts.KeysOf({t});
      const uint32_t dim = job_.tables[t].dim;
      const RowSpans<const float>& rows = gather.RowsOf({t});
      ASSERT_EQ(rows.size(), keys.size() * dim);
      rows.WithAddresses([&](const auto& at) {
        for (size_t i = 0; i < rows.size(); ++i) {
          const float row = RowOf(keys[i / dim], t, kTurn);
          ASSERT_EQ(at(i / dim * dim)[i % dim], row) << "table " << t << ", key " << i / dim;
        }
      });
    }
  }

  static RowTerms Ahead(Clock pushed) { return {.clock = kTurn, .pushed = pushed, .list = kList}; }
  static RowTerms Turn() { return {.clock = kTurn, .pushed = kTurn, .list = kList}; }

  const Job job_;
  const std::unique_ptr<MonotonicClock> clock_;
  WaitingNode node_;
  NodeChannel channel_;
  PreparedStep step_;
};

TEST_F(RowGatherTest, WhatIsMissingIsAskedForAtOnceAndComesInAnyOrder) {
  for (const size_t first : {0, 1}) {
    RowGather gather(job_, channel_, *clock_);
    gather.PrefetchRows(step_, Ahead(kTurn - 1));
    gather.RequestRows(step_, Turn());
    const std::vector<PullRequest> waiting = Waiting();
    ASSERT_EQ(waiting.size(), 2u);
    EXPECT_EQ(waiting[0].mode, PullMode::kPrefetch);
    EXPECT_EQ(waiting[1].mode, PullMode::kRefresh);
    EXPECT_EQ(waiting[1].since, kTurn - 1);
    Answer(first, first == 0 ? kTurn - 1 : kTurn);
    EXPECT_FALSE(gather.ready());
    Answer(0, first == 0 ? kTurn : kTurn - 1);
    ExpectRowsOfTheTurn(gather);
    EXPECT_TRUE(node_.cancelled.empty());
  }
}

TEST_F(RowGatherTest, RowsStayInTheRepliesWhereNothingIsPutAmongThem) {
  for (const bool in_place : {true, false}) {
    RowGather gather(job_, channel_, *clock_);
    RowTerms turn = Turn();
    turn.in_place = in_place;
    gather.RequestRows(step_, turn);
    Answer(0, kTurn);
    ExpectRowsOfTheTurn(gather);
    EXPECT_EQ(gather.RowsOf({0}).count(), in_place ? kServers : 1u);
  }
}

TEST_F(RowGatherTest, RowsThatAreHereTellThemselvesHowOldTheyAre) {
  RowGather gather(job_, channel_, *clock_);
  gather.PrefetchRows(step_, Ahead(kTurn - 2));
  Answer(0, kTurn - 1);  // A step later than was asked for.
  gather.RequestRows(step_, Turn());
  const std::vector<PullRequest> waiting = Waiting();
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].since, kTurn - 1);
  EXPECT_FALSE(gather.ready());
  Answer(0, kTurn);
  ExpectRowsOfTheTurn(gather);
}

TEST_F(RowGatherTest, OutsideSyncNothingIsAskedForBeforeTheRowsAreHere) {
  Job job = job_;
  job.train.mode = Mode::kAsync;
  RowGather gather(job, channel_, *clock_);
  gather.PrefetchRows(step_, Ahead(kTurn - 2));
  gather.RequestRows(step_, Turn());
  ASSERT_EQ(Waiting().size(), 1u);
  EXPECT_EQ(Waiting()[0].mode, PullMode::kPrefetch);
  EXPECT_FALSE(gather.ready());
  Answer(0, kTurn - 1);
  EXPECT_TRUE(gather.ready());  // The prefetched rows are current.
  EXPECT_TRUE(node_.asked.empty());
  EXPECT_TRUE(gather.Take(std::nullopt).ok());
}

// Restarted servers answer with older rows than requested: what is missing is requested again,
// without waiting for the first reply.
TEST_F(RowGatherTest, OlderRowsThanWereAskedForAreRepairedFromWhereTheyAre) {
  RowGather gather(job_, channel_, *clock_);
  gather.PrefetchRows(step_, Ahead(kTurn - 1));
  gather.RequestRows(step_, Turn());
  Answer(0, kTurn - 3);
  EXPECT_FALSE(gather.ready());
  const std::vector<PullRequest> waiting = Waiting();
  ASSERT_EQ(waiting.size(), 2u);
  EXPECT_EQ(waiting[1].since, kTurn - 3);
  EXPECT_EQ(node_.cancelled, std::vector<Ticket>{node_.asked[0].ticket});
  Answer(1, kTurn);
  ExpectRowsOfTheTurn(gather);
}

}  // namespace
}  // namespace hdps
