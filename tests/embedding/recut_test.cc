// Tests that rows keep their bits when their table is cut over the shards in other ways.
#include "embedding/recut.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr uint32_t kShards = 8, kDim = 8;
constexpr uint64_t kKeys = 9000;  // More than two blocks of a shard's rows in all.

// Two arrays of state and a count for each row.
TableSpec SpecOf(SliceMode mode, uint32_t column_slices = 2) {
  TableSpec spec;
  spec.name = "deep";
  spec.dim = kDim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kAdam);
  spec.init = {InitKind::kNormal, 0.1};
  spec.slice_mode = mode;
  spec.column_slices = column_slices;
  const bool given = mode == SliceMode::kField || mode == SliceMode::kColumn;
  spec.shard_by = mode == SliceMode::kRow ? ShardBy::kRange
                  : given                 ? ShardBy::kGiven
                                          : ShardBy::kKey;
  return spec;
}

Key KeyAt(uint64_t n) { return MixBits(n + 1); }

// A table over all shards.
struct Cut {
  explicit Cut(const TableSpec& spec) {
    for (uint32_t s = 0; s < kShards; ++s) {
      slices.emplace_back(spec, TableId{1}, 7, RowPlacement{{s}, kShards, nullptr});
    }
  }
  // Moves the table into `spec`, in a given order of the slices and `at_once` shards at a time, as
  // several servers do.
  Cut Into(const TableSpec& spec, uint32_t at_once = kShards) {
    EXPECT_EQ(WhyNotRecut(slices[0].spec(), spec), "");
    Cut made(spec);
    for (uint32_t first = 0; first < kShards; first += at_once) {
      std::vector<PlacedSlice> to;
      for (uint32_t s = first; s < first + at_once; ++s) to.push_back({&made.slices[s], {s}});
      for (uint32_t s = kShards; s-- > 0;) {
        EXPECT_TRUE(RecutRows({&slices[s], {s}}, kShards, to).ok());
      }
    }
    return made;
  }
  RowsDigest Digest() const {
    RowsDigest sum;
    for (const TableSlice& slice : slices) sum.Add(*slice.Digest());
    return sum;
  }
  std::vector<TableSlice> slices;
};

std::string Text(const RowsDigest& digest) {
  return std::to_string(digest.rows) + " " + std::to_string(digest.sum[0]) + " " +
         std::to_string(digest.sum[1]);
}

// Returns a table in which rows have been updated once to three times.
Cut Trained(SliceMode mode) {
  Cut made(SpecOf(mode));
  Random random(5);
  for (uint64_t n = 0; n < kKeys; ++n) {
    const Key key = KeyAt(n);
    // Under field_slice the shard is the feature's, whatever the key is.
    const ShardId shard = mode == SliceMode::kField
                              ? ShardId{static_cast<uint32_t>(n % 3)}
                              : ShardOf(key, made.slices[0].spec().shard_by, kShards);
    for (uint64_t step = 1; step <= 1 + n % 3; ++step) {
      std::vector<float> gradient(kDim);
      for (float& value : gradient) value = static_cast<float>(random.Normal());
      const TableSlice::Gradients part{{&key, 1}, gradient, 1};
      made.slices[shard.value].Apply({&part, 1}, 1, static_cast<int64_t>(step));
    }
  }
  return made;
}

TEST(RecutTest, RowsComeBackWithTheirBits) {
  Cut batch = Trained(SliceMode::kBatch);
  const std::string expected = Text(batch.Digest());
  Cut row = batch.Into(SpecOf(SliceMode::kRow));
  EXPECT_EQ(Text(row.Digest()), expected);
  Cut two = row.Into(SpecOf(SliceMode::kColumn, 2), 2);
  EXPECT_EQ(two.Digest().rows, 2 * kKeys);
  EXPECT_NE(Text(two.Digest()), expected);
  Cut eight = two.Into(SpecOf(SliceMode::kColumn, 8));
  EXPECT_EQ(eight.Digest().rows, 8 * kKeys);
  Cut four = eight.Into(SpecOf(SliceMode::kColumn, 4), 4);
  Cut back = four.Into(SpecOf(SliceMode::kBatch), 1);
  EXPECT_EQ(Text(back.Digest()), expected);
  Cut field = Trained(SliceMode::kField);
  EXPECT_EQ(Text(field.Digest()), expected) << "a row does not depend on its shard";
  EXPECT_EQ(Text(field.Into(SpecOf(SliceMode::kRow), 2).Digest()), expected);
}

