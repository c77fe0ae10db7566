// Asks a running scheduler something, for commands that are no members of its job.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/net/transport.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/process/connections.h"
#include "common/protocol/messages.h"

namespace hdps {

// The question may be lost: it is asked again until there is an answer, or for too long. Whoever
// answers it twice must mean the same.
template <typename Reply, typename Request>
Result<Reply> AskScheduler(const std::string& address, const Connections& connections,
                           const Request& request) {
  constexpr int64_t kPatienceMs = 5000, kAskEveryMs = 500;
  const std::unique_ptr<Transport> transport = NewZmqTransport(connections.Options(NewPeerId()));
  HDPS_RETURN_IF_ERROR(transport->Connect(kSchedulerPeer, address));
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const int64_t until = clock->NowMs() + kPatienceMs;
  while (clock->NowMs() < until) {
    transport->Send(kSchedulerPeer, EncodeMessage(request));
    PeerId from;
    Frame frame;
    Reply reply;
    if (!transport->Receive(kAskEveryMs, &from, &frame)) continue;
    HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &reply));
    return reply;
  }
  return Status(Code::kUnavailable, "nobody answers at " + address + " for " +
                                        std::to_string(kPatienceMs / 1000) +
                                        " s; is the scheduler running there" +
                                        (connections.keys ? ", and does it allow this key?" : "?"));
}

}  // namespace hdps
