// What part of the model a trainer trains, and how the parts become whole again.
#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/planning/strategy_of_job.h"
#include "worker/role/trainer.h"

namespace hdps {

Status Trainer::FollowStrategy() {
  const auto workers = static_cast<uint32_t>(channel_.view()->workers.size());
  const uint32_t rank = channel_.rank().value;
  const bool same_rank = rank_model_ == nullptr || rank_model_->graph().rank == rank;
  if (strategy_ && strategy_->workers == workers && same_rank) return Status();
  HDPS_ASSIGN_OR_RETURN(Strategy strategy, StrategyOf(*job_, workers));
  LOG(INFO) << StrategyLine(*job_, strategy);
  if (rank == 0) HDPS_RETURN_IF_ERROR(SaveStrategy(files_, *job_, strategy));
  std::unique_ptr<RankModel> model;
  if (!strategy.data_parallel()) {
    HDPS_ASSIGN_OR_RETURN(model, RankModel::New(*job_, strategy, rank, executor_));
    LOG(INFO) << "rank " << rank << ": " << model->model().Describe();
  }
  strategy_ = std::move(strategy);
  if (model == nullptr && rank_model_ == nullptr) return Status();
  // All that was made for the model that was.
  window_.reset();
  steps_.reset();
  dense_state_.reset();
  shards_.reset();
  runner_.reset();
  rank_groups_.reset();
  lane_members_.clear();
  group_members_.clear();
  rank_model_ = std::move(model);
  MakeRunner();
  return Status();
}

Status Trainer::CompareStrategies(Collective& group) {
  if (!strategy_) return Status();  // Nothing is trained yet.
  uint64_t mine = 0;
  for (const LayerSplit& split : strategy_->layers) {
    for (const uint32_t parts : {split.examples, split.inputs, split.columns}) {
      mine = CombineKeys(mine, parts);
    }
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<uint64_t>> all,
                        GatherLists<uint64_t>(group, {&mine, 1}));
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].front() == mine) continue;
    return Status(Code::kInvalidArgument,
                  "parallel: worker " + std::to_string(r) + " has another strategy than worker " +
                      std::to_string(group.rank()) + ", which has the " +
                      StrategyLine(*job_, *strategy_) +
                      "; give all workers the same job file, strategy file and constants");
  }
  return Status();
}

Status Trainer::StoreSlices() {
  const uint32_t row_floats = dense_state_->row_floats();
  HDPS_ASSIGN_OR_RETURN(const std::vector<float> rows,
                        rank_model_->GatherRows(*group_, row_floats, dense_state_->Rows()));
  return rank_model_->graph().rank == 0 ? StoreDenseRows(row_floats, dense_keys_, rows) : Status();
}

}  // namespace hdps
