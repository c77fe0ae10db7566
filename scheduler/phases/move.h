// The members change without a loss: rows of shards that move to another server are saved and
// loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/protocol/view.h"
#include "scheduler/phases/move_ahead.h"
#include "scheduler/phases/phase.h"

namespace hdps {

// Invariant: until the files hold every moved row, the view is the old one, and a fault leaves
// everything as it was. After that a fault takes the job back to its checkpoint. No step is lost.
class MovePhase : public Phase {
 public:
  // `quiet_since`: since when the job has stood for the move. `ahead`: the rows that have come
  // already, of which only changes move.
  MovePhase(const PhaseParts& parts, View next, TimeMs quiet_since, AheadCopies ahead = {});

  // kMoveDense if workers keep the dense layers, otherwise kMoveSave.
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
  // Lets the receivers of a move that will not be free the memory of the copies that have come.
  void DropCopies(const Turn& turn) const;
  void Report(const Turn& turn) const;
  Next Finish(JobAtHand& job) const;

  View next_;
  const TimeMs quiet_since_;
  const AheadCopies ahead_;
  JobPhase stage_;
  // Shards that each server receives in the next view.
  std::map<PeerId, std::vector<ShardId>> incoming_shards_;
  std::vector<SavedFile> moved_;
  std::string fault_;  // The first error.
};

// Returns the folder of the files that move for `view`.
std::string MovesFolder(const PhaseParts& parts, ViewId view);

// Removes the files of moves, also those left by a former scheduler process.
void RemoveMoves(const PhaseParts& parts);

}  // namespace hdps
