// Tests groups of a view's workers: when they are formed again, how waits in them end, and
// counters.
#include "worker/role/worker_groups.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/view.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

View ViewOf(uint64_t number, uint32_t workers) {
  View view;
  view.view = ViewId{number};
  for (uint32_t w = 0; w < workers; ++w) view.workers.push_back({PeerId{100 + w}, w, ""});
  return view;
}

// A group without calls that counts how often it was ended.
class EndedGroup : public Collective {
 public:
  explicit EndedGroup(int* aborts) : aborts_(aborts) {}
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return 1; }
  const char* name() const override { return "ended"; }
  Status AllReduce(std::span<const ReducedValues>) override { return Status(); }
  Status ReduceScatter(const ReducedValues&, std::span<const size_t>, void*) override {
    return Status();
  }
  Status Broadcast(uint32_t, std::span<std::byte>, MemorySpace) override { return Status(); }
  Status AllGather(std::span<const std::byte>, std::span<const size_t>, std::span<std::byte>,
                   MemorySpace) override {
    return Status();
  }
  Status Exchange(std::span<const RankBytes>, std::span<const RankBytes>) override {
    return Status();
  }
  Status Barrier() override { return Status(); }
  Result<std::unique_ptr<Collective>> Split(uint32_t) override {
    return std::unique_ptr<Collective>();
  }
  void Abort() override { ++*aborts_; }
  CollectiveCounts counts() const override { return {}; }

 private:
  int* const aborts_;
};

class WorkerGroupsTest : public testing::Test {
 protected:
  WorkerGroupsTest() {
    job_.parallel.collective = "gloo";
    std::signal(SIGPIPE, SIG_IGN);  // As every program has it: Gloo writes to ranks that have gone.
  }

  // Runs each worker of the view on its own thread, with the group that it keeps.
  void OnWorkersOf(const View& view, const std::function<void(uint32_t, WorkerGroups&)>& body) {
    const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
    const auto ranks = static_cast<uint32_t>(view.workers.size());
    std::latch formed(ranks);
    OnAllRanks(ranks, [&](uint32_t rank) {
      WorkerGroups groups(job_, "127.0.0.1", *store, board_);
      Result<std::unique_ptr<Collective>> group = groups.FormSum(view, rank, /*gpu=*/-1);
      formed.arrive_and_wait();  // Who leaves at once would end the others' connecting.
      ASSERT_TRUE(group.ok()) << group.status().message();
      groups.KeepSum(view, *std::move(group));
      body(rank, groups);
    });
  }

  Job job_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  ActivityBoard board_{*clock_};
};

TEST_F(WorkerGroupsTest, AGroupIsOfTheWorkersOfAViewUntilItIsOutdated) {
  OnWorkersOf(ViewOf(3, 2), [](uint32_t, WorkerGroups& groups) {
    EXPECT_TRUE(groups.any());
    EXPECT_TRUE(groups.SumIsOf(ViewOf(3, 2)));
    EXPECT_TRUE(groups.SumIsOf(ViewOf(4, 2))) << "the servers alone are others";
    EXPECT_FALSE(groups.SumIsOf(ViewOf(4, 3)));
    groups.Outdate();
    EXPECT_FALSE(groups.SumIsOf(ViewOf(3, 2)));
    EXPECT_NE(groups.sum(), nullptr) << "it is there for whoever still uses it";
    EXPECT_TRUE(groups.sum()->Barrier().ok());
  });
}

TEST_F(WorkerGroupsTest, CallsOfGroupsThatAreNoMoreStayCounted) {
  OnWorkersOf(ViewOf(3, 2), [](uint32_t, WorkerGroups& groups) {
    std::vector<float> values(10, 1.0f);
    ASSERT_TRUE(groups.sum()->AllReduceSum(values).ok());
    EXPECT_EQ(values, std::vector<float>(10, 2.0f));
    ASSERT_TRUE(groups.sum()->Barrier().ok());
    EXPECT_EQ(groups.counts().of(CollectiveKind::kAllReduce).calls, 1u);
    groups.LeaveSum();
    EXPECT_EQ(groups.sum(), nullptr);
    EXPECT_FALSE(groups.any());
    EXPECT_EQ(groups.counts().of(CollectiveKind::kAllReduce).calls, 1u);
  });
}