TEST(RecutTest, RowsAreWhereTheTableLooksForThem) {
  Cut batch = Trained(SliceMode::kBatch);
  Cut row = batch.Into(SpecOf(SliceMode::kRow));
  Cut column = batch.Into(SpecOf(SliceMode::kColumn, 4));
  for (uint64_t n = 0; n < kKeys; n += 17) {
    const Key key = KeyAt(n);
    std::vector<float> whole(kDim), other(kDim);
    const ShardId at = ShardOf(key, ShardBy::kKey, kShards);
    batch.slices[at.value].Read({&key, 1}, kDim, whole);
    row.slices[ShardOf(key, ShardBy::kRange, kShards).value].Read({&key, 1}, kDim, other);
    EXPECT_EQ(other, whole);
    for (uint32_t part = 0; part < 4; ++part) {
      const uint32_t shard = ColumnShard(key, part, 4, kShards);
      column.slices[shard].Read({&key, 1}, 2, std::span(other).subspan(part * 2, 2));
    }
    EXPECT_EQ(other, whole);
  }
}

// Rows of another job keep their uses, if both count them; their age begins anew, and so does the
// state of another rule.
TEST(RecutTest, RowsOfAnotherJobKeepWhatTheRuleSays) {
  TableSpec from = SpecOf(SliceMode::kBatch);
  from.policy.max_rows = 100;
  from.policy.evict_by = EvictBy::kUse;
  from.policy.evict_after_steps = 50;
  TableSpec same = from, other = from;
  same.policy.evict_after_steps = 0;
  other.optimizer.record = &RecordOf(OptimizerKind::kSgd);
  TableSlice trained(from, TableId{0}, 7);
  const std::vector<Key> keys = {3, 4};
  const std::vector<float> gradients(keys.size() * kDim, 0.5f);
  for (int64_t step : {7, 8, 9}) {
    const TableSlice::Gradients part{keys, gradients, 1};
    trained.Apply({&part, 1}, 1, step);
  }
  std::vector<float> before(keys.size() * (kDim + trained.state_floats()));
  trained.Read(keys, kDim + trained.state_floats(), before);
  const size_t row_floats = before.size() / keys.size();
  const auto bits = [](float number) { return std::bit_cast<uint32_t>(number); };
  ASSERT_EQ(bits(before[row_floats - 2]), 9u) << "the step of the last update";
  ASSERT_EQ(bits(before[row_floats - 1]), 3u) << "uses";

  const auto moved = [&](TableSlice* slice, const MoveRule& rule) {
    const PlacedSlice to{slice, {0}};
    MovedRows rows(from, {0}, 1, {&to, 1}, 1, rule);
    EXPECT_TRUE(rows.Store(keys, before).ok());
    std::vector<float> row(kDim + slice->state_floats());
    slice->Read({&keys[1], 1}, static_cast<uint32_t>(row.size()), row);
    return row;
  };
  const std::vector<float> old(before.begin() + static_cast<ptrdiff_t>(row_floats), before.end());
  TableSlice all(from, TableId{0}, 8);
  std::vector<float> expected = old;
  expected[row_floats - 2] = 0;
  EXPECT_EQ(moved(&all, {.ages = false}), expected);
  TableSlice uses(same, TableId{0}, 8);
  expected.erase(expected.end() - 2);
  EXPECT_EQ(moved(&uses, {.ages = false}), expected);
  TableSlice plain(other, TableId{0}, 8);
  expected.assign(old.begin(), old.begin() + kDim);
  expected.push_back(0);
  expected.push_back(old.back());
  EXPECT_EQ(moved(&plain, {.state = false, .ages = false}), expected);
  // Keys may be others there, and a removed key goes.
  TableSlice renamed(from, TableId{0}, 8);
  const PlacedSlice to{&renamed, {0}};
  MovedRows rows(from, {0}, 1, {&to, 1}, 1, {.key_of = [](Key key) {
                   return key == 3 ? std::nullopt : std::optional<Key>(key + 10);
                 }});
  ASSERT_TRUE(rows.Store(keys, before).ok());
  EXPECT_EQ(renamed.num_rows(), 1u);
  rows.Erase(keys);
  EXPECT_EQ(renamed.num_rows(), 0u);
}

}  // namespace
}  // namespace hdps
