// Lends a tower to each call, and ranks items by the vectors of users.
#include "tools/serve/versions/tower_outputs.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "tools/export/vectors/item_data.h"
#include "tools/export/vectors/item_vectors.h"
#include "tools/scoring/towers/tower_vectors.h"

namespace hdps {
namespace {

// Limit on the items of an answer, over all of its rows.
constexpr uint64_t kBestOfAnswerMax = uint64_t{1} << 20;

Result<std::unique_ptr<const ItemRanking>> RankingOf(FileSystem& files, RowScorer& scorer,
                                                     const ItemsToRank& given, Executor& executor,
                                                     RowView view) {
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<TowerVectors> tower,
                        TowerVectors::New(scorer.loaded(), Tower::kItem, executor,
                                          /*counts_unknown=*/false, view));
  ItemFiles from;
  HDPS_ASSIGN_OR_RETURN(from.paths, FilesOfItems(files, given.files));
  HDPS_ASSIGN_OR_RETURN(
      from.items, DataOfItems(scorer.job().data, tower->features().sparse, given.text_column));
  HDPS_ASSIGN_OR_RETURN(Items items, ReadItems(files, from, *tower));
  return std::unique_ptr<const ItemRanking>(std::make_unique<ItemRanking>(
      std::move(items.texts), items.vectors, tower->dim(), ScoreBias(scorer.loaded(), view)));
}

}  // namespace

bool HasTowers(const Job& job) {
  const bool named = HasNamedColumns(job.data.format) || job.data.format == DataFormat::kCriteo;
  return named && job.model.type == "two_tower";
}

Result<std::unique_ptr<TowerOutputs>> TowerOutputs::New(FileSystem& files, RowScorer& scorer,
                                                        const ItemsToRank& items,
                                                        Executor& executor, RowView view) {
  if (!HasTowers(scorer.job())) {
    return Status(Code::kInvalidArgument,
                  "--items: the model has no vectors of items; leave the flag out, or serve one of "
                  "the recipe two_tower whose data have named columns");
  }
  std::unique_ptr<TowerOutputs> made(new TowerOutputs(scorer, executor));
  made->step_ = scorer.loaded().step(view);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<TableVectors> first,
                        TableVectors::New(scorer, Tower::kUser, executor));
  made->dim_ = first->dim();
  if (first->step() == made->step_) {
    MutexLock lock(made->mutex_);
    made->idle_users_.push_back(std::move(first));
  }
  if (items.files.empty()) return made;
  HDPS_ASSIGN_OR_RETURN(made->ranking_, RankingOf(files, scorer, items, executor, view));
  return made;
}

void TowerOutputs::AddNotes(std::vector<TensorNote>* outputs) const {
  outputs->push_back({"user_vector", "FP32", dim_});
  outputs->push_back({"item_vector", "FP32", dim_});
  if (ranking_ == nullptr) return;
  outputs->push_back({"top_k", "BYTES", 1});
  outputs->push_back({"top_k_score", "FP32", 1});
}

Status TowerOutputs::Add(ScoreOutput output, const ScoreRequest& request,
                         std::vector<OutputColumn>* outputs) {
  if (output == ScoreOutput::kTopK) return AddBest(request, outputs);
  const bool user = output == ScoreOutput::kUserVector;
  OutputColumn column;
  column.name = user ? "user_vector" : "item_vector";
  column.width = dim_;
  HDPS_ASSIGN_OR_RETURN(column.numbers,
                        VectorsOf(user ? Tower::kUser : Tower::kItem, request.rows));
  outputs->push_back(std::move(column));
  return {};
}

Status TowerOutputs::AddBest(const ScoreRequest& request, std::vector<OutputColumn>* outputs) {
  if (ranking_ == nullptr) {
    return {Code::kInvalidArgument,
            "there are no items for the output top_k: start hdps serve with --items=FILE"};
  }
  const uint64_t rows = request.rows->num_rows();
  if (request.top_k == 0 || request.top_k * std::max<uint64_t>(rows, 1) > kBestOfAnswerMax) {
    return {Code::kInvalidArgument, "k is " + std::to_string(request.top_k) +
                                        " for the output top_k: expected from 1 on, and at most " +
                                        std::to_string(kBestOfAnswerMax) + " over all rows"};
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<float> users, VectorsOf(Tower::kUser, request.rows));
  OutputColumn items, scores;
  items.name = "top_k";
  scores.name = "top_k_score";
  items.width = scores.width = std::min(request.top_k, ranking_->size());
  for (uint64_t row = 0; row < rows; ++row) {
    const std::span<const float> user = std::span(users).subspan(row * dim_, dim_);
    for (const ItemRanking::Ranked& ranked : ranking_->Best(user, items.width)) {
      items.texts.push_back(ranking_->text(ranked.item));
      scores.numbers.push_back(ranked.score);
    }
  }
  outputs->push_back(std::move(items));
  outputs->push_back(std::move(scores));
  return {};
}

Result<std::vector<float>> TowerOutputs::VectorsOf(Tower tower,
                                                   std::shared_ptr<const ColumnTable> rows) {
  std::unique_ptr<TableVectors> taken;
  {
    MutexLock lock(mutex_);
    auto& idle = tower == Tower::kUser ? idle_users_ : idle_items_;
    if (!idle.empty()) {
      taken = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (taken == nullptr) {
    HDPS_ASSIGN_OR_RETURN(taken, TableVectors::New(scorer_, tower, executor_));
    if (taken->step() != step_) {
      return Status(Code::kStaleView, "the model is of step " + std::to_string(taken->step()) +
                                          ", and its items of step " + std::to_string(step_));
    }
  }
  Result<std::vector<float>> vectors = taken->Of(std::move(rows));
  MutexLock lock(mutex_);
  (tower == Tower::kUser ? idle_users_ : idle_items_).push_back(std::move(taken));
  return vectors;
}

}  // namespace hdps
