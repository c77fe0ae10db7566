// Tests which keys of a step travel, and how often.
#include <gtest/gtest.h>

#include <vector>

#include "worker/exchange/key_split.h"

namespace hdps {
namespace {

TEST(SentKeys, TablesWithOneListSendItOnce) {
  const std::vector<Key> keys = {5, 6, 7, 8, 9, 10, 11, 12}, same = keys;
  ShardMap shards;
  for (uint32_t s = 0; s < 8; ++s) shards.owner.push_back({s % 2});
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 1, keys},
                                           {TableId{1}, ShardBy::kKey, 1, same},
                                           {TableId{3}, ShardBy::kKey, 16, keys}};
  KeySplit split;
  split.Compute(shards, 2, tables);
  size_t sent = 0;
  for (const uint32_t s : {0, 1}) {
    const ServerKeys& its = split.at({s});
    sent += its.keys.As<Key>().size();
    EXPECT_EQ(its.tables[0].keys_of, 0u);
    EXPECT_EQ(its.tables[1].keys_of, 0u) << "another list, though its keys are the same";
    EXPECT_EQ(its.tables[2].keys_of, 1u);
    EXPECT_TRUE(its.tables[2].shard_counts.empty());
  }
  EXPECT_EQ(sent, 2 * keys.size());
}

}  // namespace
}  // namespace hdps
