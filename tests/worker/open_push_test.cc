// Gradients made where they are sent from are the section that gathering would have made.
#include <algorithm>
#include <vector>

#include "common/random.h"
#include "gtest/gtest.h"
#include "tests/worker/split_replies.h"

namespace hdps {
namespace {

TEST(OpenPush, IsTheSectionThatGatheringMakes) {
  ShardMap shards;
  shards.owner.assign(8, ServerId{0});
  std::vector<Key> keys;
  for (Key key = 0; key < 200; ++key) keys.push_back(key);
  std::ranges::stable_sort(keys, {}, [](Key key) { return ShardOf(key, ShardBy::kKey, 8).value; });
  std::vector<Key> turned = keys;
  std::swap(turned.front(), turned.back());
  KeySplit split;
  // One split after another: nothing may be left over.
  for (const bool one_in_order : {true, false}) {
    const std::vector<KeysOfTable> tables = {
        {TableId{0}, ShardBy::kKey, 3, one_in_order ? keys : turned},
        {TableId{2}, ShardBy::kKey, 16, turned},
        {TableId{3}, ShardBy::kKey, 1, keys}};
    split.Compute(shards, 1, tables);
    Random random(5);
    std::vector<std::vector<float>> values;
    for (const KeysOfTable& table : tables) {
      values.emplace_back(table.keys.size() * table.row_floats);
      for (float& v : values.back()) v = static_cast<float>(random.Unit());
    }
    const PushTerms terms = {.sequence = {3}, .clock = 4, .num_examples = 5, .list = 6};
    PushRequest gathered, written;
    const std::vector<ServerRequest> plain = split.Pushes(terms, Spans<const float>(values));
    ASSERT_TRUE(DecodeMessage(*plain.at(0).whole, &gathered).ok());

    KeySplit::OpenSection open = split.OpenPush();
    EXPECT_EQ(open.places[0].empty(), !one_in_order);
    EXPECT_TRUE(open.places[1].empty()) << "it has to be moved";
    std::vector<std::span<const float>> moved = Spans<const float>(values);
    for (const size_t t : {0u, 2u}) {
      if (open.places[t].empty()) continue;
      ASSERT_EQ(open.places[t].size(), values[t].size());
      std::ranges::copy(values[t], open.places[t].begin());
      moved[t] = {};  // Not looked at.
    }
    const std::byte* const place = open.buffer.data();
    const std::vector<ServerRequest> requests = split.ClosePush(terms, moved, std::move(open));
    ASSERT_EQ(requests.size(), 1u);
    ASSERT_TRUE(DecodeMessage(*requests[0].whole, &written).ok());
    EXPECT_EQ(written.gradients.data(), place) << "copied on the way";
    EXPECT_TRUE(std::ranges::equal(written.gradients.bytes(), gathered.gradients.bytes()));
    EXPECT_TRUE(std::ranges::equal(written.keys.bytes(), gathered.keys.bytes()));
    EXPECT_EQ(written.sequence, gathered.sequence);
    EXPECT_EQ(written.num_examples, 5u);
    PushRequest named;
    ASSERT_TRUE(DecodeMessage(requests[0].frame, &named).ok());
    EXPECT_EQ(named.list, 6u);
    EXPECT_EQ(named.gradients.data(), place);
  }
}

}  // namespace
}  // namespace hdps
