// All workers train from one common clock to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "scheduler/phases/phase.h"
#include "scheduler/plan/train_round.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

// Invariant: the job's record holds the orders of this round; its sums grow when all workers have
// reached one clock.
class TrainPhase : public Phase {
 public:
  using Phase::Phase;

  Next Begin(const Turn& turn) override;
  // Takes over a round that a former scheduler process began: its orders are in the record.
  void TakeOver(JobAtHand& job, TimeMs now);
  Next OnAnswer(const Answer& answer, const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;
  Next OnTick(const Turn& turn) override;
  void OnProgress(uint32_t worker, Clock clock, TrainRound::Stand stand) {
    round_->OnProgress(worker, clock, stand);
  }

  // Gives the last order of the worker `rank`, which `from` had, to the process that has its place
  // now.
  void Replace(uint32_t rank, PeerId from, const Turn& turn);
  // Lets the worker `rank` meet the process that has a lost worker's place now, which needs it to
  // take up its step: one that has answered its order, or does so without having met, is asked
  // again.
  void MeetAgain(uint32_t rank, const Turn& turn);

  Clock furthest() const { return round_->furthest(); }
  // Ends the round where its workers are, if a stop is due, members are to change, or the workers'
  // own programs have no more examples or want a checkpoint.
  void PauseIfDue(const JobAtHand& job);

 private:
  void AskAgain(uint32_t rank, const Turn& turn);
  void MakeRound(JobAtHand& job, TimeMs now);
  // Of workers whose model is another program's: whether none has more examples, and whether one
  // asks for a checkpoint that `clock` is late enough for.
  bool ProgramsHaveEnded() const;
  bool SaveIsWanted(const JobAtHand& job, Clock clock) const;
  // Returns what is due by the clock at a step after the newest save, while no other is written.
  WantedSave DueByTheClock(const JobAtHand& job, Clock clock, TimeMs now) const;
  // Is true at a step at which the age of rows is to be noted.
  static bool AgesAreDue(const JobAtHand& job, Clock clock, TimeMs now);
  // Notes it if it is, and returns whether some rows are too old.
  static bool EvictsNow(JobAtHand& job, Clock clock, TimeMs now);
  void SendOrders(const Turn& turn);
  TrainRound::Sums AddSums(JobRecord& record) const;
  // Tells the figures of train.progressive after a round.
  void TellProgressive(const Turn& turn, const ProgressState& state);

  std::optional<TrainRound> round_;
  std::set<uint32_t> to_meet_;  // Workers that had not answered when one was replaced last.
  ProgressiveFigures progressive_;
};

}  // namespace hdps
