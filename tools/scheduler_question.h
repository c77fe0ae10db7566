// Asks a running scheduler, or who answers like one, something, without being a member of its job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/connections.h"
#include "common/protocol/message_frames.h"

namespace hdps {

// Who is asked, by the number at which it listens.
struct AskedPeer {
  PeerId peer = kSchedulerPeer;
  std::string name = "the scheduler";  // For messages.
};

// A connection to a running scheduler, or to another listener that answers the same way. Used by
// one thread at a time.
class SchedulerConnection {
 public:
  // Connects to `address`, tcp://HOST:PORT, ipc://PATH, or the one that stands in file:PATH.
  // Errors: kInvalidArgument if it is missing or wrong, kUnavailable if the file holds none.
  static Result<std::unique_ptr<SchedulerConnection>> Open(std::string address,
                                                           Connections connections,
                                                           AskedPeer asked = {});

  // Sends the request again until a reply arrives, because both may be lost; returns kUnavailable
  // after `patience_ms`. Requires: the request may be answered twice.
  template <typename Reply, typename Request>
  Result<Reply> Ask(const Request& request, int64_t patience_ms) {
    constexpr int64_t kAskEveryMs = 500;
    const uint64_t id = ++questions_;
    const int64_t until = clock_->NowMs() + patience_ms;
    for (int64_t now = clock_->NowMs(); now < until; now = clock_->NowMs()) {
      Frame asked = EncodeMessage(request);
      asked.header.request_id = id;
      transport_->Send(asked_.peer, std::move(asked));
      PeerId from;
      Frame frame;
      Reply reply;
      if (!transport_->Receive(std::min(kAskEveryMs, until - now), &from, &frame)) continue;
      // The second answer to an earlier question.
      if (frame.header.request_id != 0 && frame.header.request_id != id) continue;
      HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &reply));
      return reply;
    }
    return Status(Code::kUnavailable,
                  "nobody answers at " + address_ + " for " + std::to_string(patience_ms / 1000) +
                      " s; is " + asked_.name + " running there" +
                      (connections_.keys ? ", and does it allow this key?"
                                         : "? If it has keys, it hears nobody without one: "
                                           "give --keys=DIR, the folder of hdps keygen"));
  }
  // Waits, and drops messages that arrive in this time.
  void Pause(int64_t ms) {
    const int64_t until = clock_->NowMs() + ms;
    PeerId from;
    Frame frame;
    for (int64_t now = clock_->NowMs(); now < until; now = clock_->NowMs()) {
      static_cast<void>(transport_->Receive(until - now, &from, &frame));
    }
  }
  int64_t NowMs() { return clock_->NowMs(); }
  const std::string& address() const { return address_; }
  bool may_leave() const { return connections_.may_leave(); }
  const Connections& connections() const { return connections_; }

 private:
  SchedulerConnection(std::string address, Connections connections, AskedPeer asked);

  const std::string address_;
  const Connections connections_;
  const AskedPeer asked_;
  const std::unique_ptr<MonotonicClock> clock_;
  const std::unique_ptr<Transport> transport_;
  uint64_t questions_ = 0;
};

}  // namespace hdps
