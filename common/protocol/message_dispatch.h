// Which of several messages a frame carries, decoded once.
#pragma once

#include <utility>

#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/message_frames.h"

namespace hdps {

enum class MessageKind : uint16_t;

// Decodes `frame` if its kind is that of one of the messages, and calls take(status, message): what
// decoding came to, and the message, which is whole where that is ok. False when the frame is none
// of them: then nothing is decoded.
template <typename... Messages, typename Take>
bool DispatchMessage(const Frame& frame, const Take& take) {
  const auto kind = static_cast<MessageKind>(frame.header.kind);
  const auto decode = [&]<typename Message>(Message message) {
    const Status status = DecodeMessage(frame, &message);
    take(status, std::move(message));
    return true;
  };
  return ((kind == Messages::kKind && decode(Messages())) || ...);
}

}  // namespace hdps
