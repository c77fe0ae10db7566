// Leads a formed cluster through its job: runs one phase after the other, and decides how the job
// goes on when members are lost or change.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/view.h"
#include "scheduler/job_record.h"
#include "scheduler/members/job_failure.h"
#include "scheduler/phases/job_at_hand.h"
#include "scheduler/phases/move_ahead.h"
#include "scheduler/phases/pending_save.h"
#include "scheduler/phases/phase.h"
#include "scheduler/phases/worker_facts.h"

namespace hdps {

struct Command;
struct CommandDone;
struct FoundCheckpoint;
struct Heartbeat;
struct Job;

class TrainPhase;

// Owned by one SchedulerNode, which delivers its commands and the answers to them.
//
// Invariant: a phase begins when every command of the one before it has been answered. A checkpoint
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
    std::function<void(View)> enter_view;  // Enters the view and sends it to all members.
    // Gives a member up because it cannot do what it was told; null: the job ends instead.
    // `mistake_status`: the exit status of the job if other members report the same mistake of the
    // operator or the data; 0: the member reports none.
    std::function<void(PeerId, const std::string& how, int mistake_status)> give_up;
    bool stops_anywhere = false, heir_begins_anew = false;  // As in SchedulerSabotage.
    const RoundScript* script = nullptr;                    // As in SchedulerOptions.
  };
  JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts);

  // `start`: the checkpoint to resume from; without one the job begins at step 0, with rows of the
  // checkpoint `init` of another job if that is not empty.
  void Begin(std::optional<FoundCheckpoint> start, const std::string& init, TimeMs now);
  void OnAnswer(PeerId from, const Command& command, const CommandDone& done, TimeMs now);
  void OnProgress(PeerId from, const Heartbeat& heartbeat);
  // Returns an upper bound of the step that `member` can have finished; a later one is an error.
  Clock ReachOf(PeerId member) const;
  void OnTick(TimeMs now);
  // Drains the job: the present steps are finished, the state is saved, and the job ends well. If
  // members are lost meanwhile, steps that had been reached are trained again before the save.
  void Stop();
  // Goes on after servers were lost whose rows other servers hold: workers go on, and commands to
  // servers are sent again to those that are left.
  void ServersLost(size_t servers, TimeMs now);
  // Is true while shards move between servers. A server that is lost in this time takes rows in
  // transit with it, so the job must go back to a checkpoint.
  bool moving() const { return kind_ >= JobPhase::kMoveDense && kind_ <= JobPhase::kMoveWorkers; }
  // Stops the job because a member is lost: the present phase is dropped. The job stands until
  // GoBack().
  void Suspend(TimeMs now);
  // Resumes after Suspend() with a complete cluster: all members load the newest checkpoint, or
  // begin at step 0 if there is none.
  using Loss = hdps::Loss;
  void GoBack(const Loss& loss, TimeMs now);
  // Why a process that takes a lost worker's place cannot take up its step now; empty: it can.
  std::string WhyGoBack() const;
  // Goes on while lost workers are awaited; the present round does not end before ReplaceWorkers()
  // or Suspend(). Requires: WhyGoBack() is empty.
  void AwaitReplacements() { awaits_workers_ = true; }
  // Lets the processes that have taken places of `before`, the workers of the view before this one,
  // take up their steps. `told`: the progress of all members before.
  void ReplaceWorkers(const std::vector<PeerId>& before, const ProgressState& told,
                      const Loss& loss, TimeMs now);
  // Is true until such a process has finished the steps that its place had begun.
  bool takes_up() const;
  // Asks for a pause to change the members: the present round of training ends early at a common
  // clock; then quiet() is true, and the job stands until ChangeMembers() or GoOn().
  void AskForQuiet() { job_.quiet_wanted = true; }
  bool quiet() const { return kind_ == JobPhase::kQuiet && !pending_.under_way(); }
  void GoOn(TimeMs now);
  // Saves a checkpoint at the common clock, then comes back to it, whether it was saved or not.
  // Requires: quiet().
  void SaveHere(TimeMs now);
  // Is true if the newest checkpoint has all steps up to the clock of the last round.
  bool saved() const;
  // Is true while the job stands, loads or begins: nothing is newer than the newest checkpoint.
  bool loads() const { return kind_ == JobPhase::kSuspended || !job_.plan; }
  // Is true if the job was told to stop, or has no step left.
  bool ends() const { return job_.record.stop || ending() || (job_.plan && job_.plan->finished()); }
  // Counts members that have left as they were told to.
  void CountLeft(size_t members);
  // Notes in the state that this scheduler process leaves in good order.
  void StepDown() { job_.record.scheduler_left = true; }
  // Goes on with the members of `next`. Rows of shards that move to another server are saved and
  // loaded there, and all members continue at this clock. No step is lost. Requires: quiet().
  // `ahead`: what Ahead was ready with.
  void ChangeMembers(View next, TimeMs now, AheadCopies ahead = {});
  // Lets rows move ahead to their holders in `next`, beside the present phase. They come to
  // nothing when members are lost. Requires: not ahead().under_way().
  void BeginAhead(View next, TimeMs now);
  void DropAhead(const std::string& why, TimeMs now);
  const MoveAhead& ahead() const { return ahead_; }
  MoveAhead::Ready TakeAhead() { return ahead_.Take(); }
  // Is true while the copies of a checkpoint are being written.
  bool writes() const { return pending_.under_way(); }
  // Is true if rows were lost in transit, so that only a checkpoint helps. Ends with GoBack().
  bool needs_restart() const { return kind_ == JobPhase::kSuspended && needs_restart_; }
  // Names where GoBack() would resume, such as "step 300, checkpoint OUT/checkpoint/...".
  std::string PointOfReturn() const;

  bool finished() const { return kind_ == JobPhase::kOver && !failure_; }
  const std::optional<JobFailure>& failure() const { return failure_; }
  const RunSummary& summary() const { return job_.record.summary; }
  ProgressState progress() const { return job_.Progress(*spec_, parts_.members); }
  // Returns the examples of the job, counted as its steps are.
  uint64_t examples() const { return job_.record.examples_before + progress().examples; }
  const std::set<std::string>& arithmetic() const { return facts_.arithmetic(); }
  bool training() const { return kind_ == JobPhase::kTrain; }
  bool ending() const { return kind_ == JobPhase::kFinish || kind_ == JobPhase::kOver; }

  // The state from which another scheduler process can take over, and whether it has changed since
  // the last call.
  JobState state(TimeMs now) const { return job_.Written(kind_, now); }
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Takes over from another scheduler process, with the same members. Returns false if the job was
  // not in training yet, on its way back to a checkpoint, or if rows of a move were being loaded;
  // all members must load then.
  bool TakeOver(const JobState& state, TimeMs now);

 private:
  // Makes a phase of a kind that a plan or another phase can lead to.
  std::unique_ptr<Phase> Make(JobPhase kind) const;
  // Calls a phase, carries out its orders and returns what follows.
  template <typename Call>
  Next Ask(TimeMs now, const Call& call) {
    Orders orders;
    Next next = call(Turn{job_, orders, now});
    CarryOut(orders, now);
    return next;
  }
  void CarryOut(const Orders& orders, TimeMs now);
  // Awaits no answers of those who are no members of the present view. One that was told to drop
  // the copies of an earlier move may not have answered, and its answer is not heard any more.
  void DropThoseWhoLeft();
  // Lets the workers that are the same as `before` meet those that are not.
  void MeetAgain(const std::vector<PeerId>& before, TimeMs now);
  Next BeginPhase(JobPhase kind, std::unique_ptr<Phase> phase, TimeMs now);
  Next BeginNextStep(TimeMs now);
  // Acts on `next` until a phase waits for its members.
  void Follow(Next next, TimeMs now);
  // Takes a server's answer that the files of a save are written, or have failed, during training.
  void OnSaved(const Answer& answer, TimeMs now);
  void OnAhead(const Answer& answer, TimeMs now);
  // Handle a member that reports something impossible, or could not do what it was told.
  bool ReportsImpossibleClock(const Answer& answer) const;
  void Refuse(const Answer& answer, TimeMs now);
  void Blame(const Next& next, TimeMs now);
  void BeginReport(TimeMs now);        // Training begins, or begins again after a loss.
  void TellWayBack(Clock from) const;  // Tells the operator, who waits for the stop.
  void Fail(int exit_status, const std::string& message);
  TrainPhase* training_phase() const;  // Null if no round is under way.

  const std::shared_ptr<const Job> spec_;
  const std::string out_;
  Parts parts_;
  WorkerFacts facts_;
  PendingSave pending_;
  const PhaseParts phase_parts_;
  MoveAhead ahead_;
  JobAtHand job_;
  JobPhase kind_ = JobPhase::kOver;
  std::unique_ptr<Phase> phase_;  // The phase of that kind; null if the job stands or is over.
  TimeMs quiet_since_ = 0, stands_since_ = 0;
  bool saves_here_ = false;  // Since quiet_since_ a checkpoint is being saved.
  bool awaits_workers_ = false;
  std::map<PeerId, Clock> take_up_;  // Processes that take up steps, until they have finished this.
  bool changed_ = false, needs_restart_ = false;
  std::optional<JobFailure> failure_;
};

}  // namespace hdps
