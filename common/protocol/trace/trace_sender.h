// A member's side of a trace: follows the scheduler's orders, and sends what was recorded.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "common/protocol/membership_messages.h"
#include "common/protocol/trace/trace_messages.h"

namespace hdps {

// Invariant: a recording is that of the newest order. Each round trip bounds the
// difference of the clocks from both sides; the bounds of the last ones hold together.
class TraceSender {
 public:
  explicit TraceSender(SpanRecorder& recorder) : recorder_(recorder) {}  // Must outlive it.

  void OnBeat(uint64_t number);  // A heartbeat is sent now.
  void OnAck(const HeartbeatAck& ack);
  // Is true while the scheduler measures clocks, so that heartbeats go out more often.
  bool measures() const { return order_.phase == TracePhase::kMeasure; }
  // Returns the next part, if there is enough for one or nothing more will come; `all`: also a
  // smaller one.
  std::optional<TracePart> TakePart(bool all);

 private:
  static constexpr size_t kTripsMax = 32;
  static constexpr size_t kPartSpans = 8192;
  // Bounds of the difference of the clocks.
  struct Trip {
    int64_t least_ns = 0, most_ns = 0;
    int64_t Width() const { return most_ns - least_ns; }
  };
  Trip Bounds() const;

  void Follow(const TraceOrder& order);

  SpanRecorder& recorder_;
  TraceOrder order_;
  bool sent_last_ = true;
  std::deque<std::pair<uint64_t, int64_t>> sent_;  // Heartbeats without an answer, and when.
  std::deque<Trip> trips_;
};

}  // namespace hdps
