// Tests that a scheduler that leads no longer changes no file and sends no frame.
#include "scheduler/election/fences.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"

namespace hdps {
namespace {

TEST(FencedFilesTest, NothingChangesOnceTheLeadIsOver) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  bool leads = true;
  const std::unique_ptr<FileSystem> fenced = NewFencedFiles(*files, [&] { return leads; });
  ASSERT_TRUE(fenced->MakeDirectories("out").ok());
  ASSERT_TRUE(WriteFileAtomically(*fenced, "out/a", std::string("old")).ok());
  Result<std::unique_ptr<WritableFile>> open = fenced->OpenAppend("out/log");
  const std::string line = "line";
  const auto bytes = std::as_bytes(std::span(line));
  ASSERT_TRUE(open.ok() && (*open)->Append(bytes).ok());
  leads = false;
  const std::vector<Status> refused = {WriteFileAtomically(*fenced, "out/a", std::string("new")),
                                       fenced->Create("out/b").status(),
                                       fenced->OpenAppend("out/log").status(),
                                       fenced->MakeDirectories("out/c"),
                                       fenced->MakeDirectoriesUnsynced("out/c"),
                                       fenced->Rename("out/a", "out/d"),
                                       fenced->RenameUnsynced("out/a", "out/d"),
                                       fenced->RemoveAll("out/a"),
                                       fenced->Lock("out/lock", "me").status(),
                                       (*open)->Append(bytes),
                                       (*open)->Sync()};
  for (size_t i = 0; i < refused.size(); ++i) {
    EXPECT_EQ(refused[i].code(), Code::kUnavailable) << i;
  }
  EXPECT_EQ(*files->List("out"), (std::vector<std::string>{"a", "log"}));
  EXPECT_EQ(*ReadWholeFile(*fenced, "out/a", 100), "old");
  EXPECT_EQ(*ReadWholeFile(*files, "out/log", 100), "line");
}

TEST(FencedFilesTest, AWriteThatTheEndOfTheLeadInterruptsLeavesTheFileAsItWas) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(WriteFileAtomically(*files, "a", std::string("old")).ok());
  for (int after = 0; after < 4; ++after) {  // Create, append, sync, rename.
    int left = after;
    const auto fenced = NewFencedFiles(*files, [&] { return left-- > 0; });
    EXPECT_FALSE(WriteFileAtomically(*fenced, "a", std::string("new")).ok()) << after;
    EXPECT_EQ(*ReadWholeFile(*files, "a", 100), "old");
  }
}

TEST(FencedTransportTest, FramesGoOutOnlyDuringTheLead) {
  const auto hub = NewInprocHub();
  TransportOptions scheduler_options, member_options;
  scheduler_options.self.peer = kSchedulerPeer;
  member_options.self.peer = {20};
  const auto scheduler = NewInprocTransport(hub, scheduler_options);
  const auto member = NewInprocTransport(hub, member_options);
  ASSERT_TRUE(scheduler->Listen("inproc://scheduler").ok());
  ASSERT_TRUE(member->Connect(kSchedulerPeer, "inproc://scheduler").ok());
  bool leads = true;
  const std::unique_ptr<Transport> fenced = NewFencedTransport(*scheduler, [&] { return leads; });
  member->Send(kSchedulerPeer, EncodeMessage(StopRequest{"stop"}));
  PeerId from;
  Frame frame;
  ASSERT_TRUE(fenced->Receive(1000, &from, &frame));
  fenced->Send({20}, EncodeMessage(Abort{3, "first"}));
  leads = false;
  fenced->Send({20}, EncodeMessage(Abort{3, "second"}));
  ASSERT_TRUE(member->Receive(1000, &from, &frame));
  EXPECT_FALSE(member->Receive(0, &from, &frame));
}

}  // namespace
}  // namespace hdps
