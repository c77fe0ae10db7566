// Holds back pulls that would read rows older than the staleness bound allows.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "server/pull_admission.h"

namespace hdps {

// A worker at clock c may read once every worker has finished c - bound steps. Bound 0 is
// bulk-synchronous, kUnboundedStaleness is asynchronous, and any other bound is stale-synchronous.
//
// Invariant: every parked pull comes out exactly once, oldest turn first, unless its worker is
// removed. A worker has at most one parked pull for a step and turn: a repeat or a replacement
// takes the place of the one before. At most `parked_max` pulls of one worker are held.
//
// Used only from the loop of one ServerNode.
template <typename Pull>
class StalenessGate {
 public:
  StalenessGate(Clock bound, size_t parked_max) : bound_(bound), parked_max_(parked_max) {}

  // `finished`: number of steps that every worker has finished.
  bool Admits(Clock clock, Clock finished) const { return clock - bound_ <= finished; }

  // Returns the parked pull that is a copy of this request; null if there is none.
  const Pull* Find(PeerId worker, uint64_t request_id, PullAdmission turn) const {
    const auto [begin, end] = parked_.equal_range(turn);
    for (auto at = begin; at != end; ++at) {
      const Parked& parked = at->second;
      if (parked.worker == worker && parked.request_id == request_id) return &parked.pull;
    }
    return nullptr;
  }
  // Parks a pull. Returns false, and drops the pull, if its worker has too many parked.
  bool Park(PeerId worker, uint64_t request_id, PullAdmission turn, Pull pull) {
    const auto [begin, end] = parked_.equal_range(turn);
    for (auto at = begin; at != end; ++at) {
      if (at->second.worker != worker) continue;
      if (at->second.request_id <= request_id) at->second = {worker, request_id, std::move(pull)};
      return true;
    }
    size_t& count = counts_[worker];
    if (count >= parked_max_) return false;
    ++count;
    parked_.emplace(turn, Parked{worker, request_id, std::move(pull)});
    return true;
  }

  // Takes out every pull that `finished` admits and for which ready(pull) is true.
  template <typename Ready>
  std::vector<Pull> Release(Clock finished, const Ready& ready) {
    std::vector<Pull> admitted;
    auto at = parked_.begin();
    while (at != parked_.end() && Admits(at->first.clock, finished)) {
      if (!ready(at->second.pull)) {
        ++at;
        continue;
      }
      size_t& count = counts_.at(at->second.worker);
      CHECK_GT(count, 0u);
      --count;
      admitted.push_back(std::move(at->second.pull));
      at = parked_.erase(at);
    }
    return admitted;
  }

  // Drops the pulls of a worker that has left.
  void RemoveWorker(PeerId worker) {
    counts_.erase(worker);
    std::erase_if(parked_, [&](const auto& parked) { return parked.second.worker == worker; });
  }
  void Clear() {
    counts_.clear();
    parked_.clear();
  }

  size_t size() const { return parked_.size(); }

 private:
  struct Parked {
    PeerId worker;
    uint64_t request_id = 0;
    Pull pull;
  };

  const Clock bound_;
  const size_t parked_max_;
  std::multimap<PullAdmission, Parked> parked_;  // Equal turns keep their order of arrival.
  std::map<PeerId, size_t> counts_;              // Number of parked pulls of each worker.
};

}  // namespace hdps
