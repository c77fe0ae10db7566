// Tests which message comes next, and how long is waited for it.
#include "worker/data/kafka/partition_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/data/kafka/scripted_source.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PartitionTurnsTest : public testing::Test {
 protected:
  PartitionTurnsTest() : source_(4, clock_) {}

  PartitionTurns Turns(std::vector<PartitionOffset> from, int64_t flush_ms) {
    EXPECT_TRUE(source_.Begin(from).ok());
    return {source_,
            clock_,
            std::move(from),
            {.topic = "kafka://b:1/clicks",
             .flush_ms = flush_ms,
             .warn = [this](const std::string& w) { warnings_.push_back(w); },
             .await = [this](const std::string& behind) { awaited_.push_back(behind); }}};
  }
  // Takes up to `count` messages of one step.
  std::vector<std::string> Step(PartitionTurns& turns, uint64_t turn, size_t count) {
    std::vector<std::string> texts;
    turns.BeginStep(turn);
    while (texts.size() < count) {
      const Result<std::optional<TurnMessage>> taken = turns.Next();
      status_ = taken.status();
      if (!taken.ok() || !taken->has_value()) break;
      texts.emplace_back((*taken)->message.text);
    }
    return texts;
  }

  SettableClock clock_;
  ScriptedSource source_;
  std::vector<std::string> warnings_, awaited_;
  Status status_;
};

TEST_F(PartitionTurnsTest, PartitionsGiveAMessageEachInTheOrderOfOffsets) {
  for (const char* text : {"a0", "a1", "a2"}) source_.Add(1, text);
  for (const char* text : {"b0", "b1", "b2"}) source_.Add(3, text);
  PartitionTurns turns = Turns({{1, 0}, {3, 1}}, 0);
  EXPECT_THAT(Step(turns, 0, 3), ElementsAre("a0", "b1", "a1"));
  EXPECT_THAT(turns.offsets(), ElementsAre(PartitionOffset{1, 2}, PartitionOffset{3, 2}));
  // The second step begins where the first would have ended.
  EXPECT_THAT(Step(turns, 3, 2), ElementsAre("b2", "a2"));
  EXPECT_EQ(turns.missing(), 0u);
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(PartitionTurnsTest, WithoutAFlushTheOrderDoesNotDependOnWhenMessagesArrive) {
  source_.Add(0, "a0");
  source_.Add(0, "a1");
  source_.Then([this] { source_.Add(0, "a2"); });  // Not whose turn it is.
  source_.Then([this] { source_.Add(1, "b0"); });
  source_.Then([this] { source_.Add(1, "b1"); });
  PartitionTurns turns = Turns({{0, 0}, {1, 0}}, 0);
  EXPECT_THAT(Step(turns, 0, 4), ElementsAre("a0", "b0", "a1", "b1"));
  EXPECT_THAT(source_.waits, ElementsAre(-1, -1, -1));
  // The partition whose turn it is is told, with its last message.
  EXPECT_THAT(awaited_, ElementsAre("the begin of kafka://b:1/clicks/1",
                                    "the begin of kafka://b:1/clicks/1", "kafka://b:1/clicks/1:0"));
}

TEST_F(PartitionTurnsTest, WithAFlushAPartitionWithoutMessagesIsPassedOver) {
  for (const char* text : {"a0", "a1", "a2"}) source_.Add(0, text);
  source_.Then([this] { source_.Add(1, "b0"); });
  PartitionTurns turns = Turns({{0, 0}, {1, 0}}, 5000);
  EXPECT_THAT(Step(turns, 0, 4), ElementsAre("a0", "a1", "a2", "b0"));
}

TEST_F(PartitionTurnsTest, AStepEndsWhenItsTimeIsOver) {
  source_.Add(0, "a0");
  source_.Then([this] {
    clock_.now_ms += 3000;
    source_.Add(0, "a1");
  });
  PartitionTurns turns = Turns({{0, 0}, {1, 0}}, 5000);
  EXPECT_THAT(Step(turns, 0, 9), ElementsAre("a0", "a1"));
  EXPECT_TRUE(status_.ok());
  EXPECT_THAT(source_.waits, ElementsAre(5000, 2000));
  // The next one has a time of its own, and may be empty.
  EXPECT_THAT(Step(turns, 9, 9), ElementsAre());
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(source_.waits.back(), 5000);
}

TEST_F(PartitionTurnsTest, GapsAreCountedAndTheFirstIsTold) {
  source_.AddAt(2, 0, "c0");
  source_.AddAt(2, 5, "c5");
  source_.AddAt(2, 7, "c7");
  PartitionTurns turns = Turns({{2, 0}}, 0);
  EXPECT_THAT(Step(turns, 0, 3), ElementsAre("c0", "c5", "c7"));
  EXPECT_EQ(turns.missing(), 5u);
  EXPECT_THAT(turns.offsets(), ElementsAre(PartitionOffset{2, 8}));
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("partition 2: no message has the offsets from 1 to 4")));
}

TEST_F(PartitionTurnsTest, AnOffsetThatFallsIsRefused) {
  for (const char* text : {"a0", "a1", "a2"}) source_.Add(0, text);
  PartitionTurns turns = Turns({{0, 0}}, 0);
  EXPECT_EQ(Step(turns, 0, 2).size(), 2u);
  source_.RewindTo(0, 1);
  EXPECT_THAT(Step(turns, 2, 1), ElementsAre());
  EXPECT_EQ(status_.code(), Code::kCorruption);
  EXPECT_THAT(status_.message(), HasSubstr("offset 1 came where 2 was expected"));
}

TEST_F(PartitionTurnsTest, AStopEndsTheWait) {
  source_.Then([this] { source_.Stop(); });
  PartitionTurns turns = Turns({{0, 0}}, 0);
  EXPECT_THAT(Step(turns, 0, 1), ElementsAre());
  EXPECT_EQ(status_.code(), Code::kCancelled);
}

}  // namespace
}  // namespace hdps
