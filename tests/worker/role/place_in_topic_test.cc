// Tests where a process that takes a worker's place goes on in a topic.
#include "worker/role/place_in_topic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An order that began at step 10, at offset 100 of the only partition.
constexpr Clock kSince = 10;

struct Found {
  Status status;
  EpochPosition position;
};

// `known`: steps and what servers say that they have.
Found Find(Clock clock, Clock reached, std::map<Clock, std::vector<PartitionSpan>> known) {
  PlaceStand stand;
  stand.clock = clock;
  stand.reached = reached;
  stand.messages = std::move(known);
  Found found;
  found.position = {.clock = clock, .offsets = {{0, 100}}};
  found.status = FindInTopic(stand, kSince, &found.position);
  return found;
}

TEST(FindInTopicTest, WithoutAPushItIsWhereTheOrderBegan) {
  // Step 9 is of an order before, maybe of other partitions.
  const Found found = Find(kSince, kSince, {{9, {{1, 5, 7}}}});
  EXPECT_TRUE(found.status.ok());
  EXPECT_THAT(found.position.offsets, ElementsAre(PartitionOffset{0, 100}));
  EXPECT_TRUE(found.position.step_ends.empty());
}

TEST(FindInTopicTest, AStepBeginsBehindTheOneBefore) {
  const Found found = Find(12, 12, {{11, {{0, 120, 140}}}});
  EXPECT_TRUE(found.status.ok());
  EXPECT_THAT(found.position.offsets, ElementsAre(PartitionOffset{0, 140}));
  EXPECT_TRUE(found.position.step_ends.empty());
}

TEST(FindInTopicTest, StepsThatSomeServersHaveEndWhereTheyEnded) {
  // Some server has a push of steps 12 and 14, and none has one of step 13.
  const Found found =
      Find(12, 15, {{11, {{0, 120, 140}}}, {12, {{0, 140, 141}}}, {14, {{0, 150, 160}}}});
  EXPECT_TRUE(found.status.ok());
  EXPECT_THAT(found.position.offsets, ElementsAre(PartitionOffset{0, 140}));
  EXPECT_THAT(found.position.step_ends, ElementsAre(ElementsAre(PartitionOffset{0, 141}),
                                                    ElementsAre(PartitionOffset{0, 150}),
                                                    ElementsAre(PartitionOffset{0, 160})));
}

TEST(FindInTopicTest, AFirstStepThatWasPushedTellsItsBegin) {
  // The order says nothing: data.kafka.start did.
  const Found found = Find(kSince, 11, {{10, {{0, 77, 90}}}});
  EXPECT_THAT(found.position.offsets, ElementsAre(PartitionOffset{0, 77}));
  EXPECT_THAT(found.position.step_ends, ElementsAre(ElementsAre(PartitionOffset{0, 90})));
}

TEST(FindInTopicTest, WhatNoServerKnowsIsTold) {
  for (const Found& found : {Find(12, 12, {}), Find(12, 14, {{11, {{0, 120, 140}}}})}) {
    EXPECT_EQ(found.status.code(), Code::kCorruption);
    EXPECT_THAT(found.status.message(), HasSubstr("no server says which messages"));
  }
}

}  // namespace
}  // namespace hdps
