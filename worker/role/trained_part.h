// What of a job's model one worker trains: all of it, or its part where a strategy cuts layers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/parallel/strategy.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "worker/collective/collective.h"
#include "worker/model/model.h"
#include "worker/parallel/rank_model.h"

namespace hdps {

struct Job;

// One worker among those of a view.
struct WorkerPlace {
  uint32_t rank = 0;
  uint32_t workers = 1;
};

// Invariant: job() and model() belong together. They are the rank's own where the strategy of the
// last Follow() cuts layers, else the whole ones.
//
// Belongs to the trainer's thread.
class TrainedPart {
 public:
  // All of them outlive it.
  TrainedPart(const Job& job, FileSystem& files, Executor& executor)
      : whole_job_(job), files_(files), executor_(executor) {}

  // Makes the whole model; `number_here` as for NewModel. Before anything else is called.
  Status MakeModel(uint32_t number_here);
  // What a worker at this place trains; worker 0 keeps the strategy where the job says so. `let_go`
  // is called before job() and model() become others: who uses them must not any more.
  Status Follow(WorkerPlace place, const std::function<void()>& let_go);
  // That all ranks of the group have come to the same strategy; kInvalidArgument names one that has
  // not.
  Status CompareStrategies(Collective& group) const;

  const Job& job() const { return rank_model_ == nullptr ? whole_job_ : rank_model_->job(); }
  Model& model() const { return rank_model_ == nullptr ? *model_ : rank_model_->model(); }
  // What evaluations score with.
  Model& whole() const { return *model_; }
  RankModel* rank_model() const { return rank_model_.get(); }  // Null: the whole is trained.

 private:
  const Job& whole_job_;
  FileSystem& files_;
  Executor& executor_;
  std::unique_ptr<Model> model_;
  std::optional<Strategy> strategy_;       // None yet: nothing is trained.
  std::unique_ptr<RankModel> rank_model_;  // Of strategy_.
};

}  // namespace hdps
