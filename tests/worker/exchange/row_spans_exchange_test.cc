// Tests rows used in the buffers they arrived in, and gradients written where they are sent from.
#include <algorithm>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"
#include "tests/worker/exchange/split_replies.h"

namespace hdps {
namespace {

// A push of three tables; the keys of the second are in no order.
struct Push {
  explicit Push(bool first_in_order) {
    for (Key key = 0; key < 200; ++key) keys.push_back(key);
    std::ranges::stable_sort(keys, {},
                             [](Key key) { return ShardOf(key, ShardBy::kKey, 8).value; });
    turned = keys;
    std::swap(turned.front(), turned.back());
    tables = {{TableId{0}, ShardBy::kKey, 3, first_in_order ? keys : turned},
              {TableId{2}, ShardBy::kKey, 16, turned},
              {TableId{3}, ShardBy::kKey, 1, keys}};
    Random random(5);
    for (const KeysOfTable& table : tables) {
      values.emplace_back(table.keys.size() * table.row_floats);
      for (float& v : values.back()) v = static_cast<float>(random.Unit());
    }
  }
  std::vector<Key> keys, turned;
  std::vector<KeysOfTable> tables;
  std::vector<std::vector<float>> values;
};

// Returns shards as the scheduler distributes them.
ShardMap Dealt(uint32_t num_servers) {
  ShardMap shards;
  for (uint32_t s = 0; s < 8; ++s) shards.owner.push_back({s * num_servers / 8});
  return shards;
}

TEST(IsContiguous, AnOpenPushIsTheSectionsThatGatheringMakes) {
  KeySplit split;
  // One split for all: nothing may remain from the previous one.
  for (const uint32_t num_servers : {1u, 2u, 3u}) {
    for (const bool first_in_order : {true, false}) {
      Push push(first_in_order);
      split.Compute(Dealt(num_servers), num_servers, push.tables);
      const PushTerms terms = {.sequence = {3}, .clock = 4, .num_examples = 5, .list = 6};
      const std::vector<ServerRequest> plain =
          PushPlan(split).Requests(terms, Spans<const float>(push.values));

      std::vector<Buffer> made;
      PushPlan plan(split, [&made](ServerId, size_t size, std::span<std::byte>* bytes) {
        return made.emplace_back(Buffer::Allocate(size, bytes));
      });
      EXPECT_TRUE(plan.place(0).empty()) << "it is not open";
      plan.Open();
      EXPECT_EQ(plan.place(0).empty(), !first_in_order);
      EXPECT_TRUE(plan.place(1).empty()) << "it has to be moved";
      std::vector<std::span<const float>> moved = Spans<const float>(push.values);
      for (const size_t t : {0u, 2u}) {
        const RowSpans<float> place = plan.place(t);
        if (place.empty()) continue;
        ASSERT_EQ(place.size(), push.values[t].size());
        EXPECT_EQ(place.count(), num_servers);
        for (size_t p = 0; p < num_servers; ++p) {
          const std::span<float> piece = place.piece(p);
          std::copy_n(push.values[t].data() + place.begin(p), piece.size(), piece.data());
        }
        moved[t] = {};  // Not read.
      }
      const std::vector<ServerRequest> requests = plan.Requests(terms, moved);
      ASSERT_EQ(requests.size(), num_servers);
      for (uint32_t s = 0; s < num_servers; ++s) {
        PushRequest gathered, written, named;
        ASSERT_EQ(requests[s].server, ServerId{s});
        ASSERT_TRUE(DecodeMessage(*plain[s].whole, &gathered).ok());
        ASSERT_TRUE(DecodeMessage(*requests[s].whole, &written).ok());
        EXPECT_EQ(written.gradients.data(), made[s].data()) << "copied on the way";
        EXPECT_TRUE(std::ranges::equal(written.gradients.bytes(), gathered.gradients.bytes()));
        EXPECT_TRUE(std::ranges::equal(written.keys.bytes(), gathered.keys.bytes()));
        EXPECT_EQ(written.sequence, gathered.sequence);
        EXPECT_EQ(written.num_examples, 5u);
        ASSERT_TRUE(DecodeMessage(requests[s].frame, &named).ok());
        EXPECT_EQ(named.list, 6u);
        EXPECT_EQ(named.gradients.data(), made[s].data());
      }
    }
  }
}

// Keys in the order of their shards travel in the caller's order: rows stay where they came, a
// piece a server.
TEST(IsContiguous, RowsOfKeysInOrderStayInTheReplies) {
  std::vector<Key> keys;
  for (Key key = 0; key < 100; ++key) keys.push_back(key);
  std::ranges::stable_sort(keys, {}, [](Key key) { return ShardOf(key, ShardBy::kKey, 8).value; });
  std::vector<Key> turned = keys, few = {keys.back()};
  std::swap(turned.front(), turned.back());
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 3, keys},
                                           {TableId{1}, ShardBy::kKey, 16, turned},
                                           {TableId{2}, ShardBy::kKey, 5, few},
                                           {TableId{3}, ShardBy::kKey, 1, keys}};
  KeySplit split;
  for (const uint32_t num_servers : {1u, 2u, 3u, 4u}) {
    ShardMap shards;
    for (uint32_t s = 0; s < 8; ++s) {  // With four servers, server 1 has no shards.
      const uint32_t owner = s * num_servers / 8;
      shards.owner.push_back({num_servers == 4 && owner == 1 ? 0 : owner});
    }
    split.Compute(shards, num_servers, tables);
    std::vector<std::vector<float>> values, back(4);
    for (const KeysOfTable& table : tables) {
      values.emplace_back(table.keys.size() * table.row_floats);
      for (float& v : values.back()) v = static_cast<float>(&v - values.back().data());
    }
    back[1].resize(values[1].size());
    std::vector<RowSpans<const float>> in_place(4);
    std::vector<PullReply> replies;
    const std::vector<Buffer> sections = SectionsOf(split, Spans<const float>(values));
    const PullPlan pull = PullOf(split);
    for (size_t i = 0; i < pull.asked().size(); ++i) {
      const ServerId server = pull.asked()[i].server;
      replies.push_back(ReplyWith(split, server, sections[server.value]));
      const Status status = pull.Scatter(i, replies.back(), Spans<float>(back), in_place);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    EXPECT_TRUE(split.IsContiguous(0) && split.IsContiguous(2) && split.IsContiguous(3));
    EXPECT_FALSE(split.IsContiguous(1));
    EXPECT_TRUE(in_place[1].empty());
    EXPECT_EQ(back[1], values[1]);
    EXPECT_EQ(in_place[0].count(), replies.size());
    EXPECT_EQ(in_place[2].count(), 1u);
    for (const size_t t : {0, 2, 3}) {
      std::vector<float> joined;
      for (size_t p = 0; p < in_place[t].count(); ++p) {
        const std::span<const float> piece = in_place[t].piece(p);
        joined.insert(joined.end(), piece.begin(), piece.end());
        if (t == 2) continue;
        const std::span<const float> section = replies[p].rows.As<float>();
        EXPECT_GE(piece.data(), section.data()) << "copied";
        EXPECT_LE(piece.data() + piece.size(), section.data() + section.size());
      }
      EXPECT_EQ(joined, values[t]);
    }
  }
  // Owners that are not neighbors, and more servers than pieces.
  ShardMap turns, many;
  for (uint32_t s = 0; s < 8; ++s) turns.owner.push_back({s % 2});
  split.Compute(turns, 2, tables);
  EXPECT_FALSE(split.IsContiguous(0));
  for (uint32_t s = 0; s < 8; ++s) many.owner.push_back({s});
  split.Compute(many, 8, tables);
  EXPECT_TRUE(split.IsContiguous(0));
  split.Compute(many, 9, tables);
  EXPECT_FALSE(split.IsContiguous(0));
}

// Weights of dense layers are wanted where the model has them, in whatever order they come.
TEST(IsContiguous, DenseWeightsAreMovedThoughInOrder) {
  const std::vector<Key> keys = {1, 2, 3, 4, 5, 6};
  const std::vector<KeysOfTable> tables = {
      {TableId{0}, ShardBy::kKey, 3, keys},
      {.table = {1}, .row_floats = 2, .keys = keys, .dense = true}};
  KeySplit split;
  split.Compute(ShardMap{{ServerId{0}}}, 1, tables);
  EXPECT_TRUE(split.IsContiguous(0));
  EXPECT_FALSE(split.IsContiguous(1));
  std::vector<std::vector<float>> values = {std::vector<float>(18, 1), std::vector<float>(12, 2)};
  std::vector<std::vector<float>> back = {{}, std::vector<float>(12)};
  std::vector<RowSpans<const float>> in_place(2);
  const PullReply reply = ReplyWith(split, {0}, SectionsOf(split, Spans<const float>(values))[0]);
  ASSERT_TRUE(PullOf(split).Scatter(0, reply, Spans<float>(back), in_place).ok());
  EXPECT_EQ(back[1], values[1]);
  PushPlan push(split);
  push.Open();
  EXPECT_TRUE(push.place(1).empty());
}

}  // namespace
}  // namespace hdps
