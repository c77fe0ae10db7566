// The table of message kinds and the roles that may send them.
#include "common/protocol/key_permissions.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"

namespace hdps {
namespace {

constexpr KeyRole kSchedulers[] = {KeyRole::kScheduler};
constexpr KeyRole kServers[] = {KeyRole::kServer};
constexpr KeyRole kWorkers[] = {KeyRole::kWorker};
constexpr KeyRole kMembers[] = {KeyRole::kServer, KeyRole::kWorker};
constexpr KeyRole kAllOfTheJob[] = {KeyRole::kScheduler, KeyRole::kServer, KeyRole::kWorker};
constexpr KeyRole kWhoReads[] = {KeyRole::kWorker, KeyRole::kReader, KeyRole::kAdmin};
constexpr KeyRole kWhoAsks[] = {KeyRole::kReader, KeyRole::kAdmin};
constexpr KeyRole kAdmins[] = {KeyRole::kAdmin};
constexpr KeyRole kServing[] = {KeyRole::kServing};

// There is no default case, so that the compiler asks for each new kind.
std::span<const KeyRole> SendersOf(MessageKind kind) {
  switch (kind) {
    case MessageKind::kJoinRequest:
    case MessageKind::kHeartbeat:
    case MessageKind::kCommandDone:
    case MessageKind::kStopRequest:
    case MessageKind::kLeaveRequest:
    case MessageKind::kKvPut:
    case MessageKind::kKvGet:
    case MessageKind::kTracePart:
      return kMembers;
    case MessageKind::kAbort:
      return kAllOfTheJob;
    case MessageKind::kJoinRefused:
    case MessageKind::kView:
    case MessageKind::kHeartbeatAck:
    case MessageKind::kCommand:
    case MessageKind::kKvValue:
    case MessageKind::kStatusReply:
    case MessageKind::kScaleReply:
    case MessageKind::kJobReply:
    case MessageKind::kRowPlacesReply:
    case MessageKind::kPanelReply:
    case MessageKind::kTraceReply:
      return kSchedulers;
    case MessageKind::kStatusRequest:
    case MessageKind::kRowPlacesRequest:
    case MessageKind::kPanelRequest:
    case MessageKind::kTraceRequest:
    case MessageKind::kPredictRequest:
      return kWhoAsks;
    case MessageKind::kJobRequest:
      return kWhoReads;
    case MessageKind::kScaleRequest:
      return kAdmins;
    case MessageKind::kPredictReply:
      return kServing;
    case MessageKind::kPullRequest:
    case MessageKind::kProbe:
      return kWhoReads;
    case MessageKind::kPushRequest:
    case MessageKind::kAdvanceRequest:
    case MessageKind::kStoreRequest:
    case MessageKind::kSquaresRequest:
      return kWorkers;
    case MessageKind::kPullReply:
    case MessageKind::kPushAck:
    case MessageKind::kAdvanceAck:
    case MessageKind::kStoreAck:
    case MessageKind::kReplicate:
    case MessageKind::kReplicateAck:
    case MessageKind::kProbeAck:
    case MessageKind::kSquaresReply:
      return kServers;
  }
  return {};
}

Status Refused(KeyRole role, const std::string& what) {
  return Status(Code::kInvalidArgument, "the key of a " + std::string(WordOf(role)) + " " + what);
}

}  // namespace

bool MaySend(KeyRole role, MessageKind kind) {
  return std::ranges::count(SendersOf(kind), role) > 0;
}

Status CheckMaySend(KeyRole role, const Frame& frame) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  if (!MaySend(role, kind)) {
    std::string roles;
    for (const KeyRole other : SendersOf(kind)) {
      roles += (roles.empty() ? "" : " or ") + std::string(WordOf(other));
    }
    return Refused(role, std::string("may not send a ") + MessageKindName(kind) +
                             (roles.empty() ? "" : ", which is for a " + roles));
  }
  if (kind != MessageKind::kJoinRequest) return {};
  JoinRequest join;
  if (const Status read = DecodeMessage(frame, &join); !read.ok()) return read;
  const KeyRole wanted = join.role == Role::kServer ? KeyRole::kServer : KeyRole::kWorker;
  if (wanted == role) return {};
  return Refused(role, "is none to join as a " + std::string(RoleName(join.role)));
}

}  // namespace hdps
