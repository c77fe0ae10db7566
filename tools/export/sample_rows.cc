// Reads as hdps predict does, and stops early; draws from a fixed seed.
#include "tools/export/sample_rows.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/random.h"
#include "common/process/terminal.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/scored_job.h"
#include "worker/step/evaluation.h"
#include "worker/step/step_pipeline.h"

namespace hdps {
namespace {

constexpr uint32_t kBatchRows = 500;
constexpr size_t kBatchesMax = 40;
constexpr uint64_t kSampleBytes = uint64_t{48} << 20;
constexpr size_t kDrawnKeys = 4096;  // Of each table, from which values are drawn.

// Returns the bytes of the weights that a batch needs.
uint64_t RowBytes(const Job& job, const StepParts& batch) {
  uint64_t bytes = 0;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    bytes += batch.KeysOf({t}).size() * job.tables[t].dim * sizeof(float);
  }
  return bytes;
}

Result<SampleRows> ReadData(const ExportTask& task, const EvalSet& set) {
  SampleRows sample;
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  PipelineOptions reading = EvaluationOptions(task.job, set, 0, 1);
  reading.reader.batch_size = kBatchRows;
  reading.labels = false;
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<StepPipeline> steps,
                        StepPipeline::Start(task.job, task.files, *clock, reading));
  uint64_t bytes = 0;
  while (sample.batches.size() < kBatchesMax) {
    HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<PreparedStep> step, steps->Next());
    if (step == nullptr) break;
    if (step->parts.empty()) continue;
    bytes += RowBytes(task.job, step->parts);
    if (bytes > kSampleBytes && !sample.batches.empty()) break;
    sample.batches.push_back(std::move(step->parts));
  }
  return sample;
}

// Returns some keys of each sparse feature's tables, [sparse features]; empty if they have none in
// the first shard.
Result<std::vector<std::vector<Key>>> KeysToDraw(const ExportTask& task) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<TableSlice> slices,
                        ReadShard(task.files, task.found, task.job, {0}));
  std::vector<std::vector<Key>> pools(FeaturesOf(task.job.data).sparse.size());
  for (const TableSlice& slice : slices) {
    if (slice.spec().dense) continue;
    std::vector<Key> keys;
    HDPS_RETURN_IF_ERROR(
        slice.VisitRows(kDrawnKeys, [&](std::span<const Key> some, std::span<const float>) {
          if (keys.empty()) keys.assign(some.begin(), some.end());
          return Status();
        }));
    for (const uint32_t feature : FeaturesOfTable(task.job, slice.spec().name)) {
      if (pools[feature].empty()) pools[feature] = keys;
    }
  }
  return pools;
}

// Returns which of the sparse features may have several values in a row.
std::vector<bool> SeveralValues(const DataSpec& data) {
  std::vector<bool> several;
  for (const std::string& name : FeaturesOf(data).sparse) {
    const auto column = std::ranges::find(data.columns, name, &ColumnSpec::name);
    several.push_back(data.format == DataFormat::kLibsvm || data.format == DataFormat::kLibffm ||
                      (column != data.columns.end() && column->type == ColumnType::kMulti));
  }
  return several;
}

Result<SampleRows> Draw(const ExportTask& task) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::vector<Key>> pools, KeysToDraw(task));
  const std::vector<bool> several = SeveralValues(task.job.data);
  Random random(task.job.seed);
  SampleRows sample;
  sample.drawn = true;
  KeyFinder finder(task.job);
  for (int b = 0; b < 2; ++b) {
    Batch batch;
    batch.num_examples = kBatchRows;
    batch.num_labels = static_cast<uint32_t>(TasksOf(task.job.model).size());
    batch.labels.resize(size_t{batch.num_labels} * kBatchRows);
    batch.num_numeric = static_cast<uint32_t>(FeaturesOf(task.job.data).numeric.size());
    for (size_t i = 0; i < size_t{batch.num_numeric} * kBatchRows; ++i) {
      batch.numeric.push_back(static_cast<float>(random.Next() >> 40) * 0x1p-23f - 1.0f);
    }
    for (size_t f = 0; f < pools.size(); ++f) {
      SparseColumn& column = batch.sparse.emplace_back();
      column.offsets = {0};
      for (uint32_t row = 0; row < kBatchRows; ++row) {
        const uint64_t values = several[f] ? random.Next() % 4 : 1;
        for (uint64_t v = 0; v < values; ++v) {
          const Key key = random.Next();
          column.keys.push_back(pools[f].empty() ? key : pools[f][key % pools[f].size()]);
        }
        column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
      }
    }
    sample.batches.emplace_back().Assign(std::move(batch), 1, finder);
  }
  return sample;
}

}  // namespace

Result<SampleRows> ReadSample(const ExportTask& task) {
  const CommonFlags& flags = task.request.common;
  const ReadJob read{task.job, task.origin};
  const Result<EvalSet> set = FindData(flags, read, task.files);
  if (set.ok()) return ReadData(task, *set);
  if (!flags.data.empty() || !flags.eval_set.empty()) return set.status();
  PrintError("values to check with are drawn at random: %s\n",
             EscapeUntrusted(set.status().message()).c_str());
  return Draw(task);
}

}  // namespace hdps
