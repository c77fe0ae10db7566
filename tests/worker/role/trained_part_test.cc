// Tests which part of a model a worker trains, and the notice that it changes.
#include "worker/role/trained_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

// Returns a job with two layers; `shard`: how a strategy cuts the first.
Job JobWith(const std::string& shard) {
  const bool cut = !shard.empty();
  const auto job = ParseJob(
      R"({"data": {"format": "csv", "train": ["train.csv"],
                   "columns": [{"name": "y", "type": "label"}, {"name": "x", "type": "numeric"}]},
          "parallel": {"dense_exchange": "allreduce")" +
          std::string(cut ? R"(, "parallel_mode": "hybrid_parallel")" : "") + R"(},
          "model": {"type": "graph", "layers": [
              {"name": "n", "kind": "numeric"},
              {"name": "h", "inputs": ["n"], "units": 32)" +
          (cut ? ", \"shard\": " + shard : "") + R"(},
              {"name": "logit", "inputs": ["h"], "units": 1}]}})",
      "test", {});
  EXPECT_TRUE(job.ok()) << job.status().message();
  return *job;
}

class TrainedPartTest : public testing::Test {
 protected:
  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
};

TEST_F(TrainedPartTest, WithoutACutTheWholeIsTrainedAndNobodyLetsGo) {
  const Job job = JobWith("");
  TrainedPart part(job, *files_, *executor_);
  ASSERT_TRUE(part.MakeModel(0).ok());
  int changes = 0;
  for (const WorkerPlace place : {WorkerPlace{0, 1}, WorkerPlace{1, 2}, WorkerPlace{0, 2}}) {
    ASSERT_TRUE(part.Follow(place, [&] { ++changes; }).ok());
    EXPECT_EQ(part.rank_model(), nullptr);
    EXPECT_EQ(&part.model(), &part.whole());
    EXPECT_EQ(&part.job(), &job);
  }
  EXPECT_EQ(changes, 0);
}

TEST_F(TrainedPartTest, ACutLeavesEachRankASliceAndTellsBeforeItChanges) {
  const Job job = JobWith("[1, 2]");  // Cuts the columns of its weights over two workers.
  TrainedPart part(job, *files_, *executor_);
  ASSERT_TRUE(part.MakeModel(0).ok());
  int changes = 0;
  const auto let_go = [&] {
    ++changes;
    EXPECT_NE(part.rank_model() == nullptr, changes > 1) << "what was there is there still";
  };
  const auto follow = [&](uint32_t rank) {
    const Status status = part.Follow({rank, 2}, let_go);
    EXPECT_TRUE(status.ok()) << status.message();
  };
  follow(0);
  EXPECT_EQ(changes, 1);
  ASSERT_NE(part.rank_model(), nullptr);
  EXPECT_EQ(&part.model(), &part.rank_model()->model());
  EXPECT_EQ(&part.job(), &part.rank_model()->job());
  EXPECT_LT(part.model().tensors()[0].size(), part.whole().tensors()[0].size());
  follow(0);
  EXPECT_EQ(changes, 1) << "nothing has changed";
  follow(1);
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(part.rank_model()->graph().rank, 1u);
}

TEST_F(TrainedPartTest, AStrategyThatDoesNotFitTheWorkersIsRefused) {
  const Job job = JobWith("[1, 2]");
  TrainedPart part(job, *files_, *executor_);
  ASSERT_TRUE(part.MakeModel(0).ok());
  const Status status = part.Follow({0, 3}, [] { FAIL() << "nothing has changed"; });
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
}

TEST_F(TrainedPartTest, RanksOfDifferentStrategiesFindOut) {
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(2);
  const Job job = JobWith(""), cut = JobWith("[1, 2]");
  for (const Job* const other : {&job, &cut}) {
    OnAllRanks(2, [&](uint32_t rank) {
      TrainedPart part(rank == 0 ? job : *other, *files_, *executor_);
      ASSERT_TRUE(part.MakeModel(0).ok());
      ASSERT_TRUE(part.Follow({rank, 2}, [] {}).ok());
      const Status status = part.CompareStrategies(*ranks[rank]);
      EXPECT_EQ(status.ok(), other == &job);
      if (status.ok()) return;
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), testing::HasSubstr("has another strategy than worker"));
    });
  }
}

}  // namespace
}  // namespace hdps
