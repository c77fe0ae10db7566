// Takes the batches of the reader: finds their keys, splits them by server, queues the steps.
#include "worker/step/step_pipeline.h"

#include <glog/logging.h>

#include <numeric>
#include <optional>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/table_slices.h"
#include "common/platform/memory_full.h"
#include "common/protocol/view.h"
#include "worker/data/follow/row_wait.h"

namespace hdps {
namespace {

// Fills in the shards of a table whose keys do not determine them. If the table is cut by column,
// each key is repeated once for every slice.
void NameShards(const Job& job, TableId id, PreparedStep* step, KeysOfTable* table) {
  const TableSpec& spec = job.tables[id.value];
  const bool any = !table->keys.empty();
  if (spec.slice_mode == SliceMode::kField) {
    if (any) table->shard_of_key = step->parts.FieldShardsOf(id);
    return;
  }
  step->sliced.resize(job.tables.size());
  SlicedKeys& sliced = step->sliced[id.value];
  sliced.keys.clear();
  sliced.shards.clear();
  for (const Key key : table->keys) {
    for (uint32_t slice = 0; slice < spec.row_slices(); ++slice) {
      sliced.keys.push_back(key);
      sliced.shards.push_back(ColumnShard(key, slice, spec.row_slices(), job.cluster.shards));
    }
  }
  table->keys = sliced.keys;
  table->shard_of_key = sliced.shards;
}

}  // namespace

PipelineOptions TrainingOptions(const Job& job, uint32_t rank, uint32_t workers) {
  const bool full_batch = job.parallel.dataset_strategy == DatasetStrategy::kFullBatch;
  PipelineOptions options;
  options.paths = job.data.train;
  options.reader.seed = job.seed;
  options.reader.batch_size = job.train.batch_size;
  options.reader.side = RowSide::kTrained;
  if (job.data.follow) options.reader.follow = NewPollingWait({});
  options.reader.fill_last = job.train.last_batch == LastBatch::kFilled;
  options.reader.part = full_batch ? 0 : rank;
  options.reader.num_parts = full_batch ? 1 : workers;
  if (const std::vector<uint32_t>& parts = job.data.parts; !parts.empty()) {
    CHECK_EQ(parts.size(), workers);
    const uint32_t begin = std::accumulate(parts.begin(), parts.begin() + rank, 0u);
    options.reader.own_rows = {begin, begin + parts[rank]};
  }
  return options;
}

Result<std::unique_ptr<BatchReader>> ReaderOf(const Job& job, FileSystem& files,
                                              const PipelineOptions& options) {
  ReaderOptions reading = options.reader;
  reading.labels = LabelsOf(job);
  reading.executor = options.executor;
  if (!options.labels) {
    for (LabelSpec& label : reading.labels) label.num_classes = kLabelsNotRead;
  }
  return NewBatchReader(files, job.data, options.paths, reading);
}

Result<std::unique_ptr<StepPipeline>> StepPipeline::Start(const Job& job, FileSystem& files,
                                                          MonotonicClock& clock,
                                                          const PipelineOptions& options) {
  const ActivityBoard::Waiting waiting(options.board, WaitReason::kData);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<BatchReader> reader, ReaderOf(job, files, options));
  return std::unique_ptr<StepPipeline>(new StepPipeline(job, clock, options, std::move(reader)));
}

StepPipeline::StepPipeline(const Job& job, MonotonicClock& clock, const PipelineOptions& options,
                           std::unique_ptr<BatchReader> reader)
    : job_(job),
      clock_(clock),
      options_(options),
      finder_(job, options.executor),
      batches_(std::move(reader), options.epoch, options.skip_steps, /*ahead=*/1, clock),
      ready_(options.steps_ahead),
      used_(options.steps_ahead + 1 + options.steps_in_use),
      preparing_(StartThread("keys", [this] { PrepareAll(); })) {}

StepPipeline::~StepPipeline() {
  batches_.Close();
  ready_.Close();
  preparing_->Join();
}

Result<std::unique_ptr<PreparedStep>> StepPipeline::Next() {
  const ActivityBoard::Waiting waiting(options_.board, WaitReason::kData);
  return Take(ready_.Pop());
}

Result<std::unique_ptr<PreparedStep>> StepPipeline::TryNext() { return Take(ready_.TryPop()); }

Result<std::unique_ptr<PreparedStep>> StepPipeline::Take(std::optional<Item> item) {
  if (!item.has_value()) return std::unique_ptr<PreparedStep>();
  if (!item->status.ok()) return item->status;
  return std::move(item->step);
}

