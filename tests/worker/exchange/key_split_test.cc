// Tests KeySplit, in both directions, against a plain oracle.
#include "worker/exchange/key_split.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "common/platform/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/protocol/request_keys.h"
#include "tests/worker/exchange/split_replies.h"

namespace hdps {
namespace {

struct Case {
  ShardMap shards;
  uint32_t num_servers = 1;
  std::vector<std::vector<Key>> lists;
  std::vector<std::vector<uint32_t>> choices;  // [lists]: positions of some of the keys.
  std::vector<std::vector<uint32_t>> bounds;   // [tables]: beginnings of shards; empty: not given.
  std::vector<std::vector<uint32_t>> given;    // [tables]: shards of the keys, with kGiven.
  std::vector<KeysOfTable> tables;

  // Returns whether a table uses the key at this position of its list.
  static bool Meant(const KeysOfTable& table, uint32_t position) {
    if (!table.only.has_value()) return true;
    return std::find(table.only->begin(), table.only->end(), position) != table.only->end();
  }
};

uint32_t ShardAt(const KeysOfTable& table, uint32_t position, uint32_t num_shards) {
  if (table.shard_by == ShardBy::kGiven) return table.shard_of_key[position];
  return ShardOf(table.keys[position], table.shard_by, num_shards).value;
}

// Returns where each shard begins in a table's keys; empty if they are not ordered by shard.
std::vector<uint32_t> BoundsOf(const KeysOfTable& table, uint32_t num_shards) {
  std::vector<uint32_t> begin(num_shards + 1);
  uint32_t last = 0;
  for (const Key key : table.keys) {
    const uint32_t shard = ShardOf(key, table.shard_by, num_shards).value;
    if (shard < last) return {};
    last = shard;
    for (uint32_t s = shard; s < num_shards; ++s) ++begin[s + 1];
  }
  return begin;
}

Case RandomCase(uint64_t seed) {
  Random random(seed);
  Case c;
  c.num_servers = 1 + static_cast<uint32_t>(random.Below(5));
  const uint32_t num_shards = 1u << random.Below(7);
  for (uint32_t s = 0; s < num_shards; ++s) {
    c.shards.owner.push_back({static_cast<uint32_t>(random.Below(c.num_servers))});
  }
  // Sorted as by the scheduler, or in any order.
  if (random.Below(2) == 0) std::ranges::sort(c.shards.owner);
  const size_t num_tables = random.Below(4);
  for (size_t t = 0; t < num_tables; ++t) {
    std::set<Key> keys;
    for (uint64_t n = random.Below(200); n > 0; --n) keys.insert(random.Below(1u << 20) << 20);
    c.lists.emplace_back(keys.begin(), keys.end());
    std::vector<Key>& list = c.lists.back();
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random.Below(i)]);
    // As workers know them, or slightly wrong.
    if (random.Below(2) == 0) {
      std::ranges::stable_sort(
          list, {}, [&](Key key) { return ShardOf(key, ShardBy::kKey, num_shards).value; });
      if (list.size() > 1 && random.Below(3) == 0) std::swap(list.front(), list.back());
    }
    c.choices.emplace_back();
    for (uint32_t i = 0; i < list.size(); ++i) {
      if (random.Below(3) == 0) c.choices.back().push_back(i);
    }
  }
  const ShardBy kinds[] = {ShardBy::kKey, ShardBy::kGroup, ShardBy::kRange};
  uint32_t id = 0;
  for (size_t t = 0; t < num_tables; ++t) {
    id += static_cast<uint32_t>(random.Below(3));
    // Some tables share the list of the previous table.
    const size_t list = t > 0 && random.Below(3) == 0 ? t - 1 : t;
    c.tables.push_back({TableId{id++}, kinds[random.Below(3)],
                        1 + static_cast<uint32_t>(random.Below(9)), c.lists[list]});
    if (random.Below(3) == 0) c.tables.back().only = c.choices[list];
    c.given.emplace_back();
    if (random.Below(4) == 0) {
      for (size_t i = 0; i < c.lists[list].size(); ++i) {
        c.given.back().push_back(static_cast<uint32_t>(random.Below(num_shards)));
      }
      c.tables.back().shard_by = ShardBy::kGiven;
      c.tables.back().only.reset();
      c.tables.back().shard_of_key = c.given.back();
      c.bounds.emplace_back();
      continue;
    }
    c.bounds.push_back(random.Below(2) == 0 ? BoundsOf(c.tables.back(), num_shards)
                                            : std::vector<uint32_t>());
    c.tables.back().shard_begin = c.bounds.back();
  }
  return c;
}

