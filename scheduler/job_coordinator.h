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
#include <vector>

#include "common/job/job.h"
#include "common/net/node.h"
#include "common/protocol/manifest.h"
#include "common/protocol/messages.h"
#include "scheduler/checkpoint_catalog.h"
#include "scheduler/command_tracker.h"
#include "scheduler/job_plan.h"
#include "scheduler/label_watch.h"
#include "scheduler/membership.h"
#include "scheduler/run_report.h"
#include "scheduler/train_round.h"

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
  };
  JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts);

  // `start`: the checkpoint to go on from; none begins at step 0.
  void Begin(std::optional<FoundCheckpoint> start, TimeMs now);
  void OnAnswer(PeerId from, const Command& command, const CommandDone& done, TimeMs now);
  void OnProgress(PeerId from, Clock clock);
  void OnTick(TimeMs now);
  // Drains the job: the steps at hand are finished, the state is saved, the job ends well.
  void Stop();

  bool finished() const { return phase_ == Phase::kOver && !failure_; }
  const std::optional<JobFailure>& failure() const { return failure_; }
  const RunSummary& summary() const { return summary_; }
  ProgressState progress() const;
  bool training() const { return phase_ == Phase::kTrain; }

 private:
  enum class Phase : uint8_t {
    kLoadServers,
    kLoadWorkers,
    kInitDense,
    kTrain,
    kStoreDense,
    kEvaluate,
    kDigest,
    kSave,
    kFinish,
    kOver,
  };
  struct Sums {
    uint64_t examples = 0;
    double loss_sum = 0;
  };

  void Enter(Phase phase, TimeMs now);
  void EnterNextStep(TimeMs now);
  void BeginSave(TimeMs now);
  void Send(const std::vector<PeerId>& to, const Command& command, TimeMs now);
  // Everything that the phase asked for has been answered.
  void CompletePhase(TimeMs now);
  void CompleteLoad(TimeMs now);
  void CompleteTraining(TimeMs now);
  void CompleteEvaluation(TimeMs now);
  void CompleteSave(TimeMs now);
  void CompleteDigest();
  void FillSummary(TimeMs now);
  // What every answer of a worker tells of its model and its processor.
  void KnowWorker(const CommandDone& done);
  void Warn(const std::vector<std::string>& lines);
  void SendTrainOrders(TimeMs now);
  void OnRefusal(PeerId from, const Command& command, const CommandDone& done);
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
  std::optional<TrainRound> round_;
  bool stop_ = false;
  std::string fault_;                      // First error of a load or save at hand.
  std::map<PeerId, CommandDone> answers_;  // Of the phase at hand, where they are needed whole.
  Sums trained_;                           // By this process' cluster.
  Sums epoch_, last_epoch_;                // Of the epoch at hand, and of the one before it.
  uint64_t examples_before_ = 0;           // By what was resumed.
  RunSummary summary_;
  LabelWatch labels_;
  std::set<std::string> arithmetic_;  // Of all workers.
  std::optional<JobFailure> failure_;
};

}  // namespace hdps
