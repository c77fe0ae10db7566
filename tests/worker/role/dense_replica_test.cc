// Tests a worker's dense tensors: read from the servers once, written back whole.
#include "worker/role/dense_replica.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "common/protocol/row_messages.h"
#include "embedding/table.h"
#include "tests/worker/step/step_fixture.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;

constexpr WorkerPlace kAlone = {0, 1};

class DenseReplicaTest : public StepTest {
 protected:
  DenseReplicaTest()
      : StepTest({"parallel.dense_exchange=allreduce"}), part_(job_, *files_, *executor_) {
    EXPECT_TRUE(part_.MakeModel(0).ok());
    EXPECT_TRUE(part_.Follow(kAlone, [] {}).ok());
    rows_ = std::make_unique<DenseRows>(job_, part_.whole().tensors(), servers_.channel());
    replica_ = std::make_unique<DenseReplica>(job_, *rows_, part_, *executor_, *clock_);
  }
  // Fills the servers: weights and state of chunk c are all c + 1.
  void FillServers() {
    for (size_t c = 0; c < rows_->keys().size(); ++c) {
      servers_.rows[{rows_->table().value, rows_->keys()[c]}].assign(RowFloats(),
                                                                     static_cast<float>(c + 1));
    }
  }
  size_t RowFloats() const { return job_.tables.back().dim + StateFloats(); }

  size_t StateFloats() const {
    return TableSlice(job_.tables.back(), rows_->table(), /*seed=*/1).state_floats();
  }

  TrainedPart part_;
  std::unique_ptr<DenseRows> rows_;
  std::unique_ptr<DenseReplica> replica_;
};

TEST_F(DenseReplicaTest, RowsOfTheModelAreReadAndStoredByTheirKeys) {
  ASSERT_FALSE(rows_->empty());
  std::vector<float> rows(rows_->keys().size() * rows_->spec().dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  ASSERT_TRUE(rows_->Store(rows_->spec().dim, rows_->keys(), 3, rows).ok());
  EXPECT_EQ(servers_.stored.size(), rows_->keys().size());
  std::vector<float> read(rows.size());
  ASSERT_TRUE(rows_->Read(PullMode::kRead, rows_->spec().dim, rows_->keys(), 4, read).ok());
  EXPECT_EQ(read, rows);
  ASSERT_TRUE(rows_->ReadInto(*model_, 5).ok());
  const std::span<const float> dense = model_->DenseInPlace();
  EXPECT_TRUE(std::ranges::equal(dense, rows));
  EXPECT_THAT(servers_.log(), ElementsAre("store 3", "pull 4", "pull 5"));
}

TEST_F(DenseReplicaTest, IsUsedUnderAllreduceAlone) {
  EXPECT_TRUE(replica_->used());
  const Job at_servers = SmallJob({});
  const DenseRows rows(at_servers, model_->tensors(), servers_.channel());
  EXPECT_FALSE(DenseReplica(at_servers, rows, part_, *executor_, *clock_).used());
}

TEST_F(DenseReplicaTest, LoadsOnceAndAgainWhenForgotten) {
  FillServers();
  EXPECT_FALSE(replica_->loaded());
  EXPECT_EQ(replica_->host_state_bytes(), 0u);
  ASSERT_TRUE(replica_->Load(kAlone, 7).ok());
  ASSERT_TRUE(replica_->Load(kAlone, 8).ok());
  EXPECT_THAT(servers_.log(), ElementsAre("pull 7"));
  EXPECT_EQ(servers_.pulled.begin()->second, PullMode::kWithState);
  EXPECT_EQ(replica_->host_state_bytes(), rows_->keys().size() * StateFloats() * sizeof(float));
  const std::span<const float> dense = part_.model().DenseInPlace();
  const size_t dim = job_.tables.back().dim;
  for (size_t i = 0; i < dense.size(); ++i) {
    ASSERT_EQ(dense[i], static_cast<float>(i / dim + 1)) << "the weights are the model's too";
  }
  replica_->Forget();
  EXPECT_FALSE(replica_->loaded());
  ASSERT_TRUE(replica_->Load(kAlone, 9).ok());
  EXPECT_THAT(servers_.log(), ElementsAre("pull 7", "pull 9"));
}

TEST_F(DenseReplicaTest, StoresWhatItHasWithItsState) {
  ASSERT_TRUE(replica_->Store(kAlone, 6).ok());
  EXPECT_TRUE(servers_.log().empty()) << "nothing was loaded, so nothing has changed";
  FillServers();
  ASSERT_TRUE(replica_->Load(kAlone, 7).ok());
  const auto before = servers_.rows;
  ASSERT_TRUE(replica_->Store(kAlone, 8).ok());
  EXPECT_THAT(servers_.log(), ElementsAre("pull 7", "store 8"));
  EXPECT_EQ(servers_.stored, before);
}

TEST_F(DenseReplicaTest, AStepReducesThroughTheGroupThatWasJoined) {
  FillServers();
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(1);
  ASSERT_TRUE(replica_->JoinGroup(*ranks[0], kAlone).ok());
  ASSERT_TRUE(replica_->Load(kAlone, 0).ok());
  const DenseGroup group = replica_->InGroup(*ranks[0]);
  EXPECT_EQ(group.groups.all, ranks[0].get());
  EXPECT_EQ(group.groups.places, ranks[0].get());
  EXPECT_EQ(group.groups.replicas, nullptr);
  EXPECT_EQ(group.state->keys(), rows_->keys());
  EXPECT_EQ(group.queue, nullptr) << "there is nobody to wait for";
  replica_->LeaveGroup();
}

TEST_F(DenseReplicaTest, RanksThatWouldCallOtherwiseFindOut) {
  const Job exact =
      SmallJob({"parallel.dense_exchange=allreduce", "parallel.gradient_fp32_sync=false"});
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(2);
  OnAllRanks(2, [&](uint32_t rank) {
    const Job& job = rank == 0 ? job_ : exact;
    TrainedPart part(job, *files_, *executor_);
    ASSERT_TRUE(part.MakeModel(0).ok());
    ASSERT_TRUE(part.Follow({rank, 2}, [] {}).ok());
    DenseReplica replica(job, *rows_, part, *executor_, *clock_);
    const Status status = replica.JoinGroup(*ranks[rank], {rank, 2});
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), testing::HasSubstr("parallel.comm_fusion: worker "));
  });
}

