// Tests the answers to requests for other numbers of members.
#include "scheduler/members/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/protocol/view.h"
#include "tests/scheduler/members/arrivals.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class ScalingTest : public ::testing::Test {
 protected:
  ScalingTest() {
    job_.cluster.shards = 8;
    FillPlaces(rendezvous_, 0);
    view_ = rendezvous_.FormView(ViewId{1});
  }
  Scaling::Answer Ask(uint64_t from, int32_t servers, bool complete = true) {
    ScaleRequest request;
    request.servers = servers;
    return scaling_.OnRequest({from}, request, job_, complete ? &view_ : nullptr, rendezvous_, 7);
  }
  Job job_;
  Rendezvous rendezvous_{ClusterOf(2, 2)};
  View view_;
  Scaling scaling_;
};

TEST_F(ScalingTest, AQuestionThatIsAskedAgainIsAnsweredAlikeAndDoneOnce) {
  const Scaling::Answer first = Ask(50, 1);
  EXPECT_TRUE(first.accepted);
  EXPECT_THAT(first.reply.message, HasSubstr("the job is to go on with 3 servers and 2 workers"));
  const Scaling::Answer again = Ask(50, 1);
  EXPECT_FALSE(again.accepted);
  EXPECT_EQ(again.reply.message, first.reply.message);
  EXPECT_EQ(scaling_.servers(), 3u);
  EXPECT_EQ(scaling_.asked_at(), 7);
}

TEST_F(ScalingTest, WhileMembersAreMissingItHasToBeAskedAgain) {
  EXPECT_EQ(Ask(50, 1, /*complete=*/false).reply.code, Code::kUnavailable);
  EXPECT_FALSE(scaling_.under_way());
  EXPECT_TRUE(Ask(50, 1).accepted);
}

TEST_F(ScalingTest, WhatIsNoClusterIsRefused) {
  const Scaling::Answer answer = Ask(50, -2);
  EXPECT_FALSE(answer.accepted);
  EXPECT_EQ(answer.reply.code, Code::kInvalidArgument);
  EXPECT_FALSE(scaling_.under_way());
}

TEST_F(ScalingTest, ThoseWithTheHighestRanksAreDismissed) {
  ASSERT_TRUE(Ask(50, -1).accepted);
  ASSERT_TRUE(scaling_.ready(rendezvous_));
  scaling_.Dismiss(rendezvous_);
  EXPECT_TRUE(scaling_.dismissed({11}));
  EXPECT_FALSE(scaling_.dismissed({10}));
  EXPECT_FALSE(scaling_.dismissed({21}));
  EXPECT_FALSE(scaling_.under_way());
  EXPECT_EQ(rendezvous_.Count(Role::kServer), 1u);
}

// The newcomer has come and the members are to change, but no view with it is entered.
TEST_F(ScalingTest, AfterAMoveThatFailedItCanBeAskedForAgain) {
  ASSERT_TRUE(Ask(50, 1).accepted);
  rendezvous_.Admit({12}, RequestOf(Role::kServer, "s2"), 0);
  ASSERT_TRUE(scaling_.ready(rendezvous_));
  scaling_.Dismiss(rendezvous_);
  EXPECT_TRUE(Ask(51, 1).accepted);
  EXPECT_EQ(scaling_.servers(), 3u);
  EXPECT_TRUE(scaling_.ready(rendezvous_));
}

}  // namespace
}  // namespace hdps
