// The counters of one member, which any of its threads may move.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "common/telemetry/figure_layout.h"

namespace hdps {

// Invariant: all calls are relaxed atomic operations on numbers that are allocated once. A figure
// that the layout lacks is ignored, so code of two roles can count for either.
//
// Safe to call from any thread.
class Meters {
 public:
  explicit Meters(FigureLayout layout)
      : layout_(std::move(layout)),
        numbers_(std::make_unique<std::atomic<uint64_t>[]>(layout_.size())) {}

  const FigureLayout& layout() const { return layout_; }

  // Adds to a counter; of seconds: nanoseconds. `label`: index of the label's value; of a table
  // with its tier: table * 2 + tier.
  void Add(FigureId id, uint64_t count, size_t label = 0) {
    if (auto* const number = At(id, label)) number->fetch_add(count, std::memory_order_relaxed);
  }
  // Sets a counter whose total is counted elsewhere.
  void SetTotal(FigureId id, uint64_t total, size_t label = 0) {
    if (auto* const number = At(id, label)) number->store(total, std::memory_order_relaxed);
  }
  // Sets a gauge, in its unit.
  void Set(FigureId id, double value, size_t label = 0) {
    SetTotal(id, std::bit_cast<uint64_t>(value), label);
  }
  // Takes a value of a histogram: nanoseconds or clocks.
  void Observe(FigureId id, int64_t value, size_t label = 0) {
    auto* const first = At(id, label);
    if (first == nullptr) return;
    const std::span<const int64_t> bounds = BoundsOf(RecordOf(id));
    const auto bucket = std::ranges::lower_bound(bounds, value) - bounds.begin();
    first[bucket].fetch_add(1, std::memory_order_relaxed);
    first[bounds.size() + 1].fetch_add(static_cast<uint64_t>(std::max<int64_t>(value, 0)),
                                       std::memory_order_relaxed);
  }
  Readings Read() const {
    Readings readings(layout_.size());
    for (size_t i = 0; i < readings.size(); ++i) {
      readings[i] = numbers_[i].load(std::memory_order_relaxed);
    }
    return readings;
  }

 private:
  std::atomic<uint64_t>* At(FigureId id, size_t label) const {
    const size_t offset = layout_.OffsetOf(id);
    if (offset == FigureLayout::kNone || label >= layout_.LabelsOf(id)) return nullptr;
    return &numbers_[offset + label * FigureLayout::WidthOf(RecordOf(id))];
  }

  const FigureLayout layout_;
  const std::unique_ptr<std::atomic<uint64_t>[]> numbers_;
};

}  // namespace hdps
