// Tests messages to members: frames with the current view, and answers of the key-value store.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/protocol/command_messages.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"
#include "scheduler/members/key_value_store.h"
#include "scheduler/members/outbox.h"

namespace hdps {
namespace {

TEST(Outbox, AFrameNamesTheSchedulerAndTheViewAtWhichItWasSent) {
  Outbox outbox(/*reign=*/0);
  outbox.Send({20}, Abort{3, "early"}, 9);
  outbox.SetView({4});
  outbox.Send({21}, Abort{3, "late"});
  const std::vector<Outgoing> frames = outbox.Take().frames;
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].to, PeerId{20});
  EXPECT_EQ(frames[0].frame.header.view, 0u);
  EXPECT_EQ(frames[0].frame.header.request_id, 9u);
  EXPECT_EQ(frames[0].frame.header.sender, kSchedulerPeer.value);
  EXPECT_EQ(frames[1].frame.header.view, 4u);
  EXPECT_TRUE(outbox.Take().frames.empty());
}

TEST(Outbox, OrdersCarryTheReign) {
  Outbox outbox(/*reign=*/7);
  outbox.Send({20}, Abort{3, "end"});
  outbox.Send({20}, View{});
  Command digest;
  digest.id = {1};
  outbox.Send({20}, digest);
  const std::vector<Outgoing> frames = outbox.Take().frames;
  Abort abort;
  ASSERT_TRUE(DecodeMessage(frames[0].frame, &abort).ok());
  EXPECT_EQ(abort.reign, 7u);
  View view;
  ASSERT_TRUE(DecodeMessage(frames[1].frame, &view).ok());
  EXPECT_EQ(view.reign, 7u);
  Command command;
  ASSERT_TRUE(DecodeMessage(frames[2].frame, &command).ok());
  EXPECT_EQ(command.reign, 7u);
}

TEST(KeyValueStore, EachPutIsAnsweredOnceInOrderWithTheNewestValue) {
  KeyValueStore board;
  ASSERT_TRUE(board.Put({20}, {"a", "1"}, 5));
  ASSERT_TRUE(board.Put({21}, {"a", "2"}, 6));
  const std::vector<KeyValueStore::Answer> answers = board.TakeAnswers();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].to, PeerId{20});
  EXPECT_EQ(answers[0].request_id, 5u);
  EXPECT_EQ(answers[0].value.value, "2");
  EXPECT_EQ(answers[1].to, PeerId{21});
  EXPECT_TRUE(board.TakeAnswers().empty());
}

TEST(KeyValueStore, WhatFindsNoRoomIsNeitherKeptNorAnswered) {
  KeyValueStore board;
  ASSERT_TRUE(board.Put({20}, {"a", std::string(KeyValueStore::kBytesMax - 1, 'v')}, 1));
  board.TakeAnswers();
  EXPECT_FALSE(board.Put({20}, {"b", ""}, 2));
  EXPECT_FALSE(board.Get("b").found);
  EXPECT_TRUE(board.TakeAnswers().empty());
  EXPECT_TRUE(board.Put({20}, {"a", ""}, 3));  // It replaces the large one.
}

}  // namespace
}  // namespace hdps
