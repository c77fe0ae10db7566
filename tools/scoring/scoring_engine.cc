// Finds keys, reads rows and predicts, with memory that is kept from batch to batch.
#include "tools/scoring/scoring_engine.h"

#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"

namespace hdps {

ScoringEngine::ScoringEngine(CheckpointModel& loaded)
    : loaded_(loaded),
      finder_(loaded.job()),
      sets_(finder_.num_sets()),
      rows_(loaded.job().tables.size()),
      inputs_(loaded.job().tables.size()),
      has_row_(finder_.num_sets()) {}

Result<std::unique_ptr<ScoringEngine>> ScoringEngine::New(CheckpointModel& loaded,
                                                          bool owns_model) {
  const MemoryFor model("the dense layers of a thread that scores beside others");
  std::unique_ptr<ScoringEngine> made(new ScoringEngine(loaded));
  made->model_ = &loaded.model();
  if (owns_model) {
    HDPS_ASSIGN_OR_RETURN(made->own_, loaded.MakeModel());
    made->model_ = made->own_.get();
  }
  ReaderLock lock(loaded.rows_mutex());
  made->BringDense();
  return made;
}

void ScoringEngine::BringDense() {
  if (step_ == loaded_.step()) return;
  step_ = loaded_.step();
  if (model_->dense_floats() > 0) model_->SetDense(loaded_.DenseWeights());
}

void ScoringEngine::ReadRows(bool unknown_keys) {
  ReaderLock lock(loaded_.rows_mutex());
  std::vector<bool> looked(has_row_.size());
  for (uint32_t t = 0; t < inputs_.size(); ++t) {
    inputs_[t] = {};
    if (table_sets()[t] < 0) continue;
    const auto set = static_cast<size_t>(table_sets()[t]);
    const KeySet& keys = sets_[set];
    inputs_[t].keys = &keys;
    rows_[t].resize(keys.unique.size() * loaded_.job().tables[t].dim);
    std::span<uint8_t> has_row;
    if (unknown_keys && !looked[set]) {
      has_row_[set].resize(keys.unique.size());
      has_row = has_row_[set];
      looked[set] = true;
    }
    loaded_.Read({t}, keys.unique, keys.field_shard, rows_[t], has_row);
    inputs_[t].rows = rows_[t];
  }
  BringDense();
}

Result<double> ScoringEngine::Score(const Batch& batch, bool unknown_keys) {
  HDPS_RETURN_IF_ERROR(model_->CheckBatch(batch));
  FindKeys(batch);
  ReadRows(unknown_keys);
  return model_->Predict(batch, inputs_, &scores_);
}

}  // namespace hdps
