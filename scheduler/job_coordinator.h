// Leads a formed cluster through its job: one phase after the other, each a command to some
// members.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/eval_sets.h"
#include "common/job/job.h"
#include "common/net/node.h"
#include "common/protocol/manifest.h"
#include "common/protocol/messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/plan/job_plan.h"
#include "scheduler/plan/metric_watch.h"
#include "scheduler/plan/train_round.h"
#include "scheduler/report/label_watch.h"
#include "scheduler/report/run_report.h"
#include "scheduler/scheduler_state.h"

namespace hdps {

// What the job cannot go on from.
struct JobFailure {
  int exit_status = 3;
  std::string message;
};

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
    std::function<void(PeerId, const std::string& how)> give_up;
  };
  JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts);

  // `start`: the checkpoint to go on from; none begins at step 0.
  void Begin(std::optional<FoundCheckpoint> start, TimeMs now);
  void OnAnswer(PeerId from, const Command& command, const CommandDone& done, TimeMs now);
  void OnProgress(PeerId from, Clock clock);
  void OnTick(TimeMs now);
  // Drains the job: the steps at hand are finished, the state is saved, the job ends well.
  void Stop();
  // Servers are lost, and others that hold their rows have taken over: what workers do goes on, and
  // what servers were told is told again to those that are left.
  void ServersLost(size_t servers, TimeMs now);
  // The members change: who is lost now takes rows with it that are on their way.
  bool moving() const { return phase_ >= Phase::kMoveDense && phase_ <= Phase::kMoveWorkers; }
  // A member is lost: nothing that is under way counts any more. Until GoBack() the job stands.
  void Suspend(TimeMs now);
  // The cluster is complete again: everybody loads the newest checkpoint, or begins anew where
  // there is none, and the job goes on from there. Requires: Suspend().
  struct Loss {
    size_t members = 0;
    TimeMs since = 0;  // The job has stood.
  };
  void GoBack(const Loss& loss, TimeMs now);
  // The members are to change: when the training at hand has come to one clock, quiet() holds, and
  // the job stands until ChangeMembers() or GoOn().
  void AskForQuiet() { quiet_wanted_ = true; }
  bool quiet() const { return phase_ == Phase::kQuiet && !pending_; }
  void GoOn(TimeMs now);
  // Goes on with the members of `next`: rows of shards that another server gets are saved, loaded
  // there, and everybody takes up at this clock. No step is lost. Requires: quiet().
  void ChangeMembers(View next, TimeMs now);
  // Rows were lost on the way: only a checkpoint helps. Ends with GoBack().
  bool needs_restart() const { return phase_ == Phase::kSuspended && needs_restart_; }
  // "step 300, checkpoint OUT/checkpoint/..."
  std::string PointOfReturn() const;

  bool finished() const { return phase_ == Phase::kOver && !failure_; }
  const std::optional<JobFailure>& failure() const { return failure_; }
  const RunSummary& summary() const { return summary_; }
  ProgressState progress() const;
  bool training() const { return phase_ == Phase::kTrain; }
  bool ending() const { return phase_ == Phase::kFinish || phase_ == Phase::kOver; }

  // What another process needs to go on from here, and whether it has changed since the last call.
  JobState state(TimeMs now) const;
  bool TakeChanged() { return std::exchange(changed_, false); }
  // Goes on where another process of the scheduler was, with the same members. False where that was
  // not in training yet, or on its way back: then everybody has to load.
  bool TakeOver(const JobState& state, TimeMs now);

 private:
  using Phase = JobPhase;
  using Sums = JobState::Sums;
  static Command MakeCommand(CommandKind kind) {
    Command command;
    command.command = kind;
    return command;
  }
  void Enter(Phase phase, TimeMs now);
  void EnterNextStep(TimeMs now);
  void BeginSave(TimeMs now);
  bool IsLastSave() const;  // After it the run ends, and nobody trains any more.
  void Send(const std::vector<PeerId>& to, const Command& command, TimeMs now);
  // Everything that the phase asked for has been answered.
  void CompletePhase(TimeMs now);
  void CompleteLoad(TimeMs now);
  // Training begins, or begins again behind a loss.
  void BeginReport(TimeMs now);
  void CompleteTraining(TimeMs now);
  // Some scores of a worker have come; it is asked for the next.
  void OnScores(PeerId from, const CommandDone& done, TimeMs now);
  Command EvaluateCommand() const;  // Of the set whose turn it is.
  void CompleteEvaluation(TimeMs now);
  // All sets have been evaluated: what follows from it.
  void Judge(TimeMs now);
  // What worker 0 has counted, where it was to.
  void KnowEpochRows();
  JobPlan::Past PastOf(bool loaded) const;
  void CompleteSave(TimeMs now);
  // While training goes on: a server has what it took in files, or not; all have.
  void OnSaved(PeerId from, const CommandDone& done, TimeMs now);
  void CompletePending(TimeMs now);
  void DropPending(const std::string& why);
  void RetrySave(const std::string& message, TimeMs now);
  void CompleteDigest();
  std::string MovesFolder() const;
  void SendMovedShards(TimeMs now);
  void SendLoadsOfMoved(TimeMs now);
  void CompleteMove(TimeMs now);
  void FinishMove(TimeMs now);
  void FillSummary(TimeMs now);
  // What every answer of a worker tells of its model and its processor.
  void KnowWorker(const CommandDone& done);
  void Warn(const std::vector<std::string>& lines);
  void SendTrainOrders(TimeMs now);
  // False where the phase at hand does not end as it was meant to.
  bool OnRefusal(PeerId from, const Command& command, const CommandDone& done, TimeMs now);
  void DropTheFinished(TimeMs now);
  void Fail(int exit_status, const std::string& message);

  const std::shared_ptr<const Job> job_;
  const std::string out_;
  Parts parts_;

  Phase phase_ = Phase::kOver;
  TimeMs began_ = 0;  // The cluster was complete.
  TimeMs phase_began_ = 0;
  TimeMs training_ms_ = 0;
  std::optional<FoundCheckpoint> start_;
  std::optional<JobPlan> plan_;
  const std::vector<EvalSet> eval_sets_;
  std::vector<Evaluation> evaluations_;  // Of the first of those, at the position at hand.
  LabelTally evaluated_labels_;          // Of the same.
  RunWatches watches_;
  uint64_t epoch_rows_ = 0;  // 0: not known.
  std::optional<TrainRound> round_;
  bool stop_ = false;
  std::string fault_;                      // First error of a load or save at hand.
  std::map<PeerId, CommandDone> answers_;  // Of the phase at hand, where they are needed whole.
  std::map<PeerId, CollectiveTally> collectives_;  // Of each worker, the newest.
  Sums trained_;                                   // Since the state at hand was begun or loaded.
  uint64_t examples_worked_ = 0;  // By this process' cluster, those of lost steps too.
  Sums epoch_, last_epoch_;       // Of the epoch at hand, and of the one before it.
  uint64_t examples_before_ = 0;  // Of the state that was loaded.
  // A checkpoint on its way, with those of its files that are there.
  struct Save {
    Manifest manifest;
    std::string fault;
  };
  // What is wrong with it; empty: it is a checkpoint now.
  std::string Commit(Save save);
  std::string NotSaved(Clock clock, const std::string& fault) const;
  std::optional<Save> pending_;          // Its rows are taken, and training goes on.
  std::optional<Loss> loss_;             // Of the way back at hand.
  std::vector<JobState::Order> orders_;  // Of the round at hand, all that were given.
  bool changed_ = false;
  bool quiet_wanted_ = false, needs_restart_ = false;
  // Of the last save, while it fails.
  std::optional<TimeMs> save_failed_since_, save_again_at_;
  TimeMs save_wait_ms_ = 0;
  // Of the change of members at hand.
  View next_view_;
  std::map<PeerId, std::vector<ShardId>> come_;  // To these servers.
  std::vector<SavedFile> moved_;
  TimeMs quiet_since_ = 0;
  Sums not_told_;  // Trained, and in no worker's heartbeats: by those that have left.
  RunSummary summary_;
  LabelWatch labels_;
  std::unique_ptr<EvaluationSums> evaluation_;  // Of the phase at hand; null in others.
  std::set<std::string> arithmetic_;            // Of all workers.
  std::optional<JobFailure> failure_;
};

}  // namespace hdps
