// Tests which view comes next.
#include "scheduler/members/forming.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/members/replica_plan.h"
#include "tests/scheduler/members/arrivals.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<uint64_t> PeersOf(const std::vector<Member>& members) {
  std::vector<uint64_t> peers;
  for (const Member& member : members) peers.push_back(member.peer.value);
  return peers;
}

class FormingTest : public ::testing::Test {
 protected:
  FormingTest() {
    FillPlaces(rendezvous_, 0);
    first_ = FirstView(rendezvous_, 1);
  }
  Rendezvous rendezvous_{ClusterOf(3, 2)};
  View first_;
};

TEST_F(FormingTest, TheFirstViewHasNumberOneAndACopyOfEachGroup) {
  EXPECT_EQ(first_.view, kFirstView);
  EXPECT_EQ(first_.placed, kFirstView);
  EXPECT_EQ(first_.restarts, 0u);
  EXPECT_THAT(PeersOf(first_.servers), ElementsAre(10, 11, 12));
  EXPECT_THAT(PeersOf(first_.workers), ElementsAre(20, 21));
  EXPECT_THAT(MissingCopies(first_, 1), IsEmpty());
}

TEST_F(FormingTest, AWayBackIsARestartWithThoseThatAreHere) {
  rendezvous_.Vacate({11});
  rendezvous_.Admit({13}, RequestOf(Role::kServer, "s3"), 0);
  View before = first_;
  before.restarts = 4;
  const View next = ViewOfRestart(before, rendezvous_, 1);
  EXPECT_EQ(next.view.value, 2u);
  EXPECT_EQ(next.placed.value, 2u);
  EXPECT_EQ(next.restarts, 5u);
  EXPECT_THAT(PeersOf(next.servers), ElementsAre(10, 13, 12));
  EXPECT_THAT(MissingCopies(next, 1), IsEmpty());
}

TEST_F(FormingTest, WithoutACompleteClusterTheMembersStay) {
  rendezvous_.Vacate({11});
  const View next = ViewOfRestart(first_, rendezvous_, 1);
  EXPECT_EQ(next.view.value, 2u);
  EXPECT_EQ(next.restarts, 1u);
  EXPECT_THAT(PeersOf(next.servers), ElementsAre(10, 11, 12));
}

TEST_F(FormingTest, OtherNumbersMoveFewShardsAndAreNoRestart) {
  rendezvous_.OpenPlaces(Role::kServer, 4);
  rendezvous_.Admit({13}, RequestOf(Role::kServer, "s3"), 0);
  const View next = ViewOfNewNumbers(first_, rendezvous_, 1);
  EXPECT_EQ(next.view.value, 2u);
  EXPECT_EQ(next.placed.value, 2u);
  EXPECT_EQ(next.restarts, 0u);
  EXPECT_EQ(next.servers.size(), 4u);
  uint32_t moved = 0;
  for (size_t shard = 0; shard < first_.shards.owner.size(); ++shard) {
    moved += first_.shards.owner[shard] != next.shards.owner[shard];
  }
  EXPECT_EQ(moved, 2u);  // An equal share of eight for the fourth.
}

TEST_F(FormingTest, ThoseThatAreLeftMakeTheCopiesThatTheyCan) {
  const std::optional<ViewAfterLoss> after = WithoutLost(first_, {{11}});
  ASSERT_TRUE(after);
  EXPECT_EQ(MissingCopies(after->view, 1).size(), 2u);
  const View next = ViewOfThoseLeft(after->view, 1);
  EXPECT_EQ(next.view.value, after->view.view.value + 1);
  EXPECT_EQ(next.placed, next.view);
  EXPECT_THAT(MissingCopies(next, 1), IsEmpty());
  EXPECT_THAT(PeersOf(next.Holders()), ElementsAre(10, 12));
}

}  // namespace
}  // namespace hdps
