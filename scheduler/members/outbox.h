// Collects the frames that the scheduler sends.
#pragma once

#include <cstdint>
#include <utility>

#include "common/base/ids.h"
#include "common/net/node.h"
#include "common/protocol/message_frames.h"

namespace hdps {

// Invariant: every frame carries the scheduler's id and the view at the time of Send(), and every
// view, command and abort the reign: a number that members have never heard a larger one of.
class Outbox {
 public:
  explicit Outbox(uint64_t reign) : reign_(reign) {}

  void SetView(ViewId view) { view_ = view; }
  template <typename Message>
  void Send(PeerId to, const Message& message, uint64_t request_id = 0) {
    Frame frame = Encode(message);
    frame.header.sender = kSchedulerPeer.value;
    frame.header.view = view_.value;
    frame.header.request_id = request_id;
    output_.frames.push_back({to, std::move(frame)});
  }
  Output Take() { return std::exchange(output_, Output()); }

 private:
  template <typename Message>
  Frame Encode(const Message& message) const {
    if constexpr (requires { message.reign; }) {
      Message of_reign = message;
      of_reign.reign = reign_;
      return EncodeMessage(of_reign);
    } else {
      return EncodeMessage(message);
    }
  }

  const uint64_t reign_;
  ViewId view_;  // Number 0 before the first view.
  Output output_;
};

}  // namespace hdps
