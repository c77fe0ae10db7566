// Knows which pushes of each place in the job were taken, whichever process sent them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/manifest_parts.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/tallies.h"

namespace hdps {

// A place is a worker's rank. A process that takes a dead one's place makes its last steps again,
// under sequence numbers of its own; the clock and the key list of a push tell whether it was taken
// before.
//
// Invariant: floor <= pushed() <= reached() for each place. A push below `floor`, the clock that
// the place has reported, was taken. At most `clocks_max` clocks are remembered: a worker has no
// more steps on their way, so that those before them were taken too.
//
// Used only from the loop of one RowService.
class RankStands {
 public:
  // `parts`: number of pushes of a worker for one step: see ListsOfStep().
  RankStands(size_t clocks_max, uint32_t parts) : clocks_max_(clocks_max), parts_(parts) {}

  void Join(WorkerId worker, Clock clock) { places_.try_emplace(worker, PlaceAt(clock)); }
  void Leave(WorkerId worker) { places_.erase(worker); }
  void Reset(Clock clock) {
    for (auto& [worker, place] : places_) place = PlaceAt(clock);
  }

  // Returns who sent the push that was taken; none if it was not, or is older than is known.
  std::optional<PeerId> TakenFrom(WorkerId worker, Clock clock, uint32_t part) const {
    const Place& place = places_.at(worker);
    const auto step = place.taken.find(clock);
    if (step == place.taken.end()) return std::nullopt;
    const auto from = step->second.find(part);
    return from == step->second.end() ? std::nullopt : std::optional(from->second);
  }
  // Notes a push. `counts` and `messages`, the step's of a topic, came with it.
  void Take(WorkerId worker, PeerId from, Clock clock, uint32_t part, const RoundCounts& counts,
            const std::vector<PartitionSpan>& messages = {}) {
    Place& place = places_.at(worker);
    if (clock < place.floor) return;
    place.taken[clock].emplace(part, from);
    if (part == 0) place.counts[clock] = counts;
    if (!messages.empty()) place.messages[clock] = messages;
    if (place.taken.size() > clocks_max_) Finish(worker, place.taken.begin()->first + 1);
  }
  // Notes that every push of the steps before `clock` was taken.
  void Finish(WorkerId worker, Clock clock) {
    Place& place = places_.at(worker);
    place.floor = std::max(place.floor, clock);
    place.taken.erase(place.taken.begin(), place.taken.lower_bound(place.floor));
    // The counts with the step before are those of a process that goes on at the floor.
    place.counts.erase(place.counts.begin(), place.counts.lower_bound(place.floor - 1));
    place.messages.erase(place.messages.begin(), place.messages.lower_bound(place.floor - 1));
  }

  Clock floor(WorkerId worker) const { return places_.at(worker).floor; }
  // Returns the first step of which a push may be missing.
  Clock pushed(WorkerId worker) const {
    const Place& place = places_.at(worker);
    Clock next = place.floor;
    while (true) {
      const auto step = place.taken.find(next);
      if (step == place.taken.end() || step->second.size() < parts_) return next;
      ++next;
    }
  }
  // Returns the first step of which, and behind which, no push was taken.
  Clock reached(WorkerId worker) const {
    const Place& place = places_.at(worker);
    return place.taken.empty() ? place.floor
                               : std::max(place.floor, place.taken.rbegin()->first + 1);
  }
  // Returns the counts that came with the last step before `clock`.
  RoundCounts CountsBefore(WorkerId worker, Clock clock) const {
    const Place& place = places_.at(worker);
    const auto last = place.counts.find(clock - 1);
    return last == place.counts.end() ? RoundCounts() : last->second;
  }
  // Returns what the steps from the one before floor() on have of a topic, as far as is known.
  std::vector<TopicStep> Steps(WorkerId worker) const {
    std::vector<TopicStep> steps;
    for (const auto& [clock, messages] : places_.at(worker).messages) {
      steps.push_back({clock, messages});
    }
    return steps;
  }

 private:
  struct Place {
    Clock floor = 0;
    std::map<Clock, std::map<uint32_t, PeerId>> taken;  // By step and part.
    std::map<Clock, RoundCounts> counts;
    std::map<Clock, std::vector<PartitionSpan>> messages;
  };
  static Place PlaceAt(Clock clock) {
    Place place;
    place.floor = clock;
    return place;
  }

  const size_t clocks_max_;
  const uint32_t parts_;
  std::map<WorkerId, Place> places_;
};

}  // namespace hdps
