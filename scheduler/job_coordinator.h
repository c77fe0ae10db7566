// Leads a formed cluster through its job: which phase follows which, and what becomes of them when
// members are lost or change.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/job_record.h"
#include "scheduler/members/job_failure.h"
#include "scheduler/phases/job_at_hand.h"
#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/phase.h"
#include "scheduler/phases/worker_facts.h"

namespace hdps {

struct Command;
struct CommandDone;
struct FoundCheckpoint;
struct Job;

class TrainPhase;

// Belongs to one SchedulerNode, which carries its commands and brings the answers.
//
// Invariant: a phase begins when every command of the one before it has been answered; a checkpoint
// gets its manifest only when all servers have saved at the clock at which all workers stand.
class JobCoordinator {
 public:
  struct Parts {
    Membership& members;
    CommandTracker& tracker;
    CheckpointCatalog& checkpoints;
    RunReport& report;
    FileSystem& files;
    std::function<void(const std::string&)> notice;
    std::function<void(const std::string&)> warn;
    std::function<void(View)> enter_view;  // Everybody is told of the next view.
    // This member is lost, for it cannot do what it was told; null: that ends the job.
    // `mistake_status`: with which the job ends where others say the same; 0: it does not.
    std::function<void(PeerId, const std::string& how, int mistake_status)> give_up;
    bool stops_anywhere = false;  // Of SchedulerSabotage.
  };
  JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts);

  // `start`: the checkpoint to go on from; none begins at step 0.
  void Begin(std::optional<FoundCheckpoint> start, TimeMs now);
  void OnAnswer(PeerId from, const Command& command, const CommandDone& done, TimeMs now);
  void OnProgress(PeerId from, Clock clock);
  // No member of the view can have finished a step behind it.
  Clock ReachOf(PeerId member) const;
  void OnTick(TimeMs now);
  // Drains the job: the steps at hand are finished, the state is saved, the job ends well. What had
  // been reached is saved also when members are lost on the way: the steps are trained again.
  void Stop();
  // Servers are lost, and others that hold their rows have taken over: what workers do goes on, and
  // what servers were told is told again to those that are left.
  void ServersLost(size_t servers, TimeMs now);
  // The members change: who is lost now takes rows with it that are on their way.
  bool moving() const { return kind_ >= JobPhase::kMoveDense && kind_ <= JobPhase::kMoveWorkers; }
  // A member is lost: nothing that is under way counts any more. Until GoBack() the job stands.
  void Suspend(TimeMs now);
  // The cluster is complete again: everybody loads the newest checkpoint, or begins anew where
  // there is none, and the job goes on from there. Requires: Suspend().
  using Loss = hdps::Loss;
  void GoBack(const Loss& loss, TimeMs now);
  // The members are to change: when the training at hand has come to one clock, quiet() holds, and
  // the job stands until ChangeMembers() or GoOn().
  void AskForQuiet() { job_.quiet_wanted = true; }
  bool quiet() const { return kind_ == JobPhase::kQuiet && !pending_.under_way(); }
  void GoOn(TimeMs now);
  // Goes on with the members of `next`: rows of shards that another server gets are saved, loaded
  // there, and everybody takes up at this clock. No step is lost. Requires: quiet().
  void ChangeMembers(View next, TimeMs now);
  // Rows were lost on the way: only a checkpoint helps. Ends with GoBack().
  bool needs_restart() const { return kind_ == JobPhase::kSuspended && needs_restart_; }
  // "step 300, checkpoint OUT/checkpoint/..."
  std::string PointOfReturn() const;

  bool finished() const { return kind_ == JobPhase::kOver && !failure_; }
  const std::optional<JobFailure>& failure() const { return failure_; }
  const RunSummary& summary() const { return job_.record.summary; }
  ProgressState progress() const { return job_.Progress(*spec_, parts_.members); }
  bool training() const { return kind_ == JobPhase::kTrain; }
  bool ending() const { return kind_ == JobPhase::kFinish || kind_ == JobPhase::kOver; }

  // What another process needs to go on from here, and whether it has changed since the last call.
  JobState state(TimeMs now) const { return job_.Written(kind_, now); }
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Goes on where another process of the scheduler was, with the same members. False where that was
  // not in training yet, or on its way back: then everybody has to load.
  bool TakeOver(const JobState& state, TimeMs now);

 private:
  // The phase of that kind that the plan, or a phase, leads to.
  std::unique_ptr<Phase> Make(JobPhase kind) const;
  // What a phase says to a call, with its orders carried out.
  template <typename Call>
  Next Ask(TimeMs now, const Call& call);
  void CarryOut(const Orders& orders, TimeMs now);
  Next BeginPhase(JobPhase kind, std::unique_ptr<Phase> phase, TimeMs now);
  Next BeginNextStep(TimeMs now);
  // Until a phase waits for its members.
  void Follow(Next next, TimeMs now);
  // While training goes on: a server has what it took in files, or not.
  void OnSaved(const Answer& answer, TimeMs now);
  // A member says what cannot be, or could not do what it was told.
  bool SaysWhatCannotBe(const Answer& answer) const;
  void Refuse(const Answer& answer, TimeMs now);
  void Blame(const Next& next, TimeMs now);
  void BeginReport(TimeMs now);        // Training begins, or begins again behind a loss.
  void TellWayBack(Clock from) const;  // To a person who waits for the stop.
  void Fail(int exit_status, const std::string& message);
  TrainPhase* training_phase() const;  // Null where no round is at hand.

  const std::shared_ptr<const Job> spec_;
  const std::string out_;
  Parts parts_;
  WorkerFacts facts_;
  PendingSave pending_;
  const PhaseParts phase_parts_;
  JobAtHand job_;
  JobPhase kind_ = JobPhase::kOver;
  std::unique_ptr<Phase> phase_;  // Of that kind; null where the job stands, or is over.
  TimeMs quiet_since_ = 0;
  bool changed_ = false, needs_restart_ = false;
  std::optional<JobFailure> failure_;
};

}  // namespace hdps
