// Holds a complete step until the norm of its gradients over all servers is known.
#pragma once

#include <glog/logging.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/protocol/activity.h"
#include "server/step/sync_combiner.h"

namespace hdps {

// Serves train.clip_norm: workers request the squares of each server's gradients, add them up, and
// send the sum with the message that they have finished the step.
//
// Invariant: at most one step is held, and each comes out once. The squares of the last steps are
// kept for workers that ask late or again, and for a process that takes up a lost worker's step:
// the others may be as many steps ahead as rows are kept for it (StepsTakenUp). A worker waits for
// at most one answer.
//
// Used only from the loop of one RowService.
template <typename Requester>
class NormGate {
 public:
  bool holds() const { return step_.has_value(); }
  // Is true if a worker waits for squares.
  bool asked() const { return !questions_.empty(); }
  // Clock of the held step. Requires: holds().
  Clock clock() const { return step_->clock; }

  // Holds a complete step. Requires: none is held. Returns the requests that wait for its squares.
  std::vector<Requester> Hold(SyncCombiner::Step step, const SquareSum& squares) {
    CHECK(!holds());
    const Clock clock = step.clock;
    CHECK(clock > newest()) << "steps come in order";
    squares_.emplace(clock, squares);
    if (squares_.size() > kStepsKept) squares_.erase(squares_.begin());
    step_ = std::move(step);
    std::vector<Requester> waiting;
    for (const auto& [worker, question] : questions_) {
      if (question.first == clock) waiting.push_back(question.second);
    }
    std::erase_if(questions_, [clock](const auto& one) { return one.second.first <= clock; });
    return waiting;
  }

  // Returns the held step if its clock is `clock`, when the norm is known.
  std::optional<SyncCombiner::Step> Release(Clock clock) {
    if (!step_ || step_->clock != clock) return std::nullopt;
    return std::exchange(step_, std::nullopt);
  }

  // Returns the squares of the step of `clock` if known; otherwise the request waits.
  std::optional<SquareSum> Ask(PeerId worker, Clock clock, const Requester& requester) {
    const auto known = squares_.find(clock);
    if (known != squares_.end()) return known->second;
    if (clock > newest()) questions_[worker] = {clock, requester};
    return std::nullopt;
  }

  void RemoveWorker(PeerId worker) { questions_.erase(worker); }
  void Clear() {
    step_.reset();
    squares_.clear();
    questions_.clear();
  }

 private:
  static constexpr size_t kStepsKept = 4;
  Clock newest() const { return squares_.empty() ? -1 : squares_.rbegin()->first; }

  std::optional<SyncCombiner::Step> step_;
  std::map<Clock, SquareSum> squares_;
  std::map<PeerId, std::pair<Clock, Requester>> questions_;
};

}  // namespace hdps
