// Tests the rows that one worker caches: which are loaded, which are written back, and when.
#include "worker/cache/device_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/executor.h"
#include "common/protocol/row_messages.h"
#include "kernels/dense_ops.h"
#include "tests/worker/exchange/row_servers.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Returns a job with one table that caches the rows of two keys.
Job KeepingJob() {
  const auto job = ParseJob(R"({
    "data": {"format": "csv", "train": ["train.csv"],
             "columns": [{"name": "y", "type": "label"}, {"name": "a"}]},
    "model": {"type": "graph",
      "tables": [{"name": "t", "dim": 3, "vocab_cache_size": 2,
                  "optimizer": {"kind": "adagrad"}}],
      "layers": [{"name": "x", "kind": "embedding", "table": "t"},
                 {"name": "logit", "inputs": ["x"], "units": 1}]},
    "train": {"cache_refresh_steps": 5}
  })",
                            "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

class DeviceCacheTest : public testing::Test {
 protected:
  DeviceCacheTest()
      : job_(KeepingJob()),
        clock_(NewSystemClock()),
        executor_(NewInlineExecutor()),
        ops_(NewCpuOps(*executor_)),
        servers_(2, job_.cluster.shards, *clock_),
        cache_(job_, {{{TableId{0}}, 2}}, *ops_, servers_.channel()) {
    EXPECT_TRUE(cache_.Join(ViewId{1}, 0, nullptr).ok());
    // Weights and state that identify the key.
    for (Key key = 1; key < 10; ++key) {
      servers_.rows[{0, key}].assign(cache_.rows().row_floats({0}), static_cast<float>(key));
    }
  }

  void See(const std::vector<Key>& keys, int times) {
    for (int i = 0; i < times; ++i) cache_.registry()->Count(0, keys);
  }
  // Caches keys 1 and 2.
  void KeepTwo() {
    See({1, 2}, 5);
    See({3}, 1);
    ASSERT_TRUE(cache_.Refresh(4).ok());
  }
  std::vector<Key> Kept() const { return cache_.registry()->keys(0)->keys(); }
  uint32_t SlotOf(Key key) const {
    uint32_t slot = 0;
    cache_.registry()->keys(0)->Find({&key, 1}, &slot);
    return slot;
  }
  std::vector<float> RowAt(uint32_t slot) const { return cache_.rows().Get(0, {&slot, 1}).front(); }
  // Changes the row like a step of the job, which makes it dirty.
  void Change(Key key, float value) {
    const uint32_t slot = SlotOf(key);
    const std::vector<float> row(cache_.rows().row_floats({0}), value);
    cache_.rows().Put(0, {&slot, 1}, {row});
    cache_.rows().dirty(0)[slot] = 1;
  }
  // Splits a step without keys by the current hot keys.
  std::vector<HotSplit> SplitNow() const {
    std::vector<HotSplit> splits(1);
    splits[0].keys = cache_.registry()->keys(0);
    return splits;
  }
  static std::vector<Key> KeysOf(const auto& rows) {
    std::vector<Key> keys;
    for (const auto& [row, what] : rows) keys.push_back(row.second);
    return keys;
  }

  const Job job_;
  const std::unique_ptr<MonotonicClock> clock_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<DenseOps> ops_;
  RowServers servers_;
  DeviceCache cache_;
};

TEST_F(DeviceCacheTest, BringsInWhatIsSeenMostWithItsState) {
  EXPECT_FALSE(cache_.RefreshDue()) << "nothing has been seen yet";
  KeepTwo();
  EXPECT_THAT(Kept(), UnorderedElementsAre(1, 2));
  EXPECT_THAT(KeysOf(servers_.pulled), ElementsAre(1, 2));
  for (const auto& [row, mode] : servers_.pulled) EXPECT_EQ(mode, PullMode::kWithState);
  EXPECT_THAT(servers_.log(), ElementsAre("pull 4"));
  for (const Key key : {1, 2}) {
    const std::vector<float> row = RowAt(SlotOf(key));
    EXPECT_EQ(row, (servers_.rows[{0, key}]));
  }
  EXPECT_EQ(cache_.counters().swaps, 2u);
  EXPECT_EQ(cache_.counters().given_back, 0u);
}

