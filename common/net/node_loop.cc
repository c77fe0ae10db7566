// The loop of a daemon: frames and ticks into the node, dials and frames out of it.
#include "common/net/node_loop.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

// So many frames at most before ticks get their turn.
constexpr int kFramesPerTurn = 64;

void SendOutput(Node& node, Transport& transport) {
  Output output = node.TakeOutput();
  for (const Dial& dial : output.dials) {
    const Status status = transport.Connect(dial.peer, dial.address);
    if (!status.ok()) LOG(ERROR) << "cannot dial " << dial.address << ": " << status.message();
  }
  for (Outgoing& outgoing : output.frames) transport.Send(outgoing.to, std::move(outgoing.frame));
}

// Waits until `until` for the first frame; takes what else has arrived by then without waiting.
// What a frame brings out is sent before the next is taken: its receiver works on it meanwhile.
void TakeFrames(Node& node, Transport& transport, MonotonicClock& clock, TimeMs until) {
  PeerId from;
  Frame frame;
  for (int i = 0; i < kFramesPerTurn; ++i) {
    const TimeMs left = std::max<TimeMs>(until - clock.NowMs(), 0);
    if (i > 0 && left == 0) return;
    if (!transport.Receive(i == 0 ? left : 0, &from, &frame)) return;
    node.OnFrame(from, std::move(frame));
    frame = Frame();
    SendOutput(node, transport);
  }
}

}  // namespace

int RunNodeLoop(Node& node, Transport& transport, MonotonicClock& clock,
                const NodeLoopOptions& options) {
  TimeMs now = clock.NowMs();
  TimeMs next_tick = now;
  TimeMs drained = 0;
  bool draining = false;
  while (!draining || now < drained) {
    if (options.on_turn) options.on_turn();
    now = clock.NowMs();
    if (now >= next_tick) {
      node.OnTick(now);
      next_tick = now + options.tick_ms;
    }
    SendOutput(node, transport);
    if (!draining && node.done()) {
      draining = true;
      drained = now + options.drain_ms;
    }
    // While draining, the node still answers those who missed its last words.
    TakeFrames(node, transport, clock, draining ? std::min(next_tick, drained) : next_tick);
  }
  SendOutput(node, transport);
  return node.exit_status();
}

}  // namespace hdps
