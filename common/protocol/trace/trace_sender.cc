// Measures round trips, and cuts spans into parts.
#include "common/protocol/trace/trace_sender.h"

#include <algorithm>

namespace hdps {

void TraceSender::OnBeat(uint64_t number) {
  if (sent_.size() >= kTripsMax) sent_.pop_front();
  sent_.emplace_back(number, recorder_.NowNs());
}

void TraceSender::OnAck(const HeartbeatAck& ack) {
  const auto sent = std::ranges::find(sent_, ack.number, &std::pair<uint64_t, int64_t>::first);
  if (ack.time_ns != 0 && sent != sent_.end()) {
    const int64_t now = recorder_.NowNs();
    if (trips_.size() >= kTripsMax) trips_.pop_front();
    trips_.push_back({ack.time_ns - now, ack.time_ns - sent->second});
    sent_.erase(sent_.begin(), sent + 1);
  }
  if (ack.trace != order_) Follow(ack.trace);
}

void TraceSender::Follow(const TraceOrder& order) {
  const bool is_new = order.trace != order_.trace;
  const bool was_recording = !is_new && order_.phase == TracePhase::kRecord;
  // An older answer may arrive late.
  if (!is_new && order.phase < order_.phase) return;
  order_ = order;
  if (is_new) {
    recorder_.Stop();
    sent_last_ = order.trace == 0;
  }
  if (order.phase == TracePhase::kRecord && !was_recording) {
    recorder_.Record(order.from, order.until);
  }
  if (order.phase == TracePhase::kClose) recorder_.Stop();
}

TraceSender::Trip TraceSender::Bounds() const {
  const Trip shortest = *std::ranges::min_element(trips_, {}, &Trip::Width);
  Trip all = shortest;
  for (const Trip& trip : trips_) {
    all.least_ns = std::max(all.least_ns, trip.least_ns);
    all.most_ns = std::min(all.most_ns, trip.most_ns);
  }
  // Clocks that drift apart agree with no difference for long.
  return all.Width() < 0 ? shortest : all;
}

std::optional<TracePart> TraceSender::TakePart(bool all) {
  if (sent_last_ || order_.phase < TracePhase::kRecord) return std::nullopt;
  const bool closes = order_.phase == TracePhase::kClose;
  const size_t waiting = recorder_.size();
  if (!closes && waiting < (all ? 1 : kPartSpans)) return std::nullopt;
  TracePart part;
  part.trace = order_.trace;
  part.packed = Pack(recorder_.Take(kPartSpans));
  part.left_out = recorder_.left_out();
  if (!trips_.empty()) {
    const Trip bounds = Bounds();
    part.uncertainty_ns = (bounds.Width() + 1) / 2;
    part.offset_ns = bounds.least_ns + part.uncertainty_ns;
  }
  part.last = sent_last_ = closes && recorder_.size() == 0;
  return part;
}

}  // namespace hdps
