// Holds requests until those before them in the record have passed.
#include "server/record/order_gate.h"

#include <string>
#include <utility>

#include "common/base/counted.h"

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
  return {Code::kCorruption,
          "the run is not that of the record, or a setting that stops all workers, such as "
          "checkpoint.every_steps or train.eval_every_steps, differs from the run's: for " +
              std::to_string(patience_ms_ / 1000) + " s " + Awaited() +
              " has not come, which is next in it"};
}

std::string OrderGate::Missing() const {
  if (next_ == order_.size()) return "";
  return Counted(order_.size() - next_, "request") + ", first " + Awaited();
}

std::string OrderGate::Awaited() const {
  const OrderEntry& next = order_[next_];
  return std::string("the ") + OrderKindName(next.kind) + " of step " + std::to_string(next.step) +
         " of worker " + std::to_string(next.worker.value);
}

}  // namespace hdps
