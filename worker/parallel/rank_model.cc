// Exchanges examples per lane and dense rows between the ranks of a cut model.
#include "worker/parallel/rank_model.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/job_registry.h"
#include "common/planning/strategy_of_job.h"
#include "worker/model/graph.h"
#include "worker/parallel/rank_layers.h"

namespace hdps {
namespace {

constexpr uint32_t kRoot = 0;

std::vector<DenseTensor> TensorsOf(const Job& job) {
  Result<Graph> graph = PlanGraph(job);
  CHECK(graph.ok()) << graph.status().message();
  return graph->tensors;
}

}  // namespace

Result<std::unique_ptr<RankModel>> RankModel::New(const Job& job, const Strategy& strategy,
                                                  uint32_t rank, Executor& executor, RankUse use) {
  if (use == RankUse::kTrain) HDPS_RETURN_IF_ERROR(CheckCutTraining(job));
  HDPS_ASSIGN_OR_RETURN(RankGraph graph, CutForRank(job, strategy, rank));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, NewModel(graph.job, executor));
  if (!model->ops().on_host()) {
    return Status(Code::kInvalidArgument,
                  "model.device: layers that are cut over workers are computed on the CPU; use "
                  "cpu, or parallel_mode data_parallel");
  }
  return std::unique_ptr<RankModel>(
      new RankModel(job, strategy, std::move(graph), std::move(model), TensorsOf(job)));
}

RankModel::RankModel(const Job& job, const Strategy& strategy, RankGraph graph,
                     std::unique_ptr<Model> model, const std::vector<DenseTensor>& whole)
    : whole_job_(job),
      strategy_(strategy),
      graph_(std::move(graph)),
      model_(std::move(model)),
      whole_(whole),
      slices_(whole, model_->tensors(), graph_.tensors) {}

Status RankModel::BeginStep(Collective& group, std::span<const uint32_t> examples) {
  const size_t lanes = examples.size();
  std::vector<uint32_t> counts(graph_.workers * lanes);
  const std::vector<size_t> sizes(graph_.workers, examples.size_bytes());
  HDPS_RETURN_IF_ERROR(group.AllGather(std::as_bytes(examples), sizes,
                                       std::as_writable_bytes(std::span(counts)),
                                       MemorySpace::kHost));
  std::vector<uint32_t> of_lane(graph_.workers);
  graph_.lane_rows->rows.clear();
  layer_rows_.resize(lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (uint32_t rank = 0; rank < graph_.workers; ++rank) {
      of_lane[rank] = counts[rank * lanes + lane];
    }
    const StepRows& rows = graph_.lane_rows->rows.emplace_back(of_lane);
    layer_rows_[lane].clear();
    for (const RowsOfLayer& of : graph_.rows) {
      layer_rows_[lane].push_back(rows.Part(of.part, of.parts).size);
    }
  }
  return Status();
}

std::vector<uint32_t> RankModel::SharedBy() const {
  std::vector<uint32_t> ranks;
  for (const TensorSlice& slice : graph_.tensors) {
    const auto count = static_cast<uint32_t>(slice.summed_by.size());
    ranks.push_back(count == graph_.workers ? 0 : count);
  }
  return ranks;
}

Result<std::vector<float>> RankModel::GatherRows(Collective& group, uint32_t row_floats,
                                                 std::span<const float> own) {
  std::vector<float> whole;
  if (graph_.rank == kRoot) {
    size_t chunks = 0;
    for (const DenseTensor& tensor : whole_) chunks += tensor.num_chunks;
    whole.resize(chunks * row_floats);
    slices_.Join(kRoot, row_floats, own, whole);
  }
  // One rank at a time, so that rank 0 holds the rows of one rank besides the whole.
  std::vector<float> of_rank;
  for (uint32_t rank = 1; rank < graph_.workers; ++rank) {
    if (graph_.rank == rank && !own.empty()) {
      auto* const bytes = reinterpret_cast<std::byte*>(const_cast<float*>(own.data()));
      const RankBytes send = {kRoot, bytes, own.size_bytes()};
      HDPS_RETURN_IF_ERROR(group.Exchange({&send, 1}, {}));
    }
    if (graph_.rank != kRoot) continue;
    HDPS_ASSIGN_OR_RETURN(const RankGraph other, CutForRank(whole_job_, strategy_, rank));
    const TensorSlices slices(whole_, TensorsOf(other.job), other.tensors);
    of_rank.resize(slices.own_chunks() * row_floats);
    if (of_rank.empty()) continue;
    const RankBytes receive = {rank, reinterpret_cast<std::byte*>(of_rank.data()),
                               of_rank.size() * sizeof(float)};
    HDPS_RETURN_IF_ERROR(group.Exchange({}, {&receive, 1}));
    slices.Join(rank, row_floats, of_rank, whole);
  }
  return whole;
}

}  // namespace hdps
