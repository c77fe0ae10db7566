// Keeps requests that came while another was answered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "common/net/node.h"

namespace hdps {

struct ServerRequestFrame {
  PeerId from;
  Frame frame;
};

// Invariant: each request is kept once, the newest copy of it in the place of the first; at most
// `most` are kept, and further ones are dropped, because their senders ask again.
class WaitingRequests {
 public:
  explicit WaitingRequests(size_t most) : most_(most) {}

  void Add(ServerRequestFrame request) {
    // Frames between servers have no request id; a repeat of one does no harm.
    const FrameHeader& header = request.frame.header;
    const auto is_same = [&](const ServerRequestFrame& waiting) {
      return header.request_id != 0 && waiting.from == request.from &&
             waiting.frame.header.request_id == header.request_id &&
             waiting.frame.header.group == header.group;
    };
    if (const auto same = std::ranges::find_if(requests_, is_same); same != requests_.end()) {
      *same = std::move(request);
    } else if (requests_.size() < most_) {
      requests_.push_back(std::move(request));
    }
  }
  bool empty() const { return requests_.empty(); }
  // Takes the oldest. Requires: not empty().
  ServerRequestFrame Take() {
    ServerRequestFrame request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }
  std::deque<ServerRequestFrame> TakeAll() { return std::exchange(requests_, {}); }

 private:
  const size_t most_;
  std::deque<ServerRequestFrame> requests_;
};

}  // namespace hdps
