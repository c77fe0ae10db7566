// The kinds of messages, as frame headers carry them.
#pragma once

#include <cstdint>

namespace hdps {

enum class MessageKind : uint16_t {
  kJoinRequest = 1,
  kJoinRefused,
  kView,
  kHeartbeat,
  kHeartbeatAck,
  kCommand,
  kCommandDone,
  kStopRequest,
  kAbort,
  kKvPut,
  kKvGet,
  kKvValue,
  kStatusRequest,
  kStatusReply,
  kScaleRequest,
  kScaleReply,
  kJobRequest,
  kJobReply,
  kRowPlacesRequest,
  kRowPlacesReply,
  kPanelRequest,
  kPanelReply,
  kTracePart,
  kTraceRequest,
  kTraceReply,
  kPredictRequest,
  kPredictReply,
  kLeaveRequest,
  kPullRequest = 32,
  kPullReply,
  kPushRequest,
  kPushAck,
  kAdvanceRequest,
  kAdvanceAck,
  kStoreRequest,
  kStoreAck,
  kReplicate,
  kReplicateAck,
  kProbe,
  kProbeAck,
  kSquaresRequest,
  kSquaresReply,
};

}  // namespace hdps
