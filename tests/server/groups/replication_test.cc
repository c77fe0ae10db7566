// Tests the chain of a group's holders, frame by frame: order, gaps, repeats, held answers, and
// views that change in the middle.
#include "server/groups/replication.h"

#include <memory>
#include <string>
#include <vector>

#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ServerId kGroup{1};
constexpr PeerId kWorker{1000};
constexpr TimeMs kRetryMs = 100;

// The actions of one holder, as the test sees them.
struct Holder {
  explicit Holder(uint64_t number, bool view_ignored = false)
      : peer{number},
        chain({.group = kGroup,
               .self = {number},
               .retry_ms = kRetryMs,
               .view_ignored = view_ignored}) {}

  // Applies a change: the clocks in `frame`, each an advance.
  void Take(PeerId from, const Frame& frame) {
    if (frame.header.kind == static_cast<uint16_t>(MessageKind::kReplicateAck)) {
      return chain.OnAck(from, frame);
    }
    for (const Replication::Change& change : chain.OnReplicate(from, frame)) {
      AdvanceRequest advance;
      EXPECT_TRUE(DecodeMessage(change.request, &advance).ok());
      EXPECT_EQ(change.worker, kWorker);
      made.push_back(advance.clock);
    }
    chain.Made();
  }

  void Change(Clock clock) {
    AdvanceRequest advance;
    advance.clock = clock;
    chain.Append(kWorker, EncodeMessage(advance));
    made.push_back(clock);
    AdvanceAck ack;
    ack.clock = clock;
    Frame answer = EncodeMessage(ack);
    answer.header.request_id = static_cast<uint64_t>(clock);
    chain.Answer({kWorker, std::move(answer)});
  }

  // Sorts the output: answered requests, and frames to other holders.
  std::vector<Outgoing> Collect() {
    std::vector<Outgoing> others;
    for (Outgoing& out : chain.TakeOutgoing()) {
      if (out.to == kWorker) {
        answered.push_back(out.frame.header.request_id);
      } else {
        EXPECT_EQ(out.frame.header.group, kGroup.value);
        others.push_back(std::move(out));
      }
    }
    return others;
  }

  const PeerId peer;
  Replication chain;
  std::vector<Clock> made;
  std::vector<uint64_t> answered;
};

View ViewOf(uint64_t number, const std::vector<Holder*>& holders) {
  View view;
  view.view = {number};
  view.servers = {{{7}, 0, ""}, {holders[0]->peer, 1, ""}};
  for (size_t i = 1; i < holders.size(); ++i) {
    view.backups.push_back({kGroup, {holders[i]->peer, static_cast<uint32_t>(i + 1), ""}});
  }
  return view;
}

void Enter(uint64_t number, const std::vector<Holder*>& holders) {
  for (Holder* holder : holders) holder->chain.OnView(ViewOf(number, holders));
}

// Delivers all frames among `holders` until none is left.
void Settle(const std::vector<Holder*>& holders) {
  for (bool more = true; more;) {
    more = false;
    for (Holder* from : holders) {
      for (const Outgoing& out : from->Collect()) {
        more = true;
        for (Holder* to : holders) {
          if (to->peer == out.to) to->Take(from->peer, out.frame);
        }
      }
    }
  }
}

class ReplicationTest : public testing::Test {
 protected:
  Holder a_{11}, b_{12}, c_{13};
};

TEST_F(ReplicationTest, ChangesAreMadeInTheirOrderEachOnce) {
  Enter(1, {&a_, &b_});
  Settle({&a_, &b_});
  for (const Clock clock : {1, 2, 3}) a_.Change(clock);
  const std::vector<Outgoing> sent = a_.Collect();
  ASSERT_EQ(sent.size(), 3u);
  b_.Take(a_.peer, sent[2].frame);
  EXPECT_THAT(b_.made, IsEmpty());
  b_.Take(a_.peer, sent[0].frame);
  b_.Take(a_.peer, sent[0].frame);
  EXPECT_THAT(b_.made, ElementsAre(1));
  b_.Take(a_.peer, sent[1].frame);
  b_.Take(a_.peer, sent[2].frame);
  EXPECT_THAT(b_.made, ElementsAre(1, 2, 3));
}

TEST_F(ReplicationTest, AnswersWaitForEveryHolder) {
  Enter(1, {&a_, &b_, &c_});
  Settle({&a_, &b_, &c_});
  a_.Change(1);
  Settle({&a_, &b_});  // The last one receives nothing.
  EXPECT_THAT(b_.made, ElementsAre(1));
  EXPECT_THAT(a_.answered, IsEmpty());
  for (Holder* holder : {&a_, &b_}) holder->chain.OnTick(kRetryMs);
  Settle({&a_, &b_, &c_});
  EXPECT_THAT(c_.made, ElementsAre(1));
  EXPECT_THAT(a_.answered, ElementsAre(1));
  EXPECT_EQ(a_.chain.waiting() + b_.chain.waiting(), 0u);
}

