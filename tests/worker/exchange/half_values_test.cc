// Tests values in 16 bits between a worker's arrays and the sections of its requests.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"
#include "kernels/host/half_floats.h"
#include "tests/worker/exchange/split_replies.h"

namespace hdps {
namespace {

// 16-bit values are rounded on the way in and come out like that, alone or in runs, for dims with
// special loops and others; no value stays in place.
TEST(KeySplit, NarrowValuesGoThereAndBack) {
  ShardMap shards;
  std::vector<Key> keys;
  for (Key key = 0; key < 300; ++key) keys.push_back(key * key);
  std::vector<Key> in_order = keys;
  std::ranges::stable_sort(in_order, {},
                           [](Key key) { return ShardOf(key, ShardBy::kKey, 8).value; });
  for (const DType format : {DType::kFp16, DType::kBf16}) {
    for (const uint32_t num_servers : {1u, 2u}) {
      shards.owner.clear();
      for (uint32_t s = 0; s < 8; ++s) shards.owner.push_back({s % num_servers});
      const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 16, keys},
                                               {TableId{1}, ShardBy::kKey, 5, in_order},
                                               {TableId{2}, ShardBy::kKey, 1, keys}};
      KeySplit split;
      split.Compute(shards, num_servers, tables);
      Random random(3);
      std::vector<std::vector<float>> values, expected, back;
      for (const KeysOfTable& table : tables) {
        values.emplace_back(table.keys.size() * table.row_floats);
        for (float& v : values.back()) v = static_cast<float>(random.Unit() * 100 - 50);
        std::vector<uint16_t> halves(values.back().size());
        auto* const bytes = reinterpret_cast<std::byte*>(halves.data());
        NarrowFloats(VectorWidth::kPlain, format, values.back(), bytes);
        expected.emplace_back(halves.size());
        WidenFloats(VectorWidth::kPlain, format, bytes, expected.back());
        back.emplace_back(halves.size());
      }
      std::vector<RowSpans<const float>> in_place(3);
      const std::vector<Buffer> sections = SectionsOf(split, Spans<const float>(values), format);
      const PullPlan pull = PullOf(split);
      ASSERT_EQ(pull.asked().size(), num_servers);
      for (uint32_t s = 0; s < num_servers; ++s) {
        PullReply reply = ReplyWith(split, {s}, sections[s]);
        ASSERT_FALSE(pull.Scatter(s, reply, Spans<float>(back), in_place).ok());
        reply.format = format;
        ASSERT_TRUE(pull.Scatter(s, reply, Spans<float>(back), in_place).ok());
      }
      EXPECT_EQ(back, expected);
      for (const auto& rows : in_place) EXPECT_TRUE(rows.empty());
      const std::vector<ServerRequest> pushes =
          PushPlan(split).Requests({.sequence = {5}, .format = format}, Spans<const float>(values));
      PushRequest push;
      ASSERT_TRUE(DecodeMessage(pushes[0].frame, &push).ok());
      EXPECT_EQ(push.format, format);
      EXPECT_EQ(push.gradients.size(), split.at({0}).num_floats * 2);
    }
  }
}

// A push travels with one scale for all servers, which is smaller where the wanted one is too
// large.
TEST(PushPlan, ScalesGradientsThatTravelAsFp16) {
  ShardMap shards;
  for (uint32_t s = 0; s < 8; ++s) shards.owner.push_back({s % 2});
  std::vector<Key> keys;
  for (Key key = 0; key < 40; ++key) keys.push_back(key);
  const std::vector<KeysOfTable> tables = {{TableId{0}, ShardBy::kKey, 1, keys}};
  KeySplit split;
  split.Compute(shards, 2, tables);
  struct Case {
    float largest;
    double scale;
    DType format;
    int exponent;
  };
  for (const Case& c : {Case{1, 1, DType::kFp16, 0}, Case{1, 1024, DType::kFp16, 10},
                        Case{100, 1024, DType::kFp16, 8}, Case{1e6, 1024, DType::kFp16, -5},
                        Case{1e6, 1, DType::kFp16, 0}, Case{1, 0, DType::kFp16, 14},
                        Case{1e-6f, 0, DType::kFp16, 24}, Case{1, 1024, DType::kBf16, 0},
                        Case{1, 1024, DType::kFp32, 0}}) {
    std::vector<float> values(keys.size(), c.largest / 4);
    values[7] = -c.largest;
    const std::vector<std::span<const float>> gradients = {values};
    const std::vector<ServerRequest> pushes = PushPlan(split).Requests(
        {.sequence = {5}, .format = c.format, .loss_scale = c.scale}, gradients);
    for (uint32_t s = 0; s < 2; ++s) {
      PushRequest push;
      ASSERT_TRUE(DecodeMessage(pushes[s].frame, &push).ok());
      EXPECT_EQ(push.scale_exponent, c.exponent) << c.largest << " times " << c.scale;
      if (c.format != DType::kFp16) continue;
      const std::span<const uint32_t> positions = split.PositionsAt({s}, 0);
      for (size_t i = 0; i < positions.size(); ++i) {
        const float sent = std::ldexp(values[positions[i]], c.exponent);
        EXPECT_EQ(push.gradients.As<uint16_t>()[i], NarrowToFp16(sent));
      }
    }
  }
}

}  // namespace
}  // namespace hdps