// Of three floats the order of addition can be told: 2^24 + 1 is 2^24, and 1 + 1 is not.
TEST_F(WorkerGroupsTest, TheJobSaysWhoAddsUp) {
  for (const bool library : {false, true}) {
    job_.parallel.reduction = library ? ReductionOrder::kLibrary : ReductionOrder::kOrdered;
    OnWorkersOf(ViewOf(3, 3), [&](uint32_t rank, WorkerGroups& groups) {
      std::vector<float> values(300, rank == 0 ? 0x1p24f : 1.0f);
      ASSERT_TRUE(groups.sum()->AllReduceSum(values).ok());
      // In Gloo's ring each part of the values begins with another rank.
      EXPECT_EQ(values == std::vector<float>(300, 0x1p24f), !library);
    });
  }
}

// Worker 1 never comes: only the end of the job can end the wait of worker 0.
TEST_F(WorkerGroupsTest, AbortEndsAWaitForARankThatDoesNotCome) {
  OnWorkersOf(ViewOf(3, 2), [](uint32_t rank, WorkerGroups& groups) {
    if (rank == 1) return;
    const std::unique_ptr<Thread> other = StartThread("abort", [&] { groups.Abort(); });
    const Status status = groups.sum()->Barrier();
    other->Join();
    EXPECT_FALSE(status.ok());
  });
}

TEST_F(WorkerGroupsTest, WhatIsKeptTooLateIsAbortedAtOnce) {
  for (const bool for_good : {false, true}) {
    for (const uint64_t number : {1, 2}) {
      SCOPED_TRACE(testing::Message() << for_good << " " << number);
      const View view = ViewOf(number, 1);
      const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
      WorkerGroups groups(job_, "127.0.0.1", *store, board_);
      for_good ? groups.Abort() : groups.Interrupt({2});
      int aborts = 0;
      groups.KeepSum(view, std::make_unique<EndedGroup>(&aborts));
      const bool late = for_good || number < 2;
      EXPECT_EQ(aborts, late ? 1 : 0);
      groups.Interrupt({3});
      EXPECT_EQ(aborts, late ? 2 : 1) << "what is kept is ended when that is told";
    }
  }
}

TEST_F(WorkerGroupsTest, LanesAreAsManyAsCopiesButAFew) {
  for (const auto& [copies, lanes] : {std::pair(1u, 1u), std::pair(3u, 3u), std::pair(20u, 8u)}) {
    job_.parallel.interleave_num = copies;
    OnWorkersOf(ViewOf(3, 2), [expected = lanes](uint32_t rank, WorkerGroups& groups) {
      EXPECT_FALSE(groups.LanesAreOf(ViewOf(3, 2)));
      const Status formed = groups.FormLanes(ViewOf(3, 2), rank, /*gpu=*/-1);
      ASSERT_TRUE(formed.ok()) << formed.message();
      EXPECT_EQ(groups.lanes().size(), expected);
      EXPECT_TRUE(groups.LanesAreOf(ViewOf(3, 2)));
      EXPECT_FALSE(groups.LanesAreOf(ViewOf(3, 3)));
      for (Collective* const lane : groups.lanes()) EXPECT_TRUE(lane->Barrier().ok());
      groups.LeaveLanes();
      EXPECT_TRUE(groups.lanes().empty());
    });
  }
}

TEST_F(WorkerGroupsTest, OneWorkerMeetsNobody) {
  job_.parallel.interleave_num = 4;
  const std::unique_ptr<RendezvousStore> store = NewMemoryStore();
  WorkerGroups groups(job_, "127.0.0.1", *store, board_);
  ASSERT_TRUE(groups.FormLanes(ViewOf(3, 1), 0, /*gpu=*/-1).ok());
  EXPECT_TRUE(groups.lanes().empty());
  EXPECT_FALSE(groups.any());
}

}  // namespace
}  // namespace hdps