// Defines the wire order: sorted by (table, shard, position), server by server.
struct Expected {
  std::vector<Key> keys;
  std::vector<std::tuple<uint32_t, uint32_t, std::vector<uint32_t>>> tables;
  friend bool operator==(const Expected&, const Expected&) = default;
};
Expected Oracle(const Case& c, uint32_t server) {
  Expected expected;
  for (const KeysOfTable& table : c.tables) {
    std::vector<uint32_t> counts;
    uint32_t total = 0;
    for (uint32_t shard = 0; shard < c.shards.num_shards(); ++shard) {
      if (c.shards.owner[shard].value != server) continue;
      counts.push_back(0);
      for (uint32_t i = 0; i < table.keys.size(); ++i) {
        const Key key = table.keys[i];
        if (!Case::Meant(table, i)) continue;
        if (ShardAt(table, i, c.shards.num_shards()) != shard) continue;
        expected.keys.push_back(key);
        ++counts.back();
        ++total;
      }
    }
    if (total > 0) expected.tables.emplace_back(table.table.value, total, counts);
  }
  return expected;
}

Expected Actual(const KeySplit& split, uint32_t server) {
  Expected actual;
  const std::vector<TableKeys>& tables = split.at({server}).tables;
  for (const auto& keys : KeysByTable(tables, split.at({server}).keys.As<Key>())) {
    actual.keys.insert(actual.keys.end(), keys.begin(), keys.end());
  }
  for (const TableKeys& table : tables) {
    const TableKeys& counted = table.has_own_keys() ? table : tables[table.keys_of - 1];
    actual.tables.emplace_back(table.table.value, table.num_keys, counted.shard_counts);
  }
  return actual;
}

// Returns values that identify (table, position, float).
std::vector<std::vector<float>> DistinctValues(const Case& c) {
  std::vector<std::vector<float>> values;
  float next = 1;
  for (const KeysOfTable& table : c.tables) {
    values.emplace_back(table.keys.size() * table.row_floats);
    for (float& v : values.back()) v = next++;
  }
  return values;
}

TEST(KeySplit, IsTheWireOrderForEveryServer) {
  KeySplit split;  // One for all cases: nothing may remain from the previous step.
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = RandomCase(seed);
    split.Compute(c.shards, c.num_servers, c.tables);
    ASSERT_EQ(split.num_servers(), c.num_servers);
    for (uint32_t s = 0; s < c.num_servers; ++s) {
      ASSERT_EQ(Actual(split, s), Oracle(c, s)) << "seed " << seed << " server " << s;
    }
  }
}

TEST(KeySplit, ScatterUndoesGather) {
  KeySplit split;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Case c = RandomCase(seed);
    split.Compute(c.shards, c.num_servers, c.tables);
    std::vector<std::vector<float>> values = DistinctValues(c);
    std::vector<std::vector<float>> back;
    for (const std::vector<float>& v : values) back.emplace_back(v.size(), -1.0f);
    const std::vector<Buffer> sections = SectionsOf(split, Spans<const float>(values));
    const PullPlan pull = PullOf(split);
    for (size_t i = 0; i < pull.asked().size(); ++i) {
      const ServerId server = pull.asked()[i].server;
      const PullReply reply = ReplyWith(split, server, sections[server.value]);
      const Status status = pull.Scatter(i, reply, Spans<float>(back));
      ASSERT_TRUE(status.ok()) << status.message();
    }
    for (size_t t = 0; t < c.tables.size(); ++t) {
      for (size_t f = 0; f < values[t].size(); ++f) {
        const auto position = static_cast<uint32_t>(f / c.tables[t].row_floats);
        const bool meant = Case::Meant(c.tables[t], position);
        ASSERT_EQ(back[t][f], meant ? values[t][f] : -1.0f) << "seed " << seed;
      }
    }
  }
}

// The map has another number of shards than the key finder knew.
TEST(KeySplit, BoundsOfOtherShardsAreNotUsed) {
  std::vector<Key> keys;
  for (Key key = 0; key < 100; ++key) keys.push_back(key);
  std::ranges::stable_sort(keys, {}, [](Key key) { return ShardOf(key, ShardBy::kKey, 8).value; });
  Case c;
  c.shards.owner.assign(4, ServerId{0});
  c.tables = {{TableId{0}, ShardBy::kKey, 3, keys}};
  const std::vector<uint32_t> bounds = BoundsOf(c.tables[0], 8);
  ASSERT_EQ(bounds.size(), 9u);
  c.tables[0].shard_begin = bounds;
  KeySplit split;
  split.Compute(c.shards, 1, c.tables);
  EXPECT_EQ(Actual(split, 0), Oracle(c, 0));
}

