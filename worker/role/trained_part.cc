// Makes the strategy for a job and a number of workers, and the model of one of them.
#include "worker/role/trained_part.h"

#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/planning/strategy_of_job.h"

namespace hdps {

Status TrainedPart::MakeModel(uint32_t number_here) {
  HDPS_ASSIGN_OR_RETURN(model_, NewModel(whole_job_, executor_, number_here));
  return Status();
}

Status TrainedPart::Follow(WorkerPlace place, const std::function<void()>& let_go) {
  CHECK_LT(place.rank, place.workers);
  const bool same_rank = rank_model_ == nullptr || rank_model_->graph().rank == place.rank;
  if (strategy_ && strategy_->workers == place.workers && same_rank) return Status();
  HDPS_ASSIGN_OR_RETURN(Strategy strategy, StrategyOf(whole_job_, place.workers));
  LOG(INFO) << StrategyLine(whole_job_, strategy);
  if (place.rank == 0) HDPS_RETURN_IF_ERROR(SaveStrategy(files_, whole_job_, strategy));
  std::unique_ptr<RankModel> rank_model;
  if (!strategy.data_parallel()) {
    HDPS_ASSIGN_OR_RETURN(rank_model, RankModel::New(whole_job_, strategy, place.rank, executor_));
    LOG(INFO) << "rank " << place.rank << ": " << rank_model->model().Describe();
  }
  strategy_ = std::move(strategy);
  if (rank_model == nullptr && rank_model_ == nullptr) return Status();
  let_go();
  rank_model_ = std::move(rank_model);
  return Status();
}

Status TrainedPart::CompareStrategies(Collective& group) const {
  if (!strategy_) return Status();  // Nothing has been trained yet.
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
                      StrategyLine(whole_job_, *strategy_) +
                      "; give all workers the same job file, strategy file and constants");
  }
  return Status();
}

}  // namespace hdps