// Rank 0 has come anew, rank 1 has the state of step 7, rank 2 that of step 8, whose sum rank 1 did
// not get any more.
TEST_F(DenseReplicaTest, RanksMeetAtTheNewestState) {
  constexpr uint32_t kRanks = 3;
  const auto write = [&](float value) {
    for (auto& [key, row] : servers_.rows) std::ranges::fill(row, value);
  };
  std::vector<std::unique_ptr<TrainedPart>> parts;
  std::vector<std::unique_ptr<DenseReplica>> replicas;
  FillServers();
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    parts.push_back(std::make_unique<TrainedPart>(job_, *files_, *executor_));
    ASSERT_TRUE(parts[rank]->MakeModel(0).ok());
    ASSERT_TRUE(parts[rank]->Follow({rank, kRanks}, [] {}).ok());
    replicas.push_back(
        std::make_unique<DenseReplica>(job_, *rows_, *parts[rank], *executor_, *clock_));
    write(static_cast<float>(rank));
    if (rank == 0) continue;
    ASSERT_TRUE(replicas[rank]->Load({rank, kRanks}, Clock{6 + rank}).ok());
  }
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(kRanks);
  OnAllRanks(kRanks, [&](uint32_t rank) {
    ASSERT_TRUE(replicas[rank]->JoinGroup(*ranks[rank], {rank, kRanks}).ok());
  });
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    SCOPED_TRACE(rank);
    ASSERT_TRUE(replicas[rank]->loaded());
    EXPECT_EQ(replicas[rank]->clock(), 8);
    for (const float weight : parts[rank]->model().DenseInPlace()) ASSERT_EQ(weight, 2);
    for (const float value : replicas[rank]->InGroup(*ranks[rank]).state->Rows()) {
      ASSERT_EQ(value, 2);
    }
    replicas[rank]->LeaveGroup();
  }
}

TEST_F(DenseReplicaTest, WhereNobodyHasAStateItIsReadFromServers) {
  FillServers();
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(1);
  ASSERT_TRUE(replica_->JoinGroup(*ranks[0], kAlone).ok());
  EXPECT_FALSE(replica_->loaded());
  ASSERT_TRUE(replica_->Load(kAlone, 4).ok());
  EXPECT_EQ(replica_->clock(), 4);
  replica_->LeaveGroup();
}

}  // namespace
}  // namespace hdps
