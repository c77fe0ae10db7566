// Sends rows of shards that are to move to their next holders, while training goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/view.h"
#include "scheduler/phases/phase.h"

namespace hdps {

// The copies that the holders of a view to come have of shards that they receive.
struct AheadCopies {
  // The clock of the newest copy, by the server that made it; it knows what has changed since.
  std::map<PeerId, Clock> since;
  uint64_t rows = 0, bytes = 0;  // Of the first copies, which have all rows.
};

// MoveAhead copies the rows of a move while the job trains: first all of them, then what changed
// meanwhile, until that is little. MovePhase sends what changes after that, while the job stands.
//
// Invariant: beside any phase; servers go on with the rows that they have, so a fault costs nothing
// but the move.
class MoveAhead {
 public:
  explicit MoveAhead(const PhaseParts& parts) : parts_(&parts) {}

  bool under_way() const { return next_.has_value(); }
  // Is true if little has changed since the last copies were read.
  bool ready() const { return under_way() && ready_; }

  // Requires: not under_way(), and `next` is the present view but for its number and its shards.
  // Returns why it cannot begin, or an empty text.
  std::string Begin(View next, Orders& orders);
  // Takes an answer to a kSaveAhead or kLoadAhead. Returns why the rows cannot move ahead, or an
  // empty text.
  std::string OnAnswer(const Answer& answer, Orders& orders);
  struct Ready {
    View view;
    AheadCopies copies;
  };
  // Ends it, for the view to be entered. Requires: ready().
  Ready Take();
  // Forgets it, and lets holders drop what they have. The caller drops open commands.
  void Drop(Orders& orders);
  void Forget() { *this = MoveAhead(*parts_); }

 private:
  std::string Folder() const;
  void SendSaves(Orders& orders);
  // Sends what the servers have written; returns false if that is nothing.
  bool SendLoads(Orders& orders);
  std::string OnAllAnswered(Orders& orders);

  const PhaseParts* parts_;
  std::optional<View> next_;
  bool ready_ = false, saves_ = false;  // `saves_`: kSaveAhead is at hand, otherwise kLoadAhead.
  uint32_t round_ = 0;
  uint64_t round_bytes_ = 0;  // Of the last round.
  size_t open_ = 0;           // Commands without an answer.
  std::map<PeerId, std::vector<ShardId>> leaving_, incoming_;
  std::map<PeerId, CommandDone> saved_;  // Of this round.
  AheadCopies copies_;
};

}  // namespace hdps
