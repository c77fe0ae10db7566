// Tests which members hold which copies, and which takes over from which.
#include "scheduler/members/replica_plan.h"

#include <set>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/status_messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/balance/shard_placement.h"
#include "scheduler/members/rendezvous.h"
#include "scheduler/members/scaling.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

View FirstView(uint32_t servers) {
  View view;
  view.view = {1};
  for (uint32_t s = 0; s < servers; ++s) {
    view.servers.push_back({{10 + s}, s, "tcp://host-" + std::to_string(s) + ":1"});
  }
  view.workers = {{{20}, 0, ""}, {{21}, 1, ""}};
  view.shards = EvenShards(8, servers);
  return view;
}

std::vector<uint64_t> Holders(const View& view, uint32_t group) {
  std::vector<uint64_t> peers;
  for (const Member& member : view.HoldersOf({group})) peers.push_back(member.peer.value);
  return peers;
}

TEST(ReplicaPlan, BackupsAreOnTheServersThatFollow) {
  View view = FirstView(3);
  PlaceGroups(&view, view.servers, 0);
  EXPECT_THAT(view.backups, IsEmpty());
  PlaceGroups(&view, view.servers, 1);
  EXPECT_THAT(Holders(view, 0), ElementsAre(10, 11));
  EXPECT_THAT(Holders(view, 2), ElementsAre(12, 10));
  PlaceGroups(&view, view.servers, 2);
  EXPECT_THAT(Holders(view, 1), ElementsAre(11, 12, 10));
  EXPECT_THAT(MissingCopies(view, 2), IsEmpty());
  // As many copies as there are servers for.
  View alone = FirstView(1);
  PlaceGroups(&alone, alone.servers, 2);
  EXPECT_THAT(Holders(alone, 0), ElementsAre(10));
}

TEST(ReplicaPlan, TheFirstBackupThatIsLeftTakesOver) {
  View view = FirstView(3);
  PlaceGroups(&view, view.servers, 2);
  const std::optional<ViewAfterLoss> first = WithoutLost(view, {{11}});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->view.view.value, 2u);
  EXPECT_EQ(first->view.restarts, view.restarts);
  EXPECT_EQ(first->view.shards.owner, view.shards.owner);
  ASSERT_EQ(first->promotions.size(), 1u);
  EXPECT_EQ(first->promotions[0].group, ServerId{1});
  EXPECT_EQ(first->promotions[0].to.peer, PeerId{12});
  EXPECT_THAT(Holders(first->view, 0), ElementsAre(10, 12));
  EXPECT_THAT(Holders(first->view, 1), ElementsAre(12, 10));
  EXPECT_THAT(Holders(first->view, 2), ElementsAre(12, 10));
  EXPECT_THAT(MissingCopies(first->view, 2),
              ElementsAre("group 0 has 1 of 2 copies until a server joins",
                          "group 1 has 1 of 2 copies until a server joins",
                          "group 2 has 1 of 2 copies until a server joins"));
  const std::optional<ViewAfterLoss> second = WithoutLost(first->view, {{12}});
  ASSERT_TRUE(second.has_value());
  for (uint32_t group : {0, 1, 2}) EXPECT_THAT(Holders(second->view, group), ElementsAre(10));
  EXPECT_EQ(MissingCopies(second->view, 2)[1], "group 1 has no copy until a server joins");
  // One process is left, with its own rank.
  EXPECT_EQ(second->view.Holders().size(), 1u);
  EXPECT_EQ(second->view.servers[2].rank, 0u);
  EXPECT_FALSE(WithoutLost(second->view, {{10}}).has_value());
}

TEST(ReplicaPlan, TheJobGoesBackForAWorkerOrTheLastHolder) {
  View view = FirstView(3);
  PlaceGroups(&view, view.servers, 1);
  EXPECT_FALSE(WithoutLost(view, {{20}}).has_value());
  EXPECT_FALSE(WithoutLost(view, {{10}, {11}}).has_value());
  PlaceGroups(&view, view.servers, 2);
  EXPECT_TRUE(WithoutLost(view, {{10}, {11}}).has_value());
  EXPECT_FALSE(WithoutLost(view, {{10}, {21}}).has_value());
}

