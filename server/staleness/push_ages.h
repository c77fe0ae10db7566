// Counts the updates of a group's rows, and tells how old the rows of a push are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hdps {

// An update is a push that was applied by itself, as in async and ssp. The updates that a push
// missed are those that were applied between the moment at which its rows were read here and the
// moment at which it is taken: those of other workers, and with train.lookahead the worker's own. A
// clock is one update of every worker, so the age of the rows in clocks is the number of missed
// updates divided by the number of workers, rounded up. 0 means that the gradient was computed from
// the rows as they are.
//
// The worker sends the mark of the rows that it used with its push, so the age is exact although
// pulls are repeated, and every holder of the rows finds the same one.
//
// Invariant: equal at all holders of a group that have taken the same changes.
class PushAges {
 public:
  // Forgets the updates, because the rows were loaded.
  void Reset() { updates_ = 0; }
  void CountUpdate() { ++updates_; }
  // Returns the mark of rows that are read now; never 0.
  uint64_t mark() const { return updates_ + 1; }
  // Returns the updates that rows of this mark lack; none if no rows were read. A mark beyond the
  // present one is that of a former primary, which had taken pushes that are still to come here.
  std::optional<uint64_t> MissedSince(uint64_t mark) const {
    if (mark == 0) return std::nullopt;
    return mark > this->mark() ? 0 : this->mark() - mark;
  }

 private:
  uint64_t updates_ = 0;
};

// Returns the age in clocks of rows that lack so many updates.
constexpr uint64_t ClocksOf(uint64_t missed_updates, size_t workers) {
  return workers == 0 ? 0 : missed_updates / workers + (missed_updates % workers != 0 ? 1 : 0);
}

}  // namespace hdps
