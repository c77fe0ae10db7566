// Tests buckets of dense gradients in flight: the order of waits, and what is summed.
#include "worker/dense/dense_reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job_file.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/membership_messages.h"
#include "worker/collective/rank_transport.h"
#include "worker/dense/dense_at_servers.h"

namespace hdps {
namespace {

// Records events in order; a thread may wait for one.
class Events {
 public:
  void Add(const std::string& event) {
    MutexLock lock(mutex_);
    list_.push_back(event);
    changed_.notify_all();
  }
  void Await(const std::string& event) {
    MutexLock lock(mutex_);
    while (std::ranges::find(list_, event) == list_.end()) changed_.wait(mutex_);
  }
  std::vector<std::string> list() {
    MutexLock lock(mutex_);
    return list_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<std::string> list_ HDPS_GUARDED_BY(mutex_);
};

// A group whose first reduction waits until a given event.
class SlowGroup : public Collective {
 public:
  SlowGroup(Collective& group, Events& events, std::string until)
      : group_(group), events_(events), until_(std::move(until)) {}
  uint32_t rank() const override { return group_.rank(); }
  uint32_t size() const override { return group_.size(); }
  const char* name() const override { return "slow"; }
  Status AllReduce(std::span<const ReducedValues> lists) override {
    const std::string call = std::to_string(calls_++);
    events_.Add("begin " + call);
    if (call == "0" && !until_.empty()) events_.Await(until_);
    const Status status = group_.AllReduce(lists);
    events_.Add("end " + call);
    return status;
  }
  Status ReduceScatter(const ReducedValues& values, std::span<const size_t> counts,
                       void* mine) override {
    return group_.ReduceScatter(values, counts, mine);
  }
  Status Broadcast(uint32_t root, std::span<std::byte> data, MemorySpace space) override {
    return group_.Broadcast(root, data, space);
  }
  Status AllGather(std::span<const std::byte> mine, std::span<const size_t> sizes,
                   std::span<std::byte> all, MemorySpace space) override {
    return group_.AllGather(mine, sizes, all, space);
  }
  Status Exchange(std::span<const RankBytes> sends, std::span<const RankBytes> receives) override {
    return group_.Exchange(sends, receives);
  }
  Status Barrier() override { return group_.Barrier(); }
  Result<std::unique_ptr<Collective>> Split(uint32_t part) override { return group_.Split(part); }
  void Abort() override { group_.Abort(); }
  CollectiveCounts counts() const override { return group_.counts(); }

 private:
  Collective& group_;
  Events& events_;
  const std::string until_;
  int calls_ = 0;
};

// Fixture with three dense layers and six tensors; the two of each layer are reduced together.
class DenseReductionTest : public testing::Test {
 protected:
  DenseReductionTest() {
    Result<Job> job = ParseJob(R"({
      "data": {"format": "csv", "train": ["t.csv"],
               "columns": [{"name": "y", "type": "label"}, {"name": "a"}]},
      "model": {"type": "graph", "tables": [{"name": "t", "dim": 4}], "layers": [
        {"name": "e", "kind": "embedding", "table": "t"},
        {"name": "d1", "inputs": ["e"], "units": 8, "fusion": 1},
        {"name": "d2", "inputs": ["d1"], "units": 8, "fusion": 2},
        {"name": "out", "inputs": ["d2"], "units": 1, "fusion": 3}]},
      "parallel": {"dense_exchange": "allreduce"}})",
                               "test", {});
    EXPECT_TRUE(job.ok()) << job.status().message();
    job_ = *std::move(job);
    Result<std::unique_ptr<Model>> model = NewModel(job_, *executor_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
  }

  int dense_table() const { return static_cast<int>(job_.tables.size() - 1); }