void StepPipeline::Recycle(std::unique_ptr<PreparedStep> step) { used_.Push(std::move(step)); }

void StepPipeline::PrepareAll() {
  const MemoryFor batches("batches of the data (train.batch_size, train.lookahead)");
  while (true) {
    Result<std::optional<ReadBatch>> read = batches_.Next();
    if (read.ok() && !read->has_value()) break;
    Item item{read.status(), nullptr};
    if (read.ok()) item.step = Prepare(**std::move(read));
    if (!ready_.Push(std::move(item))) return;
    if (options_.on_step) options_.on_step();
  }
  ready_.Close();
  if (options_.on_step) options_.on_step();
}

std::unique_ptr<PreparedStep> StepPipeline::Prepare(ReadBatch read) {
  const int64_t begin_ns = clock_.NowNs();
  const ReaderOptions& reading = options_.reader;
  read.batch.epoch = options_.epoch;
  read.batch.own_row = reading.FirstOwn(read.batch.first_row);
  read.batch.row_stride = reading.Stride();
  std::unique_ptr<PreparedStep> step = used_.TryPop().value_or(nullptr);
  if (step == nullptr) step = std::make_unique<PreparedStep>();
  step->messages = std::move(read.batch.messages);
  step->parts.Assign(std::move(read.batch), options_.parts, finder_);
  const bool counts = options_.plan.hot != nullptr, splits = options_.plan.view != nullptr;
  if (counts && splits && options_.executor != nullptr) {
    options_.executor->ParallelFor(
        2, [&](size_t i) { i == 0 ? Split(step.get()) : CountKeys(*step); });
  } else {
    if (counts) CountKeys(*step);
    if (splits) Split(step.get());
  }
  step->bad_rows = read.bad_rows;
  step->progress = read.progress;
  step->read_ns = read.read_ns;
  step->read_end_ns = read.read_end_ns;
  step->dedup_end_ns = clock_.NowNs();
  step->dedup_ns = step->dedup_end_ns - begin_ns;
  return step;
}

void StepPipeline::CountKeys(const PreparedStep& step) {
  HotKeyRegistry& registry = *options_.plan.hot;
  for (size_t g = 0; g < registry.groups().size(); ++g) {
    registry.Count(g, step.parts.KeysOf(registry.groups()[g].tables.front()));
  }
}

void StepPipeline::Split(PreparedStep* step) const {
  const HotKeyRegistry* const registry = options_.plan.hot.get();
  if (registry != nullptr) SplitHot(step->parts, *registry, options_.executor, &step->hot);
  step->lists.resize(options_.parts.pieces == 1 ? 1 : options_.parts.pieces + 1);
  const View& view = *options_.plan.view;
  const auto make = [&](ServerId to, size_t size, std::span<std::byte>* bytes) {
    return MakeSection(options_.plan.sections, view.servers[to.value].peer, size, bytes);
  };
  for (size_t i = 0; i < step->lists.size(); ++i) {
    step->lists[i].set_executor(options_.executor);
    step->lists[i].Compute(view.shards, static_cast<uint32_t>(view.servers.size()),
                           TablesOf(step, i), make);
  }
}

std::vector<KeysOfTable> StepPipeline::TablesOf(PreparedStep* step, size_t list) const {
  const HotKeyRegistry* const registry = options_.plan.hot.get();
  std::vector<KeysOfTable> tables;
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    const TableSpec& spec = job_.tables[t];
    if (spec.dense && (options_.plan.dense_keys.empty() || list > 0)) continue;
    KeysOfTable& table = tables.emplace_back();
    table.table = {t};
    table.shard_by = spec.shard_by;
    table.row_floats = spec.slice_dim();
    table.dense = spec.dense;
    table.keys = spec.dense ? options_.plan.dense_keys : step->parts.KeysOf({t});
    if (step->parts.empty()) table.keys = {};
    if (!table.keys.empty()) table.shard_begin = step->parts.ShardBeginOf({t}, spec.shard_by);
    if (spec.shard_by == ShardBy::kGiven) {
      // Shards are named for all keys of a table, which go with the first list.
      if (list > 0) {
        table.keys = {};
      } else {
        NameShards(job_, {t}, step, &table);
      }
    } else if (step->lists.size() > 1 && !spec.dense) {
      table.only = step->parts.PositionsOfList(list, {t});
    }
    if (registry == nullptr || table.keys.empty()) continue;
    const int group = registry->GroupOf({t});
    if (group >= 0) table.only = step->hot[static_cast<size_t>(group)].cold;
  }
  return tables;
}

}  // namespace hdps