TEST(KeySplit, KeysAreWrittenWhereTheyAreSentFrom) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Case c = RandomCase(seed);
    std::vector<Buffer> made(c.num_servers);
    const auto make = [&made](ServerId to, size_t size, std::span<std::byte>* bytes) {
      EXPECT_TRUE(made[to.value].data() == nullptr) << "one section a server";
      return made[to.value] = Buffer::Allocate(size, bytes);
    };
    KeySplit split;
    split.Compute(c.shards, c.num_servers, c.tables, make);
    for (uint32_t s = 0; s < c.num_servers; ++s) {
      EXPECT_EQ(split.at({s}).keys.data(), made[s].data());
      ASSERT_EQ(Actual(split, s), Oracle(c, s)) << "seed " << seed << " server " << s;
    }
    for (const ServerRequest& request : PullPlan().Pull(split, {})) {
      PullRequest pull;
      ASSERT_TRUE(DecodeMessage(request.frame, &pull).ok());
      EXPECT_EQ(pull.keys.data(), made[request.server.value].data()) << "copied on the way";
    }
  }
}

TEST(KeySplit, RequestsCarryTheSplit) {
  const std::vector<Key> keys = {5, 6, 7, 8, 9, 10, 11, 12};
  ShardMap shards;
  for (uint32_t s = 0; s < 8; ++s) shards.owner.push_back({s % 2});
  const std::vector<KeysOfTable> tables = {{TableId{3}, ShardBy::kKey, 2, keys}};
  KeySplit split;
  split.Compute(shards, 2, tables);
  std::vector<std::vector<float>> gradients(1);
  for (const Key key : keys) {
    gradients[0].push_back(static_cast<float>(key));
    gradients[0].push_back(static_cast<float>(key) + 0.5f);
  }
  const std::vector<ServerRequest> pushes =
      PushPlan(split).Requests({Sequence{4}, 9, 100}, Spans<const float>(gradients));
  ASSERT_EQ(pushes.size(), 2u);
  size_t seen = 0;
  for (const ServerRequest& request : pushes) {
    PushRequest push;
    ASSERT_TRUE(DecodeMessage(request.frame, &push).ok());
    EXPECT_EQ(push.sequence, Sequence{4});
    EXPECT_EQ(push.clock, 9);
    EXPECT_EQ(push.num_examples, 100u);
    const auto sent = push.keys.As<Key>();
    const auto values = push.gradients.As<float>();
    ASSERT_EQ(values.size(), sent.size() * 2);
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(values[2 * i], static_cast<float>(sent[i]));
      EXPECT_EQ(values[2 * i + 1], static_cast<float>(sent[i]) + 0.5f);
    }
    seen += sent.size();
  }
  EXPECT_EQ(seen, keys.size());
}

TEST(KeySplit, RepairsNameTheListAndPlaceWhatIsThere) {
  const std::vector<Key> keys = {5, 6, 7, 8}, dense = {0, 1};
  ShardMap shards;
  shards.owner = {ServerId{0}};
  const std::vector<KeysOfTable> tables = {
      {TableId{0}, ShardBy::kKey, 1, keys},
      {TableId{1}, ShardBy::kKey, 2, dense, std::nullopt, /*dense=*/true}};
  KeySplit split;
  split.Compute(shards, 2, tables);  // The second server has nothing.
  PullPlan plan;
  const std::vector<ServerRequest> ahead = plan.Pull(split, {4, PullMode::kPrefetch, 3, 17});
  ASSERT_EQ(ahead.size(), 1u);
  const std::vector<Clock> since = {3, kNotRead};
  const std::vector<ServerRequest> repairs = plan.Repair(split, {4, 4, 17, since, true});
  ASSERT_EQ(repairs.size(), 1u);
  PullRequest named, whole;
  ASSERT_TRUE(DecodeMessage(repairs[0].frame, &named).ok());
  ASSERT_TRUE(repairs[0].whole && DecodeMessage(*repairs[0].whole, &whole).ok());
  EXPECT_TRUE(named.tables.empty() && named.keys.empty());
  EXPECT_EQ(whole.tables.size(), 2u);
  for (const PullRequest& request : {named, whole}) {
    EXPECT_EQ(request.mode, PullMode::kRefresh);
    EXPECT_EQ(request.list, 17u);
    EXPECT_EQ(request.since, 3);
  }
  // Without prefetched rows: the keys, and everything.
  const std::vector<Clock> never = {kNotRead, kNotRead};
  const std::vector<ServerRequest> pulls = plan.Repair(split, {4, 4, 17, never, true});
  ASSERT_TRUE(pulls.size() == 1 && DecodeMessage(pulls[0].frame, &whole).ok());
  EXPECT_EQ(whole.mode, PullMode::kTrain);
  EXPECT_EQ(whole.tables.size(), 2u);

  PullReply reply;
  reply.tables = {{TableId{0}, 2, 1, {}}, {TableId{1}, 2, 2, {}}};
  reply.rows = Buffer::CopyOf<float>(std::vector<float>{1, 2, 3, 4, 5, 6});
  reply.positions = Buffer::CopyOf<uint32_t>(std::vector<uint32_t>{1, 3});
  std::vector<std::vector<float>> to = {std::vector<float>(4, -1), std::vector<float>(4, -1)};
  const auto scatter = [&](const PullReply& got) { return plan.Scatter(0, got, Spans<float>(to)); };
  EXPECT_EQ(scatter(reply).code(), Code::kCorruption) << "all rows were asked for";
  plan.Repair(split, {4, 4, 17, since, true});
  for (const std::vector<uint32_t>& wrong :
       std::vector<std::vector<uint32_t>>{{1}, {1, 4}, {0, 1, 2}}) {
    PullReply bad = reply;
    bad.positions = Buffer::CopyOf<uint32_t>(wrong);
    EXPECT_EQ(scatter(bad).code(), Code::kCorruption);
  }
  EXPECT_EQ(to[0], std::vector<float>(4, -1));
  const auto of = split.at({0}).keys.As<Key>();
  ASSERT_TRUE(scatter(reply).ok());
  for (size_t i = 0; i < 4; ++i) {
    const auto place =
        static_cast<size_t>(std::find(keys.begin(), keys.end(), of[i]) - keys.begin());
    EXPECT_EQ(to[0][place], i == 1 ? 1 : i == 3 ? 2 : -1);
  }
  EXPECT_EQ(std::set<float>(to[1].begin(), to[1].end()), (std::set<float>{3, 4, 5, 6}));
}

