// The loop of a daemon: moves frames and ticks into the node, and dials and frames out of it.
#include "common/net/node_loop.h"

#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hdps {
namespace {

// Number of frames before ticks get their turn.
constexpr int kFramesPerTurn = 64;

// Wait before a failed dial is retried; it doubles up to the maximum.
constexpr TimeMs kRedialMs = 100, kRedialMsMax = 10'000;

// The connections that a node has asked for and the transport could not begin.
//
// Invariant: there is one dial for each peer, the newest that the node asked for. Every failed
// attempt is logged and increases the wait before the next one.
class Dialer {
 public:
  explicit Dialer(Transport& transport) : transport_(transport) {}

  void Connect(const Dial& dial, TimeMs now) {
    waiting_.erase(dial.peer);
    if (dial.anew) transport_.HangUp(dial.peer);
    Try(dial.peer, {dial.address, now, kRedialMs});
  }
  void HangUp(PeerId peer) {
    waiting_.erase(peer);
    transport_.HangUp(peer);
  }
  void Retry(TimeMs now) {
    std::map<PeerId, Waiting> due;
    for (const auto& [peer, waiting] : waiting_) {
      if (now >= waiting.since + waiting.wait_ms) due.emplace(peer, waiting);
    }
    for (const auto& [peer, waiting] : due) {
      Try(peer, {waiting.address, now, std::min(2 * waiting.wait_ms, kRedialMsMax)});
    }
  }

 private:
  struct Waiting {
    std::string address;
    TimeMs since = 0, wait_ms = 0;
  };
  void Try(PeerId peer, const Waiting& next) {
    const Status status = transport_.Connect(peer, next.address);
    if (status.ok()) {
      waiting_.erase(peer);
      return;
    }
    LOG(ERROR) << "cannot dial " << next.address << ": " << status.message()
               << "; the next attempt is in " << next.wait_ms << " ms";
    waiting_[peer] = next;
  }

  Transport& transport_;
  std::map<PeerId, Waiting> waiting_;
};

// The two ends of the loop: the node on one side, the transport and its connections on the other.
struct Ends {
  Node& node;
  Transport& transport;
  MonotonicClock& clock;
  Dialer dialer{transport};
};

void SendOutput(Ends& ends) {
  Output output = ends.node.TakeOutput();
  for (const PeerId peer : output.hang_ups) ends.dialer.HangUp(peer);
  for (const Dial& dial : output.dials) ends.dialer.Connect(dial, ends.clock.NowMs());
  for (Outgoing& outgoing : output.frames) {
    ends.transport.Send(outgoing.to, std::move(outgoing.frame));
  }
}

// Waits until `until` for the first frame, then takes what else has arrived without waiting. Output
// of a frame is sent before the next frame is taken, so that its receiver can work on it meanwhile.
void TakeFrames(Ends& ends, TimeMs until) {
  PeerId from;
  Frame frame;
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const TimeMs left = std::max<TimeMs>(until - ends.clock.NowMs(), 0);
    if (i > 0 && left == 0) return;
    if (!ends.transport.Receive(i == 0 ? left : 0, &from, &frame)) return;
    ends.node.OnFrame(from, std::move(frame));
    frame = Frame();
    SendOutput(ends);
  }
}

// Returns "; ended at the limit on frames a second: 3, ...", or nothing if no connection was ended.
std::string ShowEnded(const EndedConnections& ended) {
  std::string text;
  for (const auto& [limit, word] : WordsOf(PeerLimit{})) {
    if (ended[limit] == 0) continue;
    text += (text.empty() ? "; connections ended at the limit on " : ", ") + std::string(word) +
            ": " + std::to_string(ended[limit]);
  }
  return text;
}

}  // namespace

ProcessEnd RunNodeLoop(Node& node, Transport& transport, MonotonicClock& clock,
                       const NodeLoopOptions& options) {
  Ends ends{node, transport, clock};
  TimeMs now = clock.NowMs();
  TimeMs next_tick = now;
  TimeMs drained = 0;
  bool draining = false, stopping = false;
  while (!draining || now < drained) {
    if (options.on_turn) options.on_turn();
    if (std::optional<ProcessEnd> end; options.end_now && (end = options.end_now())) return *end;
    if (options.stop != nullptr && !stopping && options.stop->load()) {
      stopping = true;
      if (options.leave_ms > 0) {
        node.RequestLeave(options.stop_reason, options.leave_ms);
      } else {
        node.RequestStop(options.stop_reason);
      }
    }
    now = clock.NowMs();
    if (now >= next_tick) {
      node.OnTick(now);
      ends.dialer.Retry(now);
      next_tick = now + options.tick_ms;
    }
    SendOutput(ends);
    if (!draining && node.done()) {
      draining = true;
      drained = now + options.drain_ms;
    }
    // While it drains, the node still answers peers that missed its last frames.
    TakeFrames(ends, draining ? std::min(next_tick, drained) : next_tick);
  }
  SendOutput(ends);
  const TransportCounters moved = transport.counters();
  LOG(INFO) << "sent " << moved.bytes_sent << " bytes in " << moved.frames_sent
            << " frames, of these bytes " << moved.bytes_shared
            << " through shared memory; received " << moved.bytes_received << " bytes in "
            << moved.frames_received << " frames, refused " << moved.frames_refused
            << "; connections by key: " << moved.connections_admitted << " let in, "
            << moved.connections_refused << " refused, " << moved.handshakes_failed
            << " without a handshake" << ShowEnded(moved.ended);
  return {node.exit_status(), node.exit_reason()};
}

}  // namespace hdps
