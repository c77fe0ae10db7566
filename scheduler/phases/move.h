// The members change without a loss: rows of shards that another server gets are saved and loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/protocol/view.h"
#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: until every moved row is in files the view is the old one, and a fault leaves all as
// it was; behind that a fault takes the job back to its checkpoint. No step is lost.
class MovePhase : public Phase {
 public:
  // `quiet_since`: the job has stood for it.
  MovePhase(const PhaseParts& parts, View next, TimeMs quiet_since);

  // kMoveDense where workers keep the dense layers, else kMoveSave.
  JobPhase first() const { return stage_; }
  Next Begin(const Turn& turn) override;
  bool TakesRefusal(const Answer& answer) override;
  Next OnAllAnswered(const Turn& turn) override;

 private:
  std::string Folder() const;
  Next GoOnWith(JobPhase stage);
  Next SendSaves(const Turn& turn);
  Next SendLoads(const Turn& turn) const;
  Next SendPosition(const Turn& turn) const;
  void Report(const Turn& turn) const;
  Next Finish(JobAtHand& job) const;

  View next_;
  const TimeMs quiet_since_;
  JobPhase stage_;
  std::map<PeerId, std::vector<ShardId>> come_;  // To these servers.
  std::vector<SavedFile> moved_;
  std::string fault_;  // The first error.
};

// Removes the files of moves, also of those that a scheduler before this one has left.
void RemoveMoves(const PhaseParts& parts);

}  // namespace hdps
