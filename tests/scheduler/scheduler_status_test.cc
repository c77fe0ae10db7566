// Tests a scheduler's answers about the state of its job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/job/job_file.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "scheduler/scheduler_node.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A process that is not a member may ask at any time; it changes nothing.
TEST_F(SchedulerNodeTest, TellsWhoeverAsksHowTheJobIs) {
  Start();
  const auto ask = [&] {
    Frame frame = EncodeMessage(StatusRequest());
    frame.header.request_id = 77;
    cluster_->node->OnFrame({4711}, frame);
    StatusReply reply;
    for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
      if (out.to != PeerId{4711}) continue;
      EXPECT_EQ(out.frame.header.request_id, 77u);
      EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    }
    return reply;
  };
  StatusReply status = ask();
  EXPECT_EQ(status.job, "scripted");
  EXPECT_THAT(status.state, StartsWith("waiting for 1 of 1 server and 2 of 2 workers"));
  EXPECT_EQ(status.view, ViewId{0});
  EXPECT_TRUE(status.members.empty());
  EXPECT_TRUE(cluster_->RunUntil([&] { return ask().clock >= 10; }));
  status = ask();
  EXPECT_EQ(status.view, ViewId{1});
  ASSERT_EQ(status.members.size(), 3u);
  EXPECT_EQ(status.members[0].name, "server 0 (server a)");
  EXPECT_EQ(status.members[2].name, "worker 1 (worker b)");
  EXPECT_GE(status.members[2].clock, 10);
  EXPECT_LT(status.members[2].silent_ms, 1000);
  EXPECT_EQ(status.heartbeat_ms, options_.job.cluster.heartbeat_ms);
  EXPECT_EQ(status.want, Want::kNobody);
  // The members' reports about themselves, and their commands.
  ScriptedMember& worker = cluster_->member("worker b");
  worker.client.ReportActivity(
      {"pull", "", WaitReason::kMembers, 700, {{cluster_->member("server a").self, 650}}});
  EXPECT_TRUE(cluster_->RunUntil([&] { return ask().members[2].activity.stage == "pull"; }));
  status = ask();
  // The status has no peer ids, because others would need them to send under these names.
  for (const MemberStatus& member : status.members) {
    EXPECT_EQ(member.number, static_cast<uint64_t>(&member - status.members.data()) + 1);
  }
  ASSERT_EQ(status.members[2].activity.awaited.size(), 1u);
  EXPECT_EQ(status.members[2].activity.awaited[0].peer.value, status.members[0].number);
  EXPECT_EQ(status.members[2].pending_command, "train");
  EXPECT_EQ(status.members[0].pending_command, "");
}

TEST_F(SchedulerNodeTest, AWaitForRowsIsSaidOnceAMinute) {
  Start();
  ASSERT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 3; }));
  for (const char* name : {"worker a", "worker b"}) {
    cluster_->member(name).mute = true;
    cluster_->member(name).client.ReportActivity(
        {"train", "log/a.csv:7", WaitReason::kRows, 12'000, {}});
  }
  EXPECT_FALSE(cluster_->RunUntil([] { return false; }, 100'000));
  EXPECT_EQ(
      std::ranges::count(cluster_->notices, "the job waits for rows after log/a.csv:7, for 12 s"),
      2);
  EXPECT_FALSE(cluster_->Noticed("has been at step"));
}

TEST_F(SchedulerNodeTest, TellsReadersWhereRowsAre) {
  const auto ask = [&] {
    cluster_->node->OnFrame({4711}, EncodeMessage(RowPlacesRequest()));
    RowPlacesReply reply;
    for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
      if (out.to != PeerId{4711}) continue;
      EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    }
    return reply;
  };
  options_.guests_read = true;
  Start();
  EXPECT_EQ(ask().code, Code::kUnavailable);
  EXPECT_TRUE(cluster_->RunUntil([&] { return ask().code == Code::kOk; }));
  const RowPlacesReply places = ask();
  EXPECT_EQ(places.view, ViewId{1});
  ASSERT_EQ(places.servers.size(), 1u);
  EXPECT_EQ(places.servers[0].peer, cluster_->member("server a").self);
  EXPECT_EQ(places.shards.owner, std::vector<ServerId>(4, ServerId{0}));
}

// Whoever knows the job can join, so a stranger from another machine is not told it.
TEST_F(SchedulerNodeTest, TellsNobodyOfRowsAndJobUnlessGuestsMayRead) {
  Start();
  EXPECT_TRUE(cluster_->RunUntil([&] { return !cluster_->transcript().empty(); }));
  cluster_->node->OnFrame({4711}, EncodeMessage(RowPlacesRequest()));
  size_t answers = 0;
  for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
    if (out.to != PeerId{4711}) continue;
    RowPlacesReply reply;
    EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    EXPECT_EQ(reply.code, Code::kInvalidArgument);
    EXPECT_THAT(reply.message, HasSubstr("hdps keygen"));
    EXPECT_TRUE(reply.servers.empty() && reply.shards.owner.empty());
    ++answers;
  }
  cluster_->node->OnFrame({4711}, EncodeMessage(JobRequest()));
  for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
    if (out.to != PeerId{4711}) continue;
    JobReply reply;
    EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    EXPECT_EQ(reply.code, Code::kInvalidArgument);
    EXPECT_TRUE(reply.text.empty());
    ++answers;
  }
  EXPECT_EQ(answers, 2u);
}

TEST_F(SchedulerNodeTest, TellsWhomItWaitsForAndSinceWhen) {
  Start();
  const auto ask = [&] {
    Frame frame = EncodeMessage(StatusRequest());
    cluster_->node->OnFrame({4711}, frame);
    StatusReply reply;
    for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
      if (out.to != PeerId{4711}) continue;
      EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    }
    return reply;
  };
  StatusReply status = ask();
  EXPECT_EQ(status.want, Want::kFirst);
  EXPECT_EQ(status.missing, "1 of 1 server and 2 of 2 workers");
  JoinRequest stranger;
  stranger.role = Role::kWorker;
  stranger.job_digest = 1;
  stranger.host = "host-z 17";
  Frame join = EncodeMessage(stranger);
  cluster_->node->OnFrame({99}, join);
  EXPECT_THAT(ask().reason, StartsWith("host-z 17 was refused: "));
  EXPECT_TRUE(cluster_->RunUntil([&] { return ask().clock >= 10; }));
  EXPECT_EQ(ask().want, Want::kNobody);
  ScaleRequest more;
  more.workers = 1;
  Frame scale = EncodeMessage(more);
  cluster_->node->OnFrame({4711}, scale);
  cluster_->node->TakeOutput();
  status = ask();
  EXPECT_EQ(status.want, Want::kNewcomers);
  EXPECT_THAT(status.missing, StartsWith("1 of 3 workers"));
}

}  // namespace
}  // namespace hdps
