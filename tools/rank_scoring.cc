// Runs a thread per worker, with exchanges through shared memory.
#include "tools/rank_scoring.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/byte_count.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/membership_messages.h"
#include "worker/collective/rank_transport.h"
#include "worker/model/step_parts.h"

namespace hdps {

Result<std::unique_ptr<RankScoring>> RankScoring::New(const Job& job, const Strategy& strategy,
                                                      CheckpointModel& loaded, Executor& executor,
                                                      MonotonicClock& clock) {
  std::unique_ptr<RankScoring> scoring(new RankScoring(job, loaded));
  scoring->whole_ = loaded.model().tensors();
  std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(strategy.workers);
  std::vector<std::unique_ptr<Collective>> lanes = NewThreadCollectives(strategy.workers);
  const std::vector<float> weights = loaded.DenseWeights();
  for (uint32_t r = 0; r < strategy.workers; ++r) {
    Rank& rank = scoring->ranks_.emplace_back();
    rank.group = std::move(groups[r]);
    rank.lane_group = std::move(lanes[r]);
    HDPS_ASSIGN_OR_RETURN(rank.model,
                          RankModel::New(job, strategy, r, executor, RankUse::kPredict));
    rank.model->model().SetDense(rank.model->CutRows(kDenseChunkFloats, weights));
    Collective* const of_lane = rank.lane_group.get();
    rank.exchange = std::make_unique<LaneExchange>(std::span(&of_lane, 1), clock);
    rank.keys = std::make_unique<KeyFinder>(rank.model->job());
  }
  return scoring;
}

Status RankScoring::ScorePart(uint32_t number, const Batch& batch) {
  Rank& rank = ranks_[number];
  const auto workers = static_cast<uint32_t>(ranks_.size());
  const std::vector<uint32_t>& kept = rank.model->job().data.kept_numbers;
  std::optional<Batch> cut;
  if (!kept.empty()) cut = KeepNumbers(batch, kept);
  const Batch& read = cut ? *cut : batch;
  const Batch own = SliceBatch(read, number, workers);
  const Batch& sources = rank.model->graph().reads_whole_batch ? read : own;
  std::vector<KeySet> sets;
  rank.keys->Find(sources, &sets);
  std::vector<std::vector<float>> rows(job_.tables.size());
  std::vector<TableInput> inputs(job_.tables.size());
  for (uint32_t t = 0; t < inputs.size(); ++t) {
    const int set = rank.keys->table_keys()[t];
    if (set < 0) continue;
    inputs[t].keys = &sets[static_cast<size_t>(set)];
    rows[t].resize(inputs[t].keys->unique.size() * job_.tables[t].dim);
    MutexLock lock(mutex_);
    loaded_.Read({t}, inputs[t].keys->unique, inputs[t].keys->field_shard, rows[t]);
    inputs[t].rows = rows[t];
  }
  const uint32_t examples = own.num_examples;
  HDPS_RETURN_IF_ERROR(rank.model->BeginStep(*rank.group, {&examples, 1}));
  const uint32_t lane = 0;
  rank.exchange->BeginStep({&lane, 1});
  Result<double> loss = rank.model->model().Predict(
      own, inputs, rank.exchange.get(), {&sources, rank.model->RowsOfLayers(lane)}, &rank.scores);
  HDPS_RETURN_IF_ERROR(rank.exchange->EndStep(loss.status()));
  rank.loss_sum = *loss;
  return Status();
}

Result<double> RankScoring::Score(const Batch& batch, std::vector<float>* scores) {
  OnAllRanks(static_cast<uint32_t>(ranks_.size()), [&](uint32_t rank) {
    ranks_[rank].status = ScorePart(rank, batch);
    if (!ranks_[rank].status.ok()) ranks_[rank].group->Abort();
  });
  double loss_sum = 0;
  scores->clear();
  for (const Rank& rank : ranks_) {
    HDPS_RETURN_IF_ERROR(rank.status);
    loss_sum += rank.loss_sum;
    scores->insert(scores->end(), rank.scores.begin(), rank.scores.end());
  }
  return loss_sum;
}

std::string RankScoring::Describe() const {
  std::string text;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const RankGraph& graph = ranks_[r].model->graph();
    const std::vector<DenseTensor>& own = ranks_[r].model->model().tensors();
    size_t floats = 0;
    std::string cuts;
    for (size_t t = 0; t < own.size(); ++t) {
      floats += own[t].size();
      const TensorSlice& slice = graph.tensors[t];
      const DenseTensor& whole = whole_[slice.whole];
      if (own[t].size() == whole.size()) continue;
      cuts += "  " + whole.name + " rows " + std::to_string(slice.rows.begin) + ".." +
              std::to_string(slice.rows.end()) +
              (slice.row_order == AxisFirst() ? "" : " (the cut axis of the image first)") +
              ", columns " + std::to_string(slice.columns.begin) + ".." +
              std::to_string(slice.columns.end()) + ", " +
              ShowByteCount(own[t].size() * sizeof(float)) + "\n";
    }
    text += "worker " + std::to_string(r) + ": " + std::to_string(floats) + " dense weights, " +
            ShowByteCount(floats * sizeof(float)) + (cuts.empty() ? ", all whole" : ", cut:") +
            "\n" + cuts;
    if (const size_t kept = graph.job.data.kept_numbers.size(); kept > 0) {
      text += "  " + std::to_string(kept) + " of the " +
              std::to_string(FeaturesOf(job_.data).numeric.size()) + " numeric columns\n";
    }
    for (const LayerSpec& layer : graph.job.model.layers) {
      if (!graph.reads_whole_batch || layer.features.empty()) continue;
      text += "  " + layer.name + " of";
      for (const std::string& feature : layer.features) text += " " + feature;
      text += "\n";
    }
  }
  return text;
}

}  // namespace hdps