TEST_F(ReplicationTest, WhoAsksAgainWhileItsAnswerWaitsGetsOne) {
  Enter(1, {&a_, &b_});
  a_.Change(1);
  Frame again = EncodeMessage(AdvanceAck());
  again.header.request_id = 1;
  a_.chain.Answer({kWorker, again});
  Settle({&a_, &b_});
  EXPECT_THAT(a_.answered, ElementsAre(1));
  a_.chain.Answer({kWorker, again});  // No change is missing anywhere.
  a_.Collect();
  EXPECT_THAT(a_.answered, ElementsAre(1, 1));
}

TEST_F(ReplicationTest, WhatIsLostIsSentAgain) {
  Enter(1, {&a_, &b_});
  Settle({&a_, &b_});
  a_.chain.OnTick(1);
  a_.Change(1);
  a_.Change(2);
  a_.Collect();  // These frames are lost.
  a_.chain.OnTick(kRetryMs);
  EXPECT_THAT(a_.Collect(), IsEmpty());
  a_.chain.OnTick(kRetryMs + 1);
  Settle({&a_, &b_});
  EXPECT_THAT(b_.made, ElementsAre(1, 2));
  EXPECT_THAT(a_.answered, ElementsAre(1, 2));
}

// The first in the chain is gone, with changes that some behind it lacked.
TEST_F(ReplicationTest, TheNextPrimaryBringsThoseBehindItUpToWhatItHas) {
  Enter(1, {&a_, &b_, &c_});
  Settle({&a_, &b_, &c_});
  a_.Change(1);
  Settle({&a_, &b_, &c_});
  a_.Change(2);
  a_.Change(3);
  Settle({&a_, &b_});
  a_.Change(4);
  const std::vector<Outgoing> late = a_.Collect();
  EXPECT_THAT(c_.made, ElementsAre(1));
  Enter(2, {&b_, &c_});
  EXPECT_TRUE(b_.chain.leads());
  Settle({&b_, &c_});
  EXPECT_THAT(c_.made, ElementsAre(1, 2, 3));
  // The old primary does not know yet. Its frames are refused, so it acknowledges nothing.
  for (const Outgoing& out : late) b_.Take(a_.peer, out.frame);
  Settle({&a_, &b_, &c_});
  EXPECT_THAT(b_.made, ElementsAre(1, 2, 3));
  EXPECT_THAT(a_.answered, ElementsAre(1));
  b_.Change(5);
  Settle({&b_, &c_});
  EXPECT_THAT(c_.made, ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(b_.answered, ElementsAre(5));
}

TEST_F(ReplicationTest, AChainWithoutItsMiddleGoesOn) {
  Enter(1, {&a_, &b_, &c_});
  Settle({&a_, &b_, &c_});
  a_.Change(1);
  Settle({&a_, &b_});
  a_.Change(2);
  Enter(2, {&a_, &c_});
  Settle({&a_, &c_});
  EXPECT_THAT(c_.made, ElementsAre(1, 2));
  EXPECT_THAT(a_.answered, ElementsAre(1, 2));
}

TEST_F(ReplicationTest, NobodyIsWaitedForWhenNoBackupIsLeft) {
  Enter(1, {&a_, &b_});
  Settle({&a_, &b_});
  a_.Change(1);
  a_.Collect();
  EXPECT_THAT(a_.answered, IsEmpty());
  Enter(2, {&a_});
  a_.Collect();
  EXPECT_THAT(a_.answered, ElementsAre(1));
  EXPECT_FALSE(a_.chain.has_next());
}

TEST_F(ReplicationTest, ABackupThatEntersLateAsksForWhatItMissed) {
  a_.chain.OnView(ViewOf(1, {&a_, &b_}));
  a_.Change(1);
  a_.Collect();  // There was no receiver.
  b_.chain.OnView(ViewOf(1, {&a_, &b_}));
  Settle({&a_, &b_});
  EXPECT_THAT(b_.made, ElementsAre(1));
  EXPECT_THAT(a_.answered, ElementsAre(1));
}

TEST_F(ReplicationTest, AfterAResetChangesCountFromTheFirstAgain) {
  Enter(1, {&a_, &b_});
  a_.Change(1);
  Settle({&a_, &b_});
  a_.Change(2);
  a_.Collect();
  for (Holder* holder : {&a_, &b_}) holder->chain.Reset();
  Enter(2, {&a_, &b_});
  a_.Change(3);
  Settle({&a_, &b_});
  EXPECT_THAT(b_.made, ElementsAre(1, 3));
  EXPECT_THAT(a_.answered, ElementsAre(1, 3));
}

TEST_F(ReplicationTest, StrangersAndBrokenFramesChangeNothing) {
  Enter(1, {&a_, &b_});
  Settle({&a_, &b_});
  a_.Change(1);
  std::vector<Outgoing> sent = a_.Collect();
  b_.Take(c_.peer, sent[0].frame);
  EXPECT_THAT(b_.made, IsEmpty());
  Frame broken = sent[0].frame;
  broken.envelope = Buffer::CopyOf<uint64_t>(std::vector<uint64_t>{1, 2, 3});
  b_.Take(a_.peer, broken);
  EXPECT_THAT(b_.made, IsEmpty());
  b_.Take(a_.peer, sent[0].frame);
  EXPECT_THAT(b_.made, ElementsAre(1));
}

}  // namespace
}  // namespace hdps
