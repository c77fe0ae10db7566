// How a message becomes a frame, and a frame a message again.
//
// Bulk arrays (keys, rows, gradients, scores) travel as raw sections of the frame; everything else
// in a FlatBuffer that follows common/protocol/messages.fbs. DecodeMessage checks sizes, ranges and
// sums, so whoever holds a decoded message may rely on what its header says; it answers kCorruption
// for bytes that break a rule and never stops the process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/status.h"
#include "common/net/frame.h"

namespace hdps {

enum class MessageKind : uint16_t;  // message_kind.h

// No text of a message is longer; what is written for people is cut to this length by the sender.
inline constexpr size_t kTextBytesMax = 64 << 10;

// A frame of the message's kind with envelope and sections set; sender, view and request_id are the
// caller's to fill, and ChecksumFrame is the transport's.
template <typename Message>
Frame EncodeMessage(const Message& message);

// `*message` is whole when the status is ok, and unspecified otherwise. The frame must have passed
// CheckFrame; a frame of another kind is kCorruption.
template <typename Message>
Status DecodeMessage(const Frame& frame, Message* message);

const char* MessageKindName(MessageKind kind);

}  // namespace hdps
