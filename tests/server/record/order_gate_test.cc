// Tests that requests pass in the order of the record, and that the recorder keeps that order.
#include "server/record/order_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "server/record/order_recorder.h"
#include "tests/tools/runs/small_job.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PeerId kPeer{100};

Frame PullOf(Clock clock, PullMode mode = PullMode::kTrain) {
  PullRequest pull;
  pull.clock = clock;
  pull.mode = mode;
  return EncodeMessage(pull);
}
Frame PushOf(Clock clock) {
  PushRequest push;
  push.clock = clock;
  return EncodeMessage(push);
}
Frame AdvanceTo(Clock clock) {
  AdvanceRequest advance;
  advance.clock = clock;
  return EncodeMessage(advance);
}

TEST(OrderGateTest, RequestsPassInTheOrderOfTheRecord) {
  using enum OrderKind;
  OrderGate gate({{kTrainPull, {1}, 0}, {kTrainPull, {0}, 0}, {kPush, {0}, 0}, {kAdvance, {0}, 0}},
                 1000);
  EXPECT_FALSE(gate.Passes(kPeer, {0}, PullOf(0)));
  EXPECT_FALSE(gate.Passes(kPeer, {0}, PullOf(0)));  // A repeat is held once.
  EXPECT_FALSE(gate.TakeDue().has_value());
  EXPECT_TRUE(gate.Passes(kPeer, {1}, PullOf(0)));
  ASSERT_TRUE(gate.TakeDue().has_value());
  EXPECT_FALSE(gate.TakeDue().has_value());
  EXPECT_FALSE(gate.Passes(kPeer, {0}, AdvanceTo(1)));
  EXPECT_TRUE(gate.Passes(kPeer, {0}, PushOf(0)));
  EXPECT_TRUE(gate.TakeDue().has_value());
  EXPECT_FALSE(gate.TakeDue().has_value());
}

TEST(OrderGateTest, WhatIsNoEntryPassesAtOnce) {
  OrderGate gate({{OrderKind::kPush, {0}, 5}, {OrderKind::kPush, {0}, 6}}, 1000);
  EXPECT_TRUE(gate.Passes(kPeer, {0}, PullOf(6, PullMode::kRead)));
  EXPECT_TRUE(gate.Passes(kPeer, {0}, PushOf(7)));  // Behind the record's end.
  EXPECT_FALSE(gate.Passes(kPeer, {0}, PushOf(6)));
  EXPECT_TRUE(gate.Passes(kPeer, {0}, PushOf(5)));
  EXPECT_TRUE(gate.Passes(kPeer, {0}, PushOf(5)));  // A repeat.
}

TEST(OrderGateTest, ARequestThatDoesNotComeIsNamed) {
  OrderGate gate({{OrderKind::kPush, {2}, 17}, {OrderKind::kPush, {0}, 6}}, 1000);
  EXPECT_TRUE(gate.OnTick(0).ok());
  EXPECT_TRUE(gate.OnTick(5000).ok());  // Nobody waits.
  EXPECT_FALSE(gate.Passes(kPeer, {0}, PushOf(6)));
  EXPECT_TRUE(gate.OnTick(5100).ok());
  EXPECT_THAT(gate.OnTick(6100).message(),
              AllOf(HasSubstr("such as checkpoint.every_steps"),
                    HasSubstr("for 1 s the push of step 17 of worker 2 has not come")));
}

TEST(OrderGateTest, WhatHasNotPassedIsNamed) {
  OrderGate gate({{OrderKind::kPush, {2}, 17}, {OrderKind::kPush, {0}, 6}}, 1000);
  EXPECT_EQ(gate.Missing(), "2 requests, first the push of step 17 of worker 2");
  EXPECT_FALSE(gate.Passes(kPeer, {0}, PushOf(6)));  // What is held has not passed.
  EXPECT_TRUE(gate.Passes(kPeer, {2}, PushOf(17)));
  EXPECT_EQ(gate.Missing(), "1 request, first the push of step 6 of worker 0");
  EXPECT_TRUE(gate.TakeDue().has_value());
  EXPECT_EQ(gate.Missing(), "");
}

class OrderRecorderTest : public ::testing::Test {
 protected:
  OrderRecorderTest() { Open("async"); }
  void Open(const std::string& mode) {
    job_ = *ParseJob(SmallJob(R"("train": ["a.csv"])"), "job.json", {"train.mode=" + mode});
    recorder_ = *OrderRecorder::Open(*files_, "record", kPeer, job_);
  }
  OrderFile Written() {
    const std::vector<std::string> names = *files_->List("record");
    EXPECT_EQ(names.size(), 1u);
    const std::string bytes = *ReadWholeFile(*files_, "record/" + names.front(), 1u << 20);
    return *DecodeOrderFile(std::as_bytes(std::span(bytes)), names.front());
  }
  std::vector<OrderEntry> Entries() {
    std::vector<OrderEntry> entries;
    for (const OrderItem& item : Written().items) {
      if (const auto* entry = std::get_if<OrderEntry>(&item)) entries.push_back(*entry);
    }
    return entries;
  }
  void Pull(Clock clock, uint64_t request_id, PeerId peer = kPeer) {
    PullRequest pull;
    pull.clock = clock;
    recorder_->Pulled({0}, {0}, peer, request_id, pull);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job job_;
  std::unique_ptr<OrderRecorder> recorder_;
};

TEST_F(OrderRecorderTest, WhatIsRepeatedIsRecordedOnce) {
  Pull(0, 1);
  Pull(0, 1);
  Pull(0, 1, {101});  // Another process in the worker's place.
  recorder_->Pushed({0}, {0}, 0, 0);
  recorder_->Advanced({0}, {0}, 1);
  recorder_->Advanced({0}, {0}, 1);
  recorder_->Flush();
  using enum OrderKind;
  EXPECT_THAT(Entries(),
              ElementsAre(OrderEntry{kTrainPull, {0}, 0, 0}, OrderEntry{kTrainPull, {0}, 0, 0},
                          OrderEntry{kPush, {0}, 0, 0}, OrderEntry{kAdvance, {0}, 0, 0}));
  recorder_->Loaded(0);  // The job goes back: the same steps come again.
  recorder_->Advanced({0}, {0}, 1);
  recorder_->Flush();
  EXPECT_EQ(Entries().size(), 5u);
}

TEST_F(OrderRecorderTest, AMarkPutsAllBeforeItIntoTheFile) {
  Pull(0, 1);
  EXPECT_TRUE(Entries().empty());
  recorder_->Digested({{1, 2}, 3, true});
  EXPECT_EQ(Entries().size(), 1u);
}

TEST_F(OrderRecorderTest, InSyncModeOnlyMarksAreWritten) {
  recorder_.reset();
  ASSERT_TRUE(files_->RemoveAll("record").ok());
  Open("sync");
  Pull(0, 1);
  recorder_->Pushed({0}, {0}, 0, 0);
  recorder_->Loaded(4);
  const OrderFile file = Written();
  EXPECT_EQ(file.header.mode, Mode::kSync);
  EXPECT_EQ(file.header.job_digest, JobDigest(job_));
  ASSERT_EQ(file.items.size(), 1u);
  EXPECT_EQ(std::get<LoadMark>(file.items[0]).clock, 4);
}

}  // namespace
}  // namespace hdps
