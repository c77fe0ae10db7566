// The model that one worker trains: the job's whole model, or its part if a strategy cuts layers.
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

// Position of one worker among those of a view.
struct WorkerPlace {
  uint32_t rank = 0;
  uint32_t workers = 1;
};

// Invariant: job() and model() belong together. They are the rank's own if the strategy of the last
// Follow() cuts layers, else the whole ones.
//
// Belongs to the trainer's thread.
class TrainedPart {
 public:
  // Requires: all arguments outlive it.
  TrainedPart(const Job& job, FileSystem& files, Executor& executor)
      : whole_job_(job), files_(files), executor_(executor) {}

  // Makes the whole model; `number_here` as for NewModel. Must be called first.
  Status MakeModel(uint32_t number_here);
  // Makes the model for a worker at `place`; worker 0 saves the strategy if the job says so. Calls
  // `let_go` before job() and model() change; their users must release them.
  Status Follow(WorkerPlace place, const std::function<void()>& let_go);
  // Checks that all ranks of the group have the same strategy; kInvalidArgument names one that
  // differs.
  Status CompareStrategies(Collective& group) const;

  const Job& job() const { return rank_model_ == nullptr ? whole_job_ : rank_model_->job(); }
  Model& model() const { return rank_model_ == nullptr ? *model_ : rank_model_->model(); }
  // The model that evaluations use.
  Model& whole() const { return *model_; }
  RankModel* rank_model() const { return rank_model_.get(); }  // Null: the whole model is trained.

 private:
  const Job& whole_job_;
  FileSystem& files_;
  Executor& executor_;
  std::unique_ptr<Model> model_;
  std::optional<Strategy> strategy_;       // None until something is trained.
  std::unique_ptr<RankModel> rank_model_;  // Made by strategy_.
};

}  // namespace hdps
