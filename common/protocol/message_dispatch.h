// Decodes a frame that carries one of several messages.
#pragma once

#include <utility>

#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/protocol/message_frames.h"

namespace hdps {

enum class MessageKind : uint16_t;

// Decodes `frame` if it is one of the messages, and calls take(status, message). The message is
// valid only if the status is ok. Returns false if the frame is none of them; then nothing is
// decoded.
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
