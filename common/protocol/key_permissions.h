// The table of the messages that the holder of a key may send.
#pragma once

#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/net/keys/key_ring.h"

namespace hdps {

enum class MessageKind : uint16_t;

// Is true if a key of this role may send messages of this kind. No role may send an unknown kind.
bool MaySend(KeyRole role, MessageKind kind);
// Checks that a key of this role may send `frame`; serves as TransportOptions::may_send. Errors:
// kInvalidArgument names the message and the roles that may send it. A JoinRequest requires the key
// of the role that it asks for.
Status CheckMaySend(KeyRole role, const Frame& frame);

}  // namespace hdps
