// Keeps the rows that were answered to the pulls of steps that are not finished.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "common/base/buffer.h"
#include "common/base/dtype.h"
#include "common/base/ids.h"
#include "server/key_list_cache.h"

namespace hdps {

// In sync mode a process that makes the step of a dead one again has to read the very rows that the
// dead one had read, though the step may have been applied here since. So has a worker that makes
// its own step again, as StepsTakenUp() says.
//
// Invariant: the rows of a step and key list are those of the first answer at the step's turn. At
// most `pulls_max` are kept for each place, those of its newest steps.
//
// Used only from the loop of one RowService.
class KeptPulls {
 public:
  struct Kept {
    PeerId peer;  // Who asked.
    std::shared_ptr<const KeyList> list;
    DType format = DType::kFp32;
    Buffer rows;
  };

  explicit KeptPulls(size_t pulls_max) : pulls_max_(pulls_max) {}

  bool Has(WorkerId worker, Clock clock, uint32_t part) const {
    const auto place = places_.find(worker);
    return place != places_.end() && place->second.contains({clock, part});
  }
  void Keep(WorkerId worker, Clock clock, uint32_t part, Kept kept) {
    auto& place = places_[worker];
    place.try_emplace({clock, part}, std::move(kept));
    if (place.size() > pulls_max_) place.erase(place.begin());
  }
  // Returns what was answered for the same keys; null: nothing.
  const Kept* Find(WorkerId worker, Clock clock, uint32_t part, const KeyList& list) const {
    const auto place = places_.find(worker);
    if (place == places_.end()) return nullptr;
    const auto at = place->second.find({clock, part});
    if (at == place->second.end()) return nullptr;
    return std::ranges::equal(at->second.list->keys.bytes(), list.keys.bytes()) ? &at->second
                                                                                : nullptr;
  }
  // Drops those of the steps before `clock`, which the place has finished.
  void Finish(WorkerId worker, Clock clock) {
    const auto place = places_.find(worker);
    if (place == places_.end()) return;
    place->second.erase(place->second.begin(), place->second.lower_bound({clock, 0}));
  }
  void Leave(WorkerId worker) { places_.erase(worker); }
  void Clear() { places_.clear(); }

 private:
  const size_t pulls_max_;
  std::map<WorkerId, std::map<std::pair<Clock, uint32_t>, Kept>> places_;
};

}  // namespace hdps
