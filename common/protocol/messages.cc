// What all messages have in common: their names and the rules of every envelope.
#include "common/protocol/messages.h"

#include <glog/logging.h>

#include "common/protocol/message_codec.h"

namespace hdps {

const char* MessageKindName(MessageKind kind) {
  switch (kind) {
    case MessageKind::kJoinRequest:
      return "JoinRequest";
    case MessageKind::kJoinRefused:
      return "JoinRefused";
    case MessageKind::kView:
      return "View";
    case MessageKind::kHeartbeat:
      return "Heartbeat";
    case MessageKind::kHeartbeatAck:
      return "HeartbeatAck";
    case MessageKind::kCommand:
      return "Command";
    case MessageKind::kCommandDone:
      return "CommandDone";
    case MessageKind::kStopRequest:
      return "StopRequest";
    case MessageKind::kAbort:
      return "Abort";
    case MessageKind::kKvPut:
      return "KvPut";
    case MessageKind::kKvGet:
      return "KvGet";
    case MessageKind::kKvValue:
      return "KvValue";
    case MessageKind::kPullRequest:
      return "PullRequest";
    case MessageKind::kPullReply:
      return "PullReply";
    case MessageKind::kPushRequest:
      return "PushRequest";
    case MessageKind::kPushAck:
      return "PushAck";
    case MessageKind::kAdvanceRequest:
      return "AdvanceRequest";
    case MessageKind::kAdvanceAck:
      return "AdvanceAck";
    case MessageKind::kStoreRequest:
      return "StoreRequest";
    case MessageKind::kStoreAck:
      return "StoreAck";
  }
  return "unknown message";
}

const char* CommandKindName(CommandKind kind) {
  switch (kind) {
    case CommandKind::kInitDense:
      return "init_dense";
    case CommandKind::kLoad:
      return "load";
    case CommandKind::kTrain:
      return "train";
    case CommandKind::kPause:
      return "pause";
    case CommandKind::kStoreDense:
      return "store_dense";
    case CommandKind::kEvaluate:
      return "evaluate";
    case CommandKind::kSave:
      return "save";
    case CommandKind::kDigest:
      return "digest";
    case CommandKind::kFinish:
      return "finish";
  }
  return "unknown command";
}

Status BrokenMessage(MessageKind kind, const char* rule) {
  return Status(Code::kCorruption,
                std::string(MessageKindName(kind)) + " breaks the rule that " + rule);
}

Status CheckShape(const Frame& frame, MessageKind kind, size_t num_sections) {
  if (frame.header.kind != static_cast<uint16_t>(kind)) {
    return Status(Code::kCorruption,
                  "a frame of kind " + std::to_string(frame.header.kind) + " (" +
                      MessageKindName(static_cast<MessageKind>(frame.header.kind)) + ") where " +
                      MessageKindName(kind) + " is due");
  }
  if (frame.sections.size() != num_sections) {
    return BrokenMessage(kind, "it has its own number of sections");
  }
  if (frame.envelope.size() < sizeof(uint64_t) || frame.envelope.size() > kEnvelopeBytesMax) {
    return BrokenMessage(kind, "the envelope is within its limits");
  }
  return Status();
}

flatbuffers::Verifier EnvelopeVerifier(const Buffer& envelope) {
  constexpr flatbuffers::uoffset_t kDepthMax = 16;
  constexpr size_t kTablesFree = 4096;
  constexpr size_t kTableBytesMin = 8;  // An offset to it and the table's own offset.
  return flatbuffers::Verifier(
      reinterpret_cast<const uint8_t*>(envelope.data()), envelope.size(), kDepthMax,
      static_cast<flatbuffers::uoffset_t>(kTablesFree + envelope.size() / kTableBytesMin));
}

flatbuffers::Offset<flatbuffers::String> PackName(flatbuffers::FlatBufferBuilder& builder,
                                                  const std::string& name) {
  CHECK_LE(name.size(), kTextBytesMax) << "no receiver would take it";
  return builder.CreateString(name);
}

}  // namespace hdps