  Job job_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
  std::unique_ptr<Model> model_;
};

// The sum of the last layer overlaps with the computation of the first gradients: its end waits for
// them, and they wait for its beginning.
TEST_F(DenseReductionTest, ABucketIsReducedWhileTheNextAreComputed) {
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  std::vector<Events> events(2);
  OnAllRanks(2, [&](uint32_t rank) {
    SlowGroup group(*groups[rank], events[rank], "computed 0");
    CollectiveQueue queue(group, *clock_);
    DenseReduction reduction(job_, *model_, dense_table(), *executor_);
    reduction.set_group({{&group, &group, nullptr}, nullptr, nullptr, &queue});
    reduction.Begin({.vote = {4 + rank, rank == 1}, .workers = 2});
    std::ranges::fill(reduction.gradients().host(), float(rank + 1));
    for (uint32_t t = 6; t-- > 0;) {
      events[rank].Add("computed " + std::to_string(t));
      reduction.TensorDone(t, /*stay=*/false);
      if (t == 4) events[rank].Await("begin 0");
    }
    const Result<StepVote> all = reduction.Finish();
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->examples, 9u);
    EXPECT_TRUE(all->pause);
    for (const float sum : reduction.gradients().host()) ASSERT_EQ(sum, 3.0f);
    EXPECT_THAT(events[rank].list(), testing::IsSupersetOf({"begin 2", "end 2"}));
    const std::vector<std::string> list = events[rank].list();
    const auto at = [&](const char* event) {
      return std::ranges::find(list, event) - list.begin();
    };
    EXPECT_LT(at("computed 4"), at("begin 0")) << "not before all of it stands";
    EXPECT_LT(at("begin 0"), at("computed 3"));
    EXPECT_LT(at("computed 0"), at("end 0"));
    EXPECT_LT(at("end 0"), at("begin 1"));
    EXPECT_GT(queue.TakeBusyNs(), 0);
  });
}

// The last bucket waits until Finish(), though its gradients are complete; the others do not.
TEST_F(DenseReductionTest, TheLastBucketIsHeld) {
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  std::vector<Events> events(2);
  OnAllRanks(2, [&](uint32_t rank) {
    SlowGroup group(*groups[rank], events[rank], "");
    CollectiveQueue queue(group, *clock_);
    DenseReduction reduction(job_, *model_, dense_table(), *executor_);
    reduction.HoldLast();
    Clock finished = 0;
    DenseGroup all = {{&group, &group, nullptr}, nullptr, nullptr, &queue};
    all.clock = &finished;
    reduction.set_group(all);
    for (Clock step = 0; step < 2; ++step) {
      reduction.Begin({.vote = {4, false}, .workers = 2});
      std::ranges::fill(reduction.gradients().host(), 1.0f);
      for (uint32_t t = 6; t-- > 0;) reduction.TensorDone(t, /*stay=*/false);
      ASSERT_TRUE(queue.WaitForAll().ok());
      EXPECT_EQ(events[rank].list().back(), "end " + std::to_string(3 * step + 1));
      ASSERT_TRUE(reduction.Finish().ok());
      EXPECT_EQ(events[rank].list().back(), "end " + std::to_string(3 * step + 2));
      for (const float sum : reduction.gradients().host()) ASSERT_EQ(sum, 2.0f);
      reduction.Finished(step + 1);
      EXPECT_EQ(finished, step + 1);
    }
  });
}

// In a step that has diverged, one without examples, or without a queue, no bucket leaves early.
TEST_F(DenseReductionTest, WhatStaysLeavesAtTheEnd) {
  const std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(2);
  std::vector<Events> events(2);
  OnAllRanks(2, [&](uint32_t rank) {
    SlowGroup group(*groups[rank], events[rank], "");
    CollectiveQueue queue(group, *clock_);
    DenseReduction reduction(job_, *model_, dense_table(), *executor_);
    reduction.set_group(
        {{&group, &group, nullptr}, nullptr, nullptr, rank == 0 ? &queue : nullptr});
    // Rank 1 has no example.
    const bool has_examples = rank == 0;
    reduction.Begin(
        {.vote = {has_examples ? 6u : 0u, false}, .workers = 2, .computed = has_examples});
    if (has_examples) {
      std::ranges::fill(reduction.gradients().host(), 1.3125f);
      for (uint32_t t = 6; t-- > 0;) reduction.TensorDone(t, /*stay=*/true);
    }
    events[rank].Add("computed");
    const Result<StepVote> all = reduction.Finish();
    ASSERT_TRUE(all.ok());
    EXPECT_EQ(all->examples, 6u);
    EXPECT_EQ(events[rank].list().front(), "computed");
    for (const float sum : reduction.gradients().host()) ASSERT_EQ(sum, 1.3125f);
    EXPECT_TRUE(reduction.has_update());
  });
}

// d1 and out at the servers: their tensors are in no bucket, and are packed without those of d2.
TEST_F(DenseReductionTest, TensorsOfServersTravelPackedAndInNoBucket) {
  job_.model.layers[1].dense_exchange = job_.model.layers[3].dense_exchange = "servers";
  const std::vector<DenseTensor>& tensors = model_->tensors();
  const DensePlan plan = PlanDense(job_, tensors, DenseShards(tensors), {});
  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_THAT(plan.buckets[0].tensors, testing::ElementsAre(3, 2));
  EXPECT_THAT(plan.bucket_of, testing::ElementsAre(-1, -1, 0, 0, -1, -1));

  DenseAtServers packed(job_, tensors);
  std::vector<float> flat(model_->dense_floats());
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<float>(i);
  const std::span<float> gradients = packed.Pack(flat);
  ASSERT_EQ(gradients.size(), packed.keys().size() * kDenseChunkFloats);
  size_t at = 0;
  for (const uint32_t t : {0u, 1u, 4u, 5u}) {
    const FloatRun run = RunOf(tensors[t]);
    for (size_t i = 0; i < run.size; ++i, ++at) EXPECT_EQ(gradients[at], flat[run.begin + i]);
    EXPECT_EQ(packed.keys()[(at - run.size) / kDenseChunkFloats], Key{t} << 32);
  }
  EXPECT_EQ(at, gradients.size());
  std::vector<float> weights(flat.size(), -1.0f);
  std::ranges::copy(gradients, packed.PlaceIn(weights).begin());
  packed.Unpack(weights);
  for (const uint32_t t : {0u, 1u, 2u, 3u, 4u, 5u}) {
    const FloatRun run = RunOf(tensors[t]);
    EXPECT_EQ(weights[run.begin], t == 2 || t == 3 ? -1.0f : flat[run.begin]) << t;
  }

  // With all of them at the servers nothing is copied.
  job_.model.layers[2].dense_exchange = "servers";
  DenseAtServers all(job_, tensors);
  EXPECT_EQ(all.PlaceIn(flat).data(), flat.data());
  EXPECT_EQ(all.Pack(flat).data(), flat.data());
  EXPECT_EQ(all.runs().size(), 1u);
}

}  // namespace
}  // namespace hdps
