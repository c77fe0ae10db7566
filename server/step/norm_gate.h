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
// Invariant: at most one step is held, and each comes out once. The squares of the last step are
// kept for workers that ask late or again. No worker asks for an older step: all have finished it
// before any push of the next step was sent. A worker waits for at most one answer.
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
    CHECK(!last_ || step.clock > last_->first) << "steps come in order";
    last_ = {step.clock, squares};
    step_ = std::move(step);
    std::vector<Requester> waiting;
    for (const auto& [worker, question] : questions_) {
      if (question.first == last_->first) waiting.push_back(question.second);
    }
    std::erase_if(questions_, [&](const auto& one) { return one.second.first <= last_->first; });
    return waiting;
  }

  // Returns the held step if its clock is `clock`, when the norm is known.
  std::optional<SyncCombiner::Step> Release(Clock clock) {
    if (!step_ || step_->clock != clock) return std::nullopt;
    return std::exchange(step_, std::nullopt);
  }

  // Returns the squares of the step of `clock` if known; otherwise the request waits.
  std::optional<SquareSum> Ask(PeerId worker, Clock clock, const Requester& requester) {
    if (last_ && last_->first == clock) return last_->second;
    if (!last_ || clock > last_->first) questions_[worker] = {clock, requester};
    return std::nullopt;
  }

  void RemoveWorker(PeerId worker) { questions_.erase(worker); }
  void Clear() {
    step_.reset();
    last_.reset();
    questions_.clear();
  }

 private:
  std::optional<SyncCombiner::Step> step_;
  std::optional<std::pair<Clock, SquareSum>> last_;
  std::map<PeerId, std::pair<Clock, Requester>> questions_;
};

}  // namespace hdps
