// The compute side of a worker: carries out the scheduler's commands, one after the other.
#pragma once

#include <cstdint>
#include <memory>
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
#include "worker/role/worker_groups.h"
#include "worker/step/step_report.h"
#include "worker/step/step_runner.h"

namespace hdps {

struct Job;

struct TrainerOptions {
  std::shared_ptr<const Job> job;
  std::string collective_host = "127.0.0.1";  // Where the other ranks reach this one.
  AfterStep after_step;                       // May be empty.
  StepTrace* trace = nullptr;                 // Null: nobody looks.
  uint32_t number_here = 0;                   // Among the workers of its machine.
};

// Says which part does what at which command, and answers; no part knows the trainer.
//
// Invariant: `clock_` is the number of steps this worker has finished, and the next step it reads
// is that one of the epoch, whatever was trained, loaded or paused before.
//
// Belongs to one thread, its trainer's; all that it shares with the loop goes through the channel.
class Trainer {
 public:
  Trainer(const TrainerOptions& options, NodeChannel& channel, MonotonicClock& clock,
          FileSystem& files, Executor& executor);
  ~Trainer();

  // Works until the job has ended for this worker. What goes wrong is told to the scheduler.
  void Run();
  // Ends a wait for the other ranks, for good or until the job goes on from a checkpoint. The two
  // calls allowed from another thread.
  void Abort() { groups_.Abort(); }
  void Interrupt(uint32_t restarts) { groups_.Interrupt(restarts); }  // View::restarts from now on.
  // Of all steps; after Run().
  const StepTimes& times() const { return log_.times(); }

 private:
  // The dense tensors of the job: at the servers, and where the workers keep them.
  struct Dense {
    Dense(const Job& job, const TrainedPart& part, NodeChannel& channel, Executor& executor,
          MonotonicClock& time)
        : rows(job, part.whole().tensors(), channel), kept(job, rows, part, executor, time) {}
    DenseRows rows;
    DenseReplica kept;
  };

  // Whether `failure` is that the job goes back to a checkpoint, or will be: who misses another
  // rank waits for the scheduler's word. Then the command at hand is dropped.
  bool Interrupted(const Status& failure);
  Status Prepare();  // What can be found wrong before the cluster is there.
  Status PrepareCache();
  // A runner with nothing under way.
  void MakeRunner();
  // With what every answer tells of this worker.
  CommandDone AnswerTo(const Command& command) const;

  // ---- The commands.
  Status Execute(const Command& command);
  Status InitDense();
  Status Load(const Command& command);
  Status Train(const Command& command);
  Status StoreDense();
  // The next examples of this worker's part of an evaluation; `next`: behind those answered last.
  Status Evaluate(const Command& command, CommandDone* done);
  // Of worker 0: what the files are, and where the job is to be evaluated at parts of an epoch, the
  // rows of one.
  Status TellData(CommandDone* done);

  // ---- What has to be there before the first step of a round.
  Status FollowStrategy();
  Status JoinGroup();
  Status JoinLanes();
  Status JoinCache();
  Status OpenSteps(const Command& command);
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
  std::unique_ptr<Dense> dense_;        // Null until Prepare().
  std::unique_ptr<DeviceCache> cache_;  // Null: no table keeps rows here.
  std::unique_ptr<StepRunner> runner_;
  EpochSteps steps_;
  std::unique_ptr<EvaluationRound> evaluation_;  // That has been answered in part.
  TrainingLog log_;
  Clock clock_ = 0;
};

}  // namespace hdps
