// Tests which tables share their hot keys, which keys of a step are hot, and what two threads
// share.
#include "worker/cache/hot_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "kernels/host/row_slab.h"

namespace hdps {
namespace {

using testing::ElementsAre;

// Tables: 0 and 1 over both features, 2 over b alone, 3 dense.
Job ThreeTables() {
  const auto job = ParseJob(R"({
    "data": {"format": "csv", "train": ["train.csv"],
             "columns": [{"name": "y", "type": "label"}, {"name": "a"},
                         {"name": "b", "type": "multi"}]},
    "model": {"type": "graph", "tables": [
        {"name": "t", "dim": 4}, {"name": "u", "dim": 2}, {"name": "v", "dim": 2}],
      "layers": [
        {"name": "x", "kind": "embedding", "table": "t"},
        {"name": "y", "kind": "embedding", "table": "u"},
        {"name": "z", "kind": "embedding", "table": "v", "features": ["b"]},
        {"name": "all", "kind": "concat", "inputs": ["x", "y", "z"]},
        {"name": "logit", "inputs": ["all"], "units": 1}]}
  })",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

std::vector<HotGroup> GroupsOf(const Job& job) {
  return HotGroupsOf(job, KeyFinder(job).table_keys());
}

Job With(uint64_t t, uint64_t u, uint64_t v) {
  Job job = ThreeTables();
  job.tables[0].vocab_cache_size = t;
  job.tables[1].vocab_cache_size = u;
  job.tables[2].vocab_cache_size = v;
  return job;
}

TEST(HotGroups, AreOfTablesOverTheSameFeaturesThatKeepAsManyRows) {
  EXPECT_TRUE(GroupsOf(With(0, 0, 0)).empty());
  const std::vector<HotGroup> one = GroupsOf(With(5, 5, 0));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(one[0].tables, ElementsAre(TableId{0}, TableId{1}));
  EXPECT_EQ(one[0].rows_max, 5u);
  const std::vector<HotGroup> other_features = GroupsOf(With(5, 0, 5));
  ASSERT_EQ(other_features.size(), 2u);
  EXPECT_THAT(other_features[1].tables, ElementsAre(TableId{2}));
  EXPECT_EQ(GroupsOf(With(5, 6, 0)).size(), 2u);
}

TEST(HotKeyRegistry, GivesWhatWasPublishedAndLeavesWhatWasGiven) {
  HotKeyRegistry registry(GroupsOf(With(5, 0, 6)), /*counting=*/false);
  EXPECT_EQ(registry.GroupOf({0}), 0);
  EXPECT_EQ(registry.GroupOf({1}), -1);
  EXPECT_EQ(registry.GroupOf({2}), 1);
  const std::shared_ptr<const HotKeys> before = registry.keys(1);
  EXPECT_EQ(before->size(), 0u);
  registry.Publish(1, std::make_shared<const HotKeys>(std::vector<Key>{7, 8}));
  EXPECT_EQ(before->size(), 0u);
  EXPECT_THAT(registry.keys(1)->keys(), ElementsAre(7, 8));
  EXPECT_EQ(registry.keys(0)->size(), 0u);
}

TEST(HotKeyRegistry, CountsOneStepOfTheStrideAndHalvesWhatWasCounted) {
  HotKeyRegistry registry(GroupsOf(With(5, 0, 0)), /*counting=*/true);
  const auto count = [&](int steps) {
    const std::vector<Key> keys = {42};
    for (int i = 0; i < steps; ++i) registry.Count(0, keys);
  };
  const auto counted = [&](uint64_t stride) {
    const std::vector<FrequentKeys::Counted> all = registry.TakeCounts(0, stride);
    return all.empty() ? 0 : all.front().count;
  };
  count(8);
  EXPECT_EQ(counted(/*stride=*/2), 8u);
  count(8);
  EXPECT_EQ(counted(2), 8u) << "half of 8 and every other of 8";
  HotKeyRegistry other(GroupsOf(With(5, 0, 0)), /*counting=*/false);
  other.Count(0, std::vector<Key>{42});
  EXPECT_TRUE(other.TakeCounts(0, 1).empty());
}

// Two parts; key 3 occurs three times, in both of them.
TEST(SplitHot, FindsSlotsAndColdPositionsAndCountsAsOftenAsExamplesName) {
  const Job job = With(5, 5, 0);
  Batch batch;
  batch.num_examples = 4;
  batch.labels.assign(4, 0.0f);
  batch.sparse.resize(2);
  batch.sparse[0] = {.offsets = {0, 1, 2, 3, 4}, .keys = {3, 1, 3, 2}, .weights = {}};
  batch.sparse[1] = {.offsets = {0, 0, 1, 1, 3}, .keys = {9, 3, 1}, .weights = {}};
  KeyFinder finder(job);
  StepParts parts;
  parts.Assign(std::move(batch), 2, finder);
  HotKeyRegistry registry(GroupsOf(job), /*counting=*/false);
  const auto hot = std::make_shared<const HotKeys>(std::vector<Key>{8, 3, 9});
  registry.Publish(0, hot);
  std::vector<HotSplit> splits;
  SplitHot(parts, registry, nullptr, &splits);
  ASSERT_EQ(splits.size(), 1u);
  const HotSplit& split = splits[0];
  EXPECT_EQ(split.keys, hot);
  const std::span<const Key> keys = parts.KeysOf({0});
  ASSERT_EQ(split.slots.size(), keys.size());
  std::vector<uint32_t> cold;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const uint32_t slot = keys[i] == 3 ? 1 : keys[i] == 9 ? 2 : kNotInSlab;
    EXPECT_EQ(split.slots[i], slot) << "key " << keys[i];
    if (slot == kNotInSlab) cold.push_back(i);
  }
  EXPECT_EQ(split.cold, cold);
  EXPECT_EQ(split.lookups, 7u);
  EXPECT_EQ(split.hits, 4u);  // 3 three times, 9 once.
}

}  // namespace
}  // namespace hdps
