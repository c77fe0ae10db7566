// Tests that a push names the marks of the rows that its step was given.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/shard_map.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "gtest/gtest.h"
#include "tests/worker/exchange/split_replies.h"
#include "worker/exchange/key_split.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/push_plan.h"

namespace hdps {
namespace {

// A push names the marks of the rows that were put in place, server by server; dense rows are read
// by the second half of a pull that was made ahead.
TEST(PushMarks, APushNamesTheMarksOfItsRows) {
  KeySplit split, other;
  const std::vector<Key> keys = {3};
  ShardMap shards;
  shards.owner.assign(1, ServerId{0});
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 1, keys}};
  const auto pull = [&](KeySplit* of, PullMode mode, uint64_t mark) {
    PullPlan plan;
    plan.Pull(*of, {.mode = mode});
    std::vector<float> row(1);
    PullReply reply = ReplyWith(*of, ServerId{0}, Buffer::CopyOf<float>(std::vector<float>{7}));
    reply.mark = mark;
    const std::span<float> place = row;
    EXPECT_TRUE(plan.Scatter(0, reply, {&place, 1}).ok());
  };
  const auto marks = [&]() -> std::pair<uint64_t, uint64_t> {
    const std::vector<float> gradient = {1};
    const std::span<const float> gradients = gradient;
    PushRequest push;
    const auto requests = PushPlan(split).Requests({}, {&gradients, 1});
    EXPECT_TRUE(DecodeMessage(requests.at(0).frame, &push).ok());
    return {push.rows_mark, push.dense_mark};
  };
  using Marks = std::pair<uint64_t, uint64_t>;
  split.Compute(shards, 1, tables);
  EXPECT_EQ(marks(), Marks(0, 0));
  pull(&split, PullMode::kTrain, 5);
  EXPECT_EQ(marks(), Marks(5, 5));
  pull(&split, PullMode::kPrefetch, 6);
  EXPECT_EQ(marks(), Marks(6, 5));
  pull(&split, PullMode::kRefresh, 9);
  EXPECT_EQ(marks(), Marks(6, 9));
  other.Compute(shards, 1, tables);
  split.NoteOldestMarks(other);  // Nothing was read with it.
  EXPECT_EQ(marks(), Marks(6, 9));
  pull(&other, PullMode::kTrain, 8);
  split.NoteOldestMarks(other);
  EXPECT_EQ(marks(), Marks(6, 8));
  split.Compute(shards, 1, tables);
  EXPECT_EQ(marks(), Marks(0, 0));
}

}  // namespace
}  // namespace hdps
