// Holds requests until those before them in the record have passed.
#include "server/record/order_gate.h"

#include <string>
#include <utility>

namespace hdps {

OrderGate::OrderGate(std::vector<OrderEntry> order, TimeMs patience_ms)
    : order_(std::move(order)), patience_ms_(patience_ms) {
  for (size_t place = 0; place < order_.size(); ++place) places_.emplace(order_[place], place);
}

bool OrderGate::Passes(PeerId from, WorkerId worker, const Frame& frame) {
  const std::optional<OrderEntry> entry = EntryOf(worker, frame);
  if (!entry) return true;
  const auto place = places_.find(*entry);
  if (place == places_.end() || place->second < next_) return true;
  if (place->second == next_) {
    Pass();
    return true;
  }
  held_.insert_or_assign(*entry, Held{from, frame});
  return false;
}

std::optional<OrderGate::Held> OrderGate::TakeDue() {
  if (next_ == order_.size()) return std::nullopt;
  auto held = held_.extract(order_[next_]);
  if (held.empty()) return std::nullopt;
  Pass();
  return std::move(held.mapped());
}

Status OrderGate::OnTick(TimeMs now) {
  if (held_.empty() || !since_ || passed_ != passed_before_) {
    since_ = now;
    passed_before_ = passed_;
    return {};
  }
  if (now - *since_ < patience_ms_) return {};
  const OrderEntry& awaited = order_[next_];
  return {Code::kCorruption,
          "the run is not that of the record: for " + std::to_string(patience_ms_ / 1000) +
              " s the " + OrderKindName(awaited.kind) + " of step " + std::to_string(awaited.step) +
              " of worker " + std::to_string(awaited.worker.value) +
              " has not come, which is next in it"};
}

}  // namespace hdps
