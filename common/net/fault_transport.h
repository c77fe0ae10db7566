// A network that fails on purpose: frames are lost, doubled, overtaken and late, links are cut.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/net/transport.h"
#include "common/platform/fault_window.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"

namespace hdps {

// Chances are parts of 1. They meet the frames that leave this process; a cut meets both ways.
struct FrameFaults {
  uint64_t seed = 1;
  double drop = 0;
  double repeat = 0;   // Sent twice.
  double reorder = 0;  // Sent after the next frame to the same peer.
  double late = 0;     // Sent after `late_ms_min` to `late_ms_max`, frames behind it not.
  int64_t late_ms_min = 0, late_ms_max = 0;

  enum class Whom { kAll, kScheduler, kMembers };  // kMembers: all but the scheduler.
  struct Cut {
    Whom whom = Whom::kAll;
    bool in = true, out = true;
    FaultWindow window;
  };
  std::vector<Cut> cuts;

  bool any() const { return drop > 0 || repeat > 0 || reorder > 0 || late > 0 || !cuts.empty(); }
};

struct FaultCounters {
  uint64_t sent = 0, received = 0;  // By the node, and to it.
  uint64_t dropped = 0, repeated = 0, reordered = 0, late = 0;
  uint64_t cut_out = 0, cut_in = 0;
};

// Another transport with these faults. What happens is decided by the seed and the order of frames.
// Worse than a transport's promise, since it repeats and reorders: who stands this stands TCP.
//
// Invariant: every frame given to Send() was dropped, cut, or is sent or held; at most kHeldMax
// frames are held, and what comes beyond is dropped.
class FaultTransport : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> transport, FrameFaults faults,
                 std::shared_ptr<MonotonicClock> clock);
  ~FaultTransport() override;  // Logs the counters; what is held is lost.

  Result<std::string> Listen(const std::string& address) override;
  Status Connect(PeerId peer, const std::string& address) override;
  void HangUp(PeerId peer) override { transport_->HangUp(peer); }
  void Send(PeerId to, Frame frame) override;
  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override;
  SectionAllocator* sections() override { return transport_->sections(); }
  void Wake() override { transport_->Wake(); }
  TransportCounters counters() const override { return transport_->counters(); }
  const FaultCounters& faults() const { return counters_; }

 private:
  static constexpr size_t kHeldMax = 1 << 14;
  struct Held {
    PeerId to;
    Frame frame;
    bool overtaken = false;  // No frame: one to be overtaken has waited for long enough.
  };
  bool Chance(double part) { return random_.Unit() < part; }
  bool IsCut(PeerId peer, bool out);
  void Hold(int64_t due, Held held);
  void SendDue();
  void SendNow(PeerId to, Frame frame);  // Unless its link is cut.

  const std::unique_ptr<Transport> transport_;
  const FrameFaults faults_;
  const std::shared_ptr<MonotonicClock> clock_;
  const int64_t begin_;
  Random random_;
  FaultCounters counters_;
  std::vector<char> told_;             // Of each cut: its beginning was logged.
  std::multimap<int64_t, Held> held_;  // By when they are sent.
  std::map<PeerId, Frame> overtaken_;  // Sent after the next one, or when they are due.
};

}  // namespace hdps