TEST(KeySplit, AServerWithoutKeysIsPushedToButNotPulledFrom) {
  const std::vector<Key> keys = {1, 2, 3};
  ShardMap shards;
  shards.owner = {ServerId{1}, ServerId{1}};
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 1, keys}};
  KeySplit split;
  split.Compute(shards, 3, tables);
  std::vector<std::vector<float>> values = {{1, 2, 3}};
  const auto pulls = PullPlan().Pull(split, {0, PullMode::kTrain});
  ASSERT_EQ(pulls.size(), 1u);
  EXPECT_EQ(pulls[0].server, ServerId{1});
  EXPECT_EQ(StoreRequests(split, Sequence{0}, 0, Spans<const float>(values)).size(), 1u);
  const auto pushes = PushPlan(split).Requests({Sequence{0}, 0, 3}, Spans<const float>(values));
  ASSERT_EQ(pushes.size(), 3u);
  for (uint32_t s = 0; s < 3; ++s) {
    EXPECT_EQ(pushes[s].server, ServerId{s});
    PushRequest push;
    ASSERT_TRUE(DecodeMessage(pushes[s].frame, &push).ok());
    EXPECT_EQ(push.tables.size(), s == 1 ? 1u : 0u);
  }
  EXPECT_EQ(AdvanceRequests(3, 1).size(), 3u);
}

TEST(KeySplit, RefusesAReplyToAnotherRequest) {
  const std::vector<Key> keys = {1, 2, 3};
  ShardMap shards;
  shards.owner = {ServerId{0}};
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 1, keys}};
  KeySplit split;
  split.Compute(shards, 1, tables);
  const std::vector<float> rows = {7, 8, 9};
  const PullReply right = ReplyWith(split, {0}, Buffer::CopyOf(std::span<const float>(rows)));
  std::vector<std::vector<float>> to = {{0, 0, 0}};
  const PullPlan pull = PullOf(split);
  const auto refused = [&](const PullReply& reply, Code code) {
    const Status status = pull.Scatter(0, reply, Spans<float>(to));
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(to[0], (std::vector<float>{0, 0, 0}));
  };
  PullReply wrong = right;
  wrong.tables[0].table = TableId{1};
  refused(wrong, Code::kCorruption);
  wrong = right;
  wrong.tables[0].num_keys = 2;
  refused(wrong, Code::kCorruption);
  wrong = right;
  wrong.tables[0].row_floats = 2;
  refused(wrong, Code::kCorruption);
  wrong = right;
  wrong.tables.clear();
  refused(wrong, Code::kCorruption);
  wrong = right;
  wrong.rows = Buffer::CopyOf(std::span<const float>(rows.data(), 2));
  refused(wrong, Code::kCorruption);
  wrong = right;
  wrong.code = Code::kInvalidArgument;
  refused(wrong, Code::kInvalidArgument);
  EXPECT_TRUE(pull.Scatter(0, right, Spans<float>(to)).ok());
  EXPECT_EQ(to[0], rows);
}

}  // namespace
}  // namespace hdps