TEST_F(DeviceCacheTest, GivesBackOnlyWhatLeavesAndHasChanged) {
  KeepTwo();
  Change(1, 70);
  See({5, 6}, 40);
  ASSERT_TRUE(cache_.Refresh(9).ok());
  EXPECT_THAT(Kept(), UnorderedElementsAre(5, 6));
  EXPECT_THAT(KeysOf(servers_.stored), ElementsAre(1));
  EXPECT_THAT(KeysOf(servers_.pulled), ElementsAre(5, 6));
  EXPECT_EQ((servers_.rows[{0, 1}]).front(), 70);
  EXPECT_THAT(servers_.log(), ElementsAre("pull 4", "store 9", "pull 9"));
  EXPECT_EQ(cache_.counters().given_back, 1u);
}

TEST_F(DeviceCacheTest, WritesEveryDirtyRowBackOnceBeforeACommandEnds) {
  KeepTwo();
  Change(2, 80);
  ASSERT_TRUE(cache_.Flush(6).ok());
  EXPECT_THAT(KeysOf(servers_.stored), ElementsAre(2));
  EXPECT_EQ((servers_.rows[{0, 2}]), RowAt(SlotOf(2)));
  EXPECT_THAT(Kept(), UnorderedElementsAre(1, 2)) << "they stay";
  const size_t so_far = servers_.log().size();
  ASSERT_TRUE(cache_.Flush(7).ok());
  EXPECT_EQ(servers_.log().size(), so_far) << "nothing is dirty";
}

TEST_F(DeviceCacheTest, StepsSplitByOtherKeysAreStale) {
  const std::vector<HotSplit> before = SplitNow();
  EXPECT_FALSE(cache_.Stale(before));
  EXPECT_TRUE(cache_.Stale({})) << "split without any";
  KeepTwo();
  EXPECT_TRUE(cache_.Stale(before));
  EXPECT_FALSE(cache_.Stale(SplitNow()));
}

TEST_F(DeviceCacheTest, ChoosesAnewAfterSoManyStepsOfTheJob) {
  for (int step = 0; step < 5; ++step) {
    EXPECT_FALSE(cache_.RefreshDue()) << "after " << step;
    const std::vector<HotSplit> none = SplitNow();
    const std::vector<const float*> gradients(job_.tables.size());
    HotStep hot;
    hot.number = step + 1;
    hot.hot = none;
    hot.gradients = gradients;
    ASSERT_TRUE(cache_.Apply(hot).ok());
  }
  EXPECT_TRUE(cache_.RefreshDue());
  ASSERT_TRUE(cache_.Refresh(5).ok());
  EXPECT_FALSE(cache_.RefreshDue());
}

TEST_F(DeviceCacheTest, AnotherViewBeginsWithNothing) {
  KeepTwo();
  const std::shared_ptr<HotKeyRegistry> registry = cache_.registry();
  ASSERT_TRUE(cache_.Join(ViewId{1}, 0, nullptr).ok());
  EXPECT_EQ(cache_.registry(), registry) << "the same view";
  ASSERT_TRUE(cache_.Join(ViewId{2}, 0, nullptr).ok());
  EXPECT_NE(cache_.registry(), registry);
  EXPECT_TRUE(Kept().empty());
}

// Two workers that were told to cache different rows would sum gradients of different keys.
TEST_F(DeviceCacheTest, WorkersToldToKeepOtherRowsAreRefused) {
  Job other = job_;
  other.train.cache_refresh_steps = 6;
  DeviceCache theirs(other, {{{TableId{0}}, 2}}, *ops_, servers_.channel());
  const std::vector<std::unique_ptr<Collective>> group = NewThreadCollectives(2);
  std::vector<Status> joined(2);
  OnAllRanks(2, [&](uint32_t rank) {
    joined[rank] = (rank == 0 ? cache_ : theirs).Join(ViewId{3}, rank, group[rank].get());
  });
  for (const Status& status : joined) EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hdps
