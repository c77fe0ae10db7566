// What a scheduler tells those who ask how its job is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scheduler_node.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::StartsWith;

// Of no member, at any time; it changes nothing.
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
}

}  // namespace
}  // namespace hdps
