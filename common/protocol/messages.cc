// The common part of all messages: their names and the checks of every envelope.

#include <glog/logging.h>

#include <algorithm>

#include "common/protocol/command_messages.h"
#include "common/protocol/message_codec.h"
#include "common/protocol/view.h"

namespace hdps {

const char* MessageKindName(MessageKind kind) {
  const char* name = wire::EnumNameMessageKind(static_cast<wire::MessageKind>(kind));
  return *name == '\0' ? "unknown message" : name;
}

static_assert(static_cast<int>(CommandKind::kLoadAhead) == wire::CommandKind_MAX);

const char* CommandKindName(CommandKind kind) {
  const char* name = wire::EnumNameCommandKind(static_cast<wire::CommandKind>(kind));
  return *name == '\0' ? "unknown command" : name;
}

std::vector<Member> View::HoldersOf(ServerId group) const {
  std::vector<Member> holders;
  if (group.value < servers.size()) holders.push_back(servers[group.value]);
  for (const GroupBackup& backup : backups) {
    if (backup.group == group) holders.push_back(backup.member);
  }
  return holders;
}

std::vector<Member> View::Holders() const {
  std::vector<Member> holders;
  const auto add = [&holders](const Member& member) {
    const auto same = [&](const Member& other) { return other.peer == member.peer; };
    if (std::ranges::none_of(holders, same)) holders.push_back(member);
  };
  for (const Member& server : servers) add(server);
  for (const GroupBackup& backup : backups) add(backup.member);
  return holders;
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
  // The parent's offset to a table, and the table's to its vtable.
  constexpr size_t kTableBytesMin = 8;
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
