// Fixture of the membership client: a test sends it messages and reads what it sends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include "common/protocol/board_messages.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/membership_client.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"
#include "tests/common/protocol/message_samples.h"

namespace hdps {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_samples::FloatsOf;

constexpr PeerId kSelf{22};

template <typename Message>
Message DecodedAs(const Frame& frame) {
  Message message;
  const Status status = DecodeMessage(frame, &message);
  EXPECT_TRUE(status.ok()) << status.message();
  return message;
}

// Describes a message of a member in one or two words.
inline std::string Describe(const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  std::string text = MessageKindName(kind);
  if (kind == MessageKind::kHeartbeat) {
    const auto heartbeat = DecodedAs<Heartbeat>(frame);
    text += " v" + std::to_string(heartbeat.view.value) + " c" + std::to_string(heartbeat.clock);
  } else if (kind == MessageKind::kCommandDone) {
    text += " " + std::to_string(DecodedAs<CommandDone>(frame).id.value);
  } else if (kind == MessageKind::kKvPut) {
    text += " " + DecodedAs<KvPut>(frame).key + "=" + DecodedAs<KvPut>(frame).value;
  } else if (kind == MessageKind::kKvGet) {
    text += " " + DecodedAs<KvGet>(frame).key;
  } else if (kind == MessageKind::kAbort) {
    text += " " + std::to_string(DecodedAs<Abort>(frame).exit_status);
  }
  return text;
}

class MembershipClientTest : public testing::Test {
 protected:
  static MembershipOptions Options() {
    MembershipOptions options;
    options.role = Role::kWorker;
    options.identity.self = kSelf;
    options.identity.scheduler_address = "tcp://127.0.0.1:8118";
    options.heartbeat_ms = 500;
    options.scheduler_timeout_ms = 3000;
    options.rendezvous_timeout_s = 60;
    options.job_digest = 99;
    return options;
  }
  static View ViewNumber(uint64_t number) {
    View view = testing_samples::SampleView();
    view.view = {number};
    view.reign = 0;
    return view;
  }
  static Command CommandNumber(uint64_t id, CommandKind kind = CommandKind::kTrain) {
    Command command;
    command.id = {id};
    command.command = kind;
    return command;
  }
  static CommandDone DoneNumber(uint64_t id) {
    CommandDone done;
    done.id = {id};
    return done;
  }

  // Returns the messages since the last call, in order, and dials as "dial PEER".
  std::vector<std::string> Said() {
    std::vector<std::string> said;
    Output output = client_.TakeOutput();
    for (const Dial& dial : output.dials) said.push_back("dial " + std::to_string(dial.peer.value));
    for (const Outgoing& outgoing : output.frames) {
      EXPECT_EQ(outgoing.to, kSchedulerPeer);
      said.push_back(Describe(outgoing.frame));
      last_frame_ = outgoing.frame;
    }
    return said;
  }
  // Ticks every 100 ms up to and including `until`.
  void TickUntil(TimeMs until) {
    for (; now_ <= until; now_ += 100) client_.OnTick(now_);
  }
  template <typename Message>
  void Hear(const Message& message, uint64_t request_id = 0) {
    Frame frame = EncodeMessage(message);
    frame.header.request_id = request_id;
    frame.header.view = heard_view_;
    EXPECT_TRUE(client_.OnFrame(kSchedulerPeer, frame));
  }
  void Form() {
    TickUntil(0);
    heard_view_ = 7;
    Hear(ViewNumber(7));
    Said();
  }
  std::vector<uint64_t> TakenIds() {
    std::vector<uint64_t> ids;
    for (const Command& command : client_.TakeCommands()) ids.push_back(command.id.value);
    return ids;
  }

  uint64_t heard_view_ = 0;  // View of the frames that Hear() delivers.
  MembershipClient client_{Options()};
  TimeMs now_ = 0;
  Frame last_frame_;
};

}  // namespace hdps
