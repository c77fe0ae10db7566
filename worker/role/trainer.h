// The compute side of a worker: carries out the scheduler's commands, one after the other.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/protocol/messages.h"
#include "worker/cache/device_cache.h"
#include "worker/collective/collective.h"
#include "worker/data/watched_files.h"
#include "worker/dense/dense_state.h"
#include "worker/exchange/node_channel.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_groups.h"
#include "worker/parallel/rank_model.h"
#include "worker/step/evaluation.h"
#include "worker/step/row_gather.h"
#include "worker/step/stage.h"
#include "worker/step/step_pipeline.h"
#include "worker/step/step_report.h"
#include "worker/step/step_runner.h"

namespace hdps {

struct TrainerOptions {
  std::shared_ptr<const Job> job;
  std::string collective_host = "127.0.0.1";  // Where the other ranks reach this one.
  AfterStep after_step;                       // May be empty.
  StepTrace* trace = nullptr;                 // Null: nobody looks.
  uint32_t number_here = 0;                   // Among the workers of its machine.
};

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
  void Abort() HDPS_EXCLUDES(group_mutex_);
  void Interrupt(uint32_t restarts) HDPS_EXCLUDES(group_mutex_);  // View::restarts from now on.
  // Of all steps; after Run().
  const StepTimes& times() const { return all_times_; }

 private:
  // How a pass over some steps of an epoch went.
  struct Progress {
    uint64_t examples = 0;
    double loss_sum = 0;
    uint64_t bad_rows = 0;
    LabelTally labels;
    bool end_of_epoch = false;
    std::unique_ptr<Command> pause;  // A kPause that has to be answered too.
  };

  // Whether `failure` is that the job goes back to a checkpoint, or will be: who misses another
  // rank waits for the scheduler's word. Then the command at hand is dropped.
  bool Interrupted(const Status& failure);
  Status Prepare();  // What can be found wrong before the cluster is there.
  Status Execute(const Command& command);
  // One with nothing under way.
  void MakeRunner();
  // With what every answer tells of this worker.
  CommandDone AnswerTo(const Command& command) const;
  // Of worker 0, where the job is to be evaluated at parts of an epoch: the rows of one.
  Status TellRows(CommandDone* done);
  Status InitDense();
  Status Load(const Command& command);
  Status Train(const Command& command);
  Status TrainSteps(const Command& command, Progress* progress);
  Status StoreDense();
  // The next examples of this worker's part of an evaluation; `next`: behind those answered last.
  Status EvaluatePart(const Command& command, CommandDone* done);
  Status BeginEvaluation(const std::string& eval_set);

  // What this worker trains of the model, as the job and the number of workers say.
  Status FollowStrategy();
  const Job& own_job() const { return rank_model_ == nullptr ? *job_ : rank_model_->job(); }
  Model& own_model() { return rank_model_ == nullptr ? *model_ : rank_model_->model(); }
  // That all ranks come to the same.
  Status CompareStrategies(Collective& group);
  // What the ranks of a cut model have, put together at the servers.
  Status StoreSlices();
  Status OpenSteps(const Command& command);
  bool StepsFit(const Command& command) const;
  Status EnsureGroup();
  // Under allreduce: what the group's dense gradients go through.
  Status PrepareDenseGroup(Collective& group);
  const DenseShards& ShardsOfView();
  void LeaveGroup() HDPS_EXCLUDES(group_mutex_);
  // Whom the layers of the model meet.
  Status MeetInLanes() HDPS_EXCLUDES(group_mutex_);
  CollectiveTally TellCollectives() const;  // In the log as well.
  Status JoinCache();
  void TellTraffic();    // What has crossed the bus since the last time.
  bool DenseOnDevice();  // Under allreduce: they are kept and updated there.
  Status LoadDenseState();
  // Reads or writes dense rows at the servers, [keys * row_floats].
  Status PullDense(PullMode mode, uint32_t row_floats, const std::vector<Key>& keys,
                   std::span<float> rows);
  Status StoreDenseRows(uint32_t row_floats, const std::vector<Key>& keys,
                        std::span<const float> rows);
  bool allreduce() const;
  const TableSpec& dense_spec() const { return job_->tables.back(); }
  TableId dense_table() const { return {static_cast<uint32_t>(job_->tables.size() - 1)}; }
  std::vector<KeysOfTable> DenseOnly(uint32_t row_floats, const std::vector<Key>& keys) const;

  const std::shared_ptr<const Job> job_;
  const std::string collective_host_;
  const AfterStep after_step_;
  StepTrace* const trace_;
  const uint32_t number_here_;
  NodeChannel& channel_;
  ActivityBoard& board_;  // The channel's.
  MonotonicClock& time_;
  WatchedFiles files_;
  Executor& executor_;

  std::unique_ptr<Model> model_;  // The whole; what evaluations score with.
  // Where the strategy cuts layers: what is trained in its place. It is for so many workers.
  std::unique_ptr<RankModel> rank_model_;
  std::unique_ptr<RankGroups> rank_groups_;  // Of rank_model_, within group_.
  std::optional<Strategy> strategy_;
  std::vector<Key> dense_keys_;  // Of the model's flat array; empty when it has no dense tensors.
  std::unique_ptr<StepRunner> runner_;

  Clock clock_ = 0;
  std::optional<uint64_t> rows_of_epoch_;  // Once they have been counted.
  uint64_t examples_ = 0;                  // Since the state at hand was begun or loaded.
  double loss_sum_ = 0;
  StepTimes all_times_;

  // The steps being read ahead and where they are.
  std::unique_ptr<StepPipeline> steps_;
  std::unique_ptr<StepWindow> window_;  // Of steps_.
  uint32_t steps_epoch_ = 0;
  Clock steps_clock_ = 0;        // The clock of the next step that comes out.
  uint64_t steps_bad_rows_ = 0;  // In what has come out.
  ViewId steps_view_;

  // The evaluation that has been answered in part.
  struct PartEvaluation {
    std::unique_ptr<StepPipeline> steps;
    std::deque<RowGather> gathers;  // Of the step being scored and of the one behind it.
    std::unique_ptr<StepScorer> scorer;
  };
  std::unique_ptr<PartEvaluation> evaluation_;
  std::shared_ptr<ItemPool> items_;  // Null: no negative examples are made.

  std::unique_ptr<DeviceCache> cache_;  // Null: no table keeps rows here.

  // Under allreduce, or with rows kept at several workers.
  DeviceTraffic told_;                       // By TellTraffic().
  std::unique_ptr<DenseState> dense_state_;  // Null until loaded from the servers.
  std::vector<PeerId> group_members_;
  Mutex group_mutex_;                  // Only Abort() looks at the group from another thread.
  std::unique_ptr<Collective> group_;  // Changed under the mutex, by the trainer's thread alone.
  // Likewise, where layers meet: of the same workers.
  std::vector<std::unique_ptr<Collective>> lane_groups_;
  std::vector<PeerId> lane_members_;
  bool aborted_ HDPS_GUARDED_BY(group_mutex_) = false;
  uint32_t restarts_ HDPS_GUARDED_BY(group_mutex_) = 0;  // The newest that the loop has told.
  // Under allreduce, of group_: who updates which dense tensors, and the groups that it takes.
  std::unique_ptr<DenseShards> shards_;
  std::unique_ptr<Collective> places_, replicas_;  // Null: all of group_; this worker alone.
  // Null where dense gradients travel in one call, or none. It ends before what it uses.
  std::unique_ptr<CollectiveQueue> collective_queue_;
  CollectiveCounts all_counts_;  // Of groups that are no more.
};

}  // namespace hdps
