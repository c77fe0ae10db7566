// Runs a thread per worker of this process, with exchanges through the groups that they are given.
#include "tools/scoring/rank_scoring.h"

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

std::vector<ScoringRank> AllRanksHere(uint32_t workers) {
  std::vector<std::unique_ptr<Collective>> groups = NewThreadCollectives(workers);
  std::vector<std::unique_ptr<Collective>> lanes = NewThreadCollectives(workers);
  std::vector<ScoringRank> ranks;
  for (uint32_t r = 0; r < workers; ++r) {
    ranks.push_back({r, std::move(groups[r]), std::move(lanes[r])});
  }
  return ranks;
}

Result<std::unique_ptr<RankScoring>> RankScoring::New(const Job& job, const Strategy& strategy,
                                                      std::vector<ScoringRank> here,
                                                      CheckpointModel& loaded, Executor& executor,
                                                      MonotonicClock& clock) {
  std::unique_ptr<RankScoring> scoring(new RankScoring(job, strategy.workers, loaded));
  scoring->whole_ = loaded.model().tensors();
  const std::vector<float> weights = loaded.DenseWeights();
  for (ScoringRank& of : here) {
    Rank& rank = scoring->ranks_.emplace_back();
    rank.of = std::move(of);
    HDPS_ASSIGN_OR_RETURN(rank.model,
                          RankModel::New(job, strategy, rank.of.rank, executor, RankUse::kPredict));
    rank.model->model().SetDense(rank.model->CutRows(kDenseChunkFloats, weights));
    Collective* const of_lane = rank.of.lane_group.get();
    rank.exchange = std::make_unique<LaneExchange>(std::span(&of_lane, 1), clock);
    rank.keys = std::make_unique<KeyFinder>(rank.model->job());
  }
  return scoring;
}

Status RankScoring::ScorePart(Rank& rank, const Batch& batch) {
  const std::vector<uint32_t>& kept = rank.model->job().data.kept_numbers;
  std::optional<Batch> cut;
  if (!kept.empty()) cut = KeepNumbers(batch, kept);
  const Batch& read = cut ? *cut : batch;
  const Batch own = SliceBatch(read, rank.of.rank, workers_);
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
    loaded_.Read({t}, inputs[t].keys->unique, inputs[t].keys->field_shard, rows[t]);
    inputs[t].rows = rows[t];
  }
  const uint32_t examples = own.num_examples;
  HDPS_RETURN_IF_ERROR(rank.model->BeginStep(*rank.of.group, {&examples, 1}));
  const uint32_t lane = 0;
  rank.exchange->BeginStep({&lane, 1});
  Result<double> loss = rank.model->model().Predict(
      own, inputs, rank.exchange.get(), {&sources, rank.model->RowsOfLayers(lane)}, &rank.scores);
  HDPS_RETURN_IF_ERROR(rank.exchange->EndStep(loss.status()));
  rank.loss_sum = *loss;
  return Status();
}

Result<double> RankScoring::Score(const Batch& batch, std::vector<float>* scores) {
  OnAllRanks(static_cast<uint32_t>(ranks_.size()), [&](uint32_t i) {
    ranks_[i].status = ScorePart(ranks_[i], batch);
    if (!ranks_[i].status.ok()) ranks_[i].of.group->Abort();
  });
  double loss_sum = 0;
  scores->clear();
  for (const Rank& rank : ranks_) {
    HDPS_RETURN_IF_ERROR(rank.status);
    loss_sum += rank.loss_sum;
    scores->insert(scores->end(), rank.scores.begin(), rank.scores.end());
  }
  if (ranks_.size() < workers_) HDPS_RETURN_IF_ERROR(Gather(scores, &loss_sum));
  return loss_sum;
}

Status RankScoring::Gather(std::vector<float>* scores, double* loss_sum) {
  Collective& group = *ranks_.front().of.group;
  HDPS_ASSIGN_OR_RETURN(const auto lists, GatherLists<float>(group, *scores));
  HDPS_ASSIGN_OR_RETURN(const auto losses, GatherLists<double>(group, {loss_sum, 1}));
  scores->clear();
  *loss_sum = 0;
  for (uint32_t r = 0; r < workers_; ++r) {
    scores->insert(scores->end(), lists[r].begin(), lists[r].end());
    *loss_sum += losses[r].front();
  }
  return Status();
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
    text += "worker " + std::to_string(ranks_[r].of.rank) + ": " + std::to_string(floats) +
            " dense weights, " + ShowByteCount(floats * sizeof(float)) +
            (cuts.empty() ? ", all whole" : ", cut:") + "\n" + cuts;
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
