// Holds a complete step until the norm of its gradients over all servers is known.
#pragma once

#include <glog/logging.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/square_sum.h"
#include "common/base/status.h"
#include "common/protocol/activity.h"
#include "server/step/sync_combiner.h"

namespace hdps {

// Serves train.clip_norm: workers request the squares of each server's gradients, add them up, and
// send the sum with the message that they have finished the step.
//
// Invariant: at most one step is held, and each comes out once. The squares of the last two steps
// are kept for workers that ask late or again. No worker asks for an older one: a process that
// takes a dead one's place asks for the steps that were pushed and not announced here, and each
// worker announces a step only once its step before is acknowledged. A worker waits for at most one
// answer.
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
    CHECK(known_.empty() || clock > known_.rbegin()->first) << "steps come in order";
    known_.emplace(clock, squares);
    if (known_.size() > kStepsKnown) known_.erase(known_.begin());
    step_ = std::move(step);
    std::vector<Requester> waiting;
    for (const auto& [worker, question] : questions_) {
      if (question.first == clock) waiting.push_back(question.second);
    }
    std::erase_if(questions_, [&](const auto& one) { return one.second.first <= clock; });
    return waiting;
  }

  // Returns the held step if its clock is `clock`, when the norm is known.
  std::optional<SyncCombiner::Step> Release(Clock clock) {
    if (!step_ || step_->clock != clock) return std::nullopt;
    return std::exchange(step_, std::nullopt);
  }

  // Returns the squares of the step of `clock`; without a value, the step is not complete and the
  // request waits. Errors: kCorruption, the step is older than those that are kept.
  Result<std::optional<SquareSum>> Ask(PeerId worker, Clock clock, const Requester& requester) {
    if (const auto at = known_.find(clock); at != known_.end()) return {at->second};
    if (!known_.empty() && clock < known_.rbegin()->first) {
      return Status(Code::kCorruption, "the squares of step " + std::to_string(clock) +
                                           " are not kept; the last are those of step " +
                                           std::to_string(known_.rbegin()->first));
    }
    questions_[worker] = {clock, requester};
    return {std::nullopt};
  }

  void RemoveWorker(PeerId worker) { questions_.erase(worker); }
  void Clear() {
    step_.reset();
    known_.clear();
    questions_.clear();
  }

 private:
  static constexpr size_t kStepsKnown = 2;

  std::optional<SyncCombiner::Step> step_;
  std::map<Clock, SquareSum> known_;
  std::map<PeerId, std::pair<Clock, Requester>> questions_;
};

}  // namespace hdps
