// Runs the compute side of a worker: carries out the scheduler's commands one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/membership_messages.h"
#include "worker/cache/device_cache.h"
#include "worker/data/watched_files.h"
#include "worker/exchange/node_channel.h"
#include "worker/role/data_report.h"
#include "worker/role/dense_replica.h"
#include "worker/role/dense_rows.h"
#include "worker/role/epoch_steps.h"
#include "worker/role/evaluation_round.h"
#include "worker/role/trained_part.h"
#include "worker/role/training_log.h"
#include "worker/role/training_round.h"
#include "worker/role/worker_groups.h"
#include "worker/step/progressive_scores.h"
#include "worker/step/step_report.h"
#include "worker/step/step_runner.h"

namespace hdps {

class RowCaches;
struct ClusterSpec;
struct Job;
struct View;

// How long a worker that misses another waits for the scheduler's word, in milliseconds.
int64_t PatienceMs(const ClusterSpec& cluster);

struct TrainerOptions {
  std::shared_ptr<const Job> job;
  std::string collective_host = "127.0.0.1";  // Address at which the other ranks reach this one.
  AfterStep after_step;                       // May be empty.
  SpanRecorder* recorder = nullptr;           // Null: no steps are recorded.
  uint32_t number_here = 0;                   // Index among the workers of its machine.
  // Prints the lines of train.log_every_steps, on the trainer's thread; may be empty.
  std::function<void(const std::string&)> print = {};
  std::shared_ptr<RowCaches> rows = nullptr;  // Null: no parsed rows are kept.
  const std::set<Clock>* replay = nullptr;    // As in WorkerProcessOptions.
};

// Decides which part does what for each command, and answers. No part knows the trainer.
//
// Invariant: `clock_` is the number of steps that this worker has finished, and the next step it
// reads is that one of the epoch, whatever was trained, loaded or paused before.
//
// Belongs to the trainer's thread; shares data with the loop only through the channel.
class Trainer {
 public:
  Trainer(const TrainerOptions& options, NodeChannel& channel, MonotonicClock& clock,
          FileSystem& files, Executor& executor);
  ~Trainer();

  // Works until the job has ended for this worker. Errors are reported to the scheduler.
  void Run();
  // Abort() ends a wait for other ranks for good; Interrupt() in groups of the views before this
  // one. The only calls that are allowed from another thread.
  void Abort() { groups_.Abort(); }
  void Interrupt(ViewId view) { groups_.Interrupt(view); }
  // Times of all steps; valid after Run().
  const StepTimes& times() const { return log_.times(); }

 private:
  // The job's dense tensors: at the servers, and at the worker if workers keep them.
  struct Dense {
    Dense(const Job& job, const TrainedPart& part, NodeChannel& channel, Executor& executor,
          MonotonicClock& time)
        : rows(job, part.whole().tensors(), channel), kept(job, rows, part, executor, time) {}
    DenseRows rows;
    DenseReplica kept;
  };

  // Returns true if `failure` means that the job goes back to a checkpoint, so that the command is
  // dropped. If another rank is missing, waits for the scheduler's decision.
  bool Interrupted(const Status& failure);
  // Is true if the failure may mean that another rank is gone.
  bool MissesARank(const Status& failure) const;
  Status Prepare();  // Does the checks that need no cluster.
  Status PrepareCache();
  // Logs where dense weights are updated, if that is not where the job asks for it.
  void LogTargets() const;
  // Makes a runner without any step in progress.
  void MakeRunner();
  // Returns an answer with the fields that every answer has.
  CommandDone AnswerTo(const Command& command) const;

  // ---- The commands.
  Status Execute(const Command& command);
  Status InitDense(const Command& command);
  Status Load(const Command& command);
  Status Train(const Command& command);
  // Carries it out as far as it goes without the workers' being replaced. `*pause`: as in
  // TrainingRound::Run.
  Status TrainTogether(const Command& command, std::optional<Command>* pause);
  // Answers the order.
  void AnswerTrained(const Command& command, const RoundOutcome& outcome);
  // If the order was begun, by this process or by one before in its place: finds where the place
  // stands, and goes there.
  Result<PlaceStand> TakeUp(const Command& command);
  // After a failed order: waits until another process has the place of the rank that is missing,
  // and returns true if all take up their steps then.
  bool TakesUpWithOthers(Status* failure);
  Status StoreDense();
  // Scores the next examples of this worker's part of an evaluation; `next`: after those of the
  // last answer.
  Status Evaluate(const Command& command, CommandDone* done);
  // Reports the data files (worker 0 only) and, if the job evaluates within epochs, the rows of an
  // epoch.
  Status ReportDataFiles(CommandDone* done);

  // ---- Preparations for the first step of a round.
  Status FollowStrategy();
  Status JoinGroup();
  Status JoinLanes();
  Status JoinCache();
  // `taken_up`: where the place stood, if the order was begun.
  Status OpenSteps(const Command& command, const PlaceStand& taken_up);
  Status BeginEvaluation(const std::string& eval_set);

  const Job& job() const { return *options_.job; }
  WorkerPlace place() const;
  int gpu() const { return part_.whole().ops().gpu(); }

  const TrainerOptions options_;
  NodeChannel& channel_;
  MonotonicClock& time_;
  WatchedFiles files_;
  Executor& executor_;

  TrainedPart part_;
  DataReport data_;
  WorkerGroups groups_;
  std::shared_ptr<const View> met_in_;  // Of the last try to form groups_.sum(); null: none.
  std::unique_ptr<Dense> dense_;        // Null until Prepare().
  std::unique_ptr<DeviceCache> cache_;  // Null: no table has cached rows.
  std::unique_ptr<StepRunner> runner_;
  EpochSteps steps_;
  std::unique_ptr<EvaluationRound> evaluation_;  // An evaluation that has been answered in part.
  TrainingLog log_;
  ProgressiveScores scores_;
  Clock clock_ = 0;
};

}  // namespace hdps
