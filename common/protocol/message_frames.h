// Converts messages to frames and back.
//
// Bulk arrays (keys, rows, gradients, scores) are raw sections of the frame; everything else is in
// a FlatBuffer that follows common/protocol/messages.fbs. DecodeMessage checks sizes, ranges and
// sums, so users of a decoded message may rely on what its header says. It returns kCorruption for
// bytes that break a rule and never stops the process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/status.h"
#include "common/net/frame.h"

namespace hdps {

enum class MessageKind : uint16_t;  // message_kind.h

// Limit on the length of a text in a message. The sender cuts text for people to this length.
inline constexpr size_t kTextBytesMax = 64 << 10;

// Returns a frame of the message's kind with envelope and sections. The caller sets sender, view
// and request_id; the transport calls ChecksumFrame().
template <typename Message>
Frame EncodeMessage(const Message& message);

// Sets `*message` if the result is ok; otherwise its content is unspecified. Requires: the frame
// has passed CheckFrame(). Errors: kCorruption, also for a frame of another kind.
template <typename Message>
Status DecodeMessage(const Frame& frame, Message* message);

const char* MessageKindName(MessageKind kind);

}  // namespace hdps