TEST(ReplicaPlan, SaysWhenACopyIsOnTheSameMachine) {
  View view = FirstView(2);
  PlaceGroups(&view, view.servers, 1);
  EXPECT_FALSE(CopiesShareMachine(view));
  view.servers[1].address = "tcp://host-0:2";
  PlaceGroups(&view, view.servers, 1);
  EXPECT_TRUE(CopiesShareMachine(view));
}

TEST(ReplicaPlan, CopiesNeedOtherServers) {
  Job job;
  job.cluster.replicas = 2;
  EXPECT_TRUE(ValidateCluster(job, 3, 1).ok());
  const Status refused = ValidateCluster(job, 2, 1);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("cluster.replicas is 2"));
  EXPECT_THAT(refused.message(), HasSubstr("--servers=2"));
  EXPECT_TRUE(ValidateMembers(job, 2, 1).ok());
}

TEST(ReplicaPlan, AGroupIsAtTheServersThatFollowItsNumber) {
  View view = FirstView(4);
  const std::vector<Member> left = {view.servers[0], view.servers[2], view.servers[3]};
  PlaceGroups(&view, left, 1);
  EXPECT_THAT(Holders(view, 0), ElementsAre(10, 12));
  EXPECT_THAT(Holders(view, 1), ElementsAre(12, 13));
  EXPECT_THAT(Holders(view, 2), ElementsAre(12, 13));
  EXPECT_THAT(Holders(view, 3), ElementsAre(13, 10));
  PlaceGroups(&view, {left[1]}, 1);
  EXPECT_THAT(Holders(view, 3), ElementsAre(12));
}

TEST(ReplicaPlan, RowsComeOnlyWhereTheyAreNot) {
  View before = FirstView(3);
  before.shards = EvenShards(8, 3);  // Owners of the shards: 0 0 0 1 1 1 2 2.
  PlaceGroups(&before, before.servers, 1);
  EXPECT_THAT(IncomingShards(before, before), IsEmpty());
  // Another process of server 1: the rows of its group, and the copies of the one before it.
  const View lost = WithoutLost(before, {{11}})->view;
  View again = before;
  again.servers[1].peer = {15};
  PlaceGroups(&again, again.servers, 1);
  const auto come = IncomingShards(lost, again);
  ASSERT_EQ(come.size(), 1u);
  EXPECT_THAT(come.at({15}),
              ElementsAre(ShardId{0}, ShardId{1}, ShardId{2}, ShardId{3}, ShardId{4}, ShardId{5}));
  // A shard that changes its group is sent to both holders, even to one that had it in another
  // group.
  View moved = before;
  moved.shards.owner[0] = {2};  // From servers 0 and 1 to servers 2 and 0.
  const auto both = IncomingShards(before, moved);
  EXPECT_THAT(both.at({12}), ElementsAre(ShardId{0}));
  EXPECT_THAT(both.at({10}), ElementsAre(ShardId{0}));
}

TEST(ReplicaPlan, AJobWithCopiesKeepsServersForThem) {
  Job job;
  job.cluster.replicas = 1;
  job.cluster.shards = 8;
  Rendezvous rendezvous({.num_servers = 3, .num_workers = 2});
  rendezvous.Restore(FirstView(3), {}, 0);
  rendezvous.Vacate({11});  // Its place is free, but still counts as one of three.
  Scaling scaling;
  ScaleRequest servers;
  servers.servers = -2;
  const Result<std::string> refused = scaling.Accept(job, servers, FirstView(3), rendezvous);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("cluster.replicas is 1"));
  EXPECT_THAT(refused.status().message(), HasSubstr("at least 2 must stay"));
  EXPECT_FALSE(scaling.under_way());
  servers.servers = 1;
  ASSERT_TRUE(scaling.Accept(job, servers, FirstView(3), rendezvous).ok());
  EXPECT_EQ(scaling.servers(), 4u);
  EXPECT_EQ(scaling.workers(), 2u);
}

}  // namespace
}  // namespace hdps
