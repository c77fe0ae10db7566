// The outputs of a two_tower model besides its predictions: vectors, and the best items of a user.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/export/vectors/table_vectors.h"
#include "tools/scoring/row_scorer.h"
#include "tools/serve/requests/score_request.h"
#include "tools/serve/versions/item_ranking.h"

namespace hdps {

struct Job;

// Is true for jobs of the recipe two_tower whose rows have named columns.
bool HasTowers(const Job& job);

// Items to choose from, as hdps export --format=vectors takes them.
struct ItemsToRank {
  std::string files;        // --items; empty: there is no output top_k.
  std::string text_column;  // --item_text; empty: the first of the items' features.
};

// Invariant: all outputs are of one step(), that of the scorer when this was made, or that of the
// delta which it is about to take. So whoever follows a folder makes a new one for each version,
// and lets it answer from the moment on at which the scorer has that step.
//
// Safe to call from any thread.
class TowerOutputs {
 public:
  // Is true for outputs that are made here.
  static bool Makes(ScoreOutput output) {
    return output == ScoreOutput::kUserVector || output == ScoreOutput::kItemVector ||
           output == ScoreOutput::kTopK;
  }

  // Computes the vectors of all items. kInvalidArgument if the model is not of the recipe
  // two_tower, or names what is wrong with the items. With kStaged, only in DeltaHooks::staged.
  // Requires: `scorer` and `executor` outlive the result.
  static Result<std::unique_ptr<TowerOutputs>> New(FileSystem& files, RowScorer& scorer,
                                                   const ItemsToRank& items, Executor& executor,
                                                   RowView view = RowView::kPublished);

  Clock step() const { return step_; }

  // Appends what a model with these outputs gives.
  void AddNotes(std::vector<TensorNote>* outputs) const;

  // Appends the columns of one of these outputs: "user_vector" and "item_vector", [rows, dim], or
  // "top_k", the texts of the best items, and "top_k_score", the logits that they have for this
  // user, both [rows, k]. Rows need the inputs of one tower alone. kInvalidArgument names an input
  // that is missing, the first row that cannot be read, or what is wrong with k. kStaleView if the
  // scorer is of another step.
  Status Add(ScoreOutput output, const ScoreRequest& request, std::vector<OutputColumn>* outputs)
      HDPS_EXCLUDES(mutex_);

 private:
  TowerOutputs(RowScorer& scorer, Executor& executor) : scorer_(scorer), executor_(executor) {}
  // Returns the vectors of all rows, [rows, dim], by a tower that no other thread uses meanwhile.
  Result<std::vector<float>> VectorsOf(Tower tower, std::shared_ptr<const ColumnTable> rows)
      HDPS_EXCLUDES(mutex_);
  Status AddBest(const ScoreRequest& request, std::vector<OutputColumn>* outputs)
      HDPS_EXCLUDES(mutex_);

  RowScorer& scorer_;
  Executor& executor_;
  Clock step_ = kNoClock;
  uint32_t dim_ = 0;
  std::unique_ptr<const ItemRanking> ranking_;  // Null without items.

  Mutex mutex_;
  // Towers that no thread uses; there are as many as threads were here at once.
  std::vector<std::unique_ptr<TableVectors>> idle_users_ HDPS_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<TableVectors>> idle_items_ HDPS_GUARDED_BY(mutex_);
};

}  // namespace hdps
