// Which messages the holder of a key may send: the one table of what roles are allowed.
#pragma once

#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/net/keys/key_ring.h"

namespace hdps {

enum class MessageKind : uint16_t;

// Whether a key with this role is one for messages of that kind. No role sends a kind that is none.
bool MaySend(KeyRole role, MessageKind kind);
// The same for a frame, as TransportOptions::may_send wants it: kInvalidArgument names the message
// and the roles that may send it. Who joins has to have the key of what he joins as.
Status CheckMaySend(KeyRole role, const Frame& frame);

}  // namespace hdps
