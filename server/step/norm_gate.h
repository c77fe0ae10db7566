// Holds a step whose pushes are here until the norm of its gradients at all servers is known.
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

// Under train.clip_norm: workers ask for the squares of each server's gradients, add them up, and
// say with the sum that the step is finished.
//
// Invariant: one step at a time is held, and comes out once. The squares of the last one are kept
// for workers that ask late or again: nobody asks for an older one, for they all have said that it
// is finished before a push of the one behind it left. A worker waits for one answer.
//
// Belongs to one RowService and is used only from its loop.
template <typename Asker>
class NormGate {
 public:
  bool holds() const { return step_.has_value(); }
  // Somebody waits for squares.
  bool asked() const { return !questions_.empty(); }
  // Of the step that is held.
  Clock clock() const { return step_->clock; }

  // Requires: none is held. Those who have asked for its squares.
  std::vector<Asker> Hold(SyncCombiner::Step step, const SquareSum& squares) {
    CHECK(!holds());
    CHECK(!last_ || step.clock > last_->first) << "steps come in order";
    last_ = {step.clock, squares};
    step_ = std::move(step);
    std::vector<Asker> waiting;
    for (const auto& [worker, question] : questions_) {
      if (question.first == last_->first) waiting.push_back(question.second);
    }
    std::erase_if(questions_, [&](const auto& one) { return one.second.first <= last_->first; });
    return waiting;
  }

  // The step that is held, if it is that of `clock`: the norm is known.
  std::optional<SyncCombiner::Step> Release(Clock clock) {
    if (!step_ || step_->clock != clock) return std::nullopt;
    return std::exchange(step_, std::nullopt);
  }

  // The squares of the step of `clock`, where they are known; else the question waits.
  std::optional<SquareSum> Ask(PeerId worker, Clock clock, const Asker& asker) {
    if (last_ && last_->first == clock) return last_->second;
    if (!last_ || clock > last_->first) questions_[worker] = {clock, asker};
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
  std::map<PeerId, std::pair<Clock, Asker>> questions_;
};

}  // namespace hdps
