// A checkpoint and its model in one process, without servers: for evaluate and predict.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "embedding/table.h"
#include "worker/model/model.h"
#include "worker/step/evaluation.h"

namespace hdps {

struct Job;
struct Manifest;
enum class WhichCheckpoint : uint8_t;

// Of a shard of a checkpoint of the job: its tables, [Job::tables], without rows.
std::vector<TableSlice> EmptySlices(const Job& job, const Manifest& manifest, ShardId shard);
// One shard of a checkpoint of the job, [Job::tables]..
Result<std::vector<TableSlice>> ReadShard(FileSystem& files, const FoundCheckpoint& checkpoint,
                                          const Job& job, ShardId shard);

// On stderr, where `found` is not the newest: that it is the best, and how to take the other.
void TellWhich(const FoundCheckpoint& found);

// Invariant: the rows are those of the checkpoint and never change; keys it does not hold read as
// their initial values, as they would in training.
class CheckpointModel {
 public:
  // `path` and `which` as OpenCheckpoint takes them. kInvalidArgument when the checkpoint is of a
  // job with other tables than `job`.
  static Result<std::unique_ptr<CheckpointModel>> Load(FileSystem& files, const Job& job,
                                                       const std::string& path,
                                                       WhichCheckpoint which, Executor& executor);

  Model& model() { return *model_; }
  const FoundCheckpoint& checkpoint() const { return checkpoint_; }
  // For ScoreSteps: the rows of the step's keys.
  Status Fetch(const PreparedStep& step, std::vector<std::vector<float>>* rows);

  // rows[keys * dim]: weights. `field_shards`: of each key, of a table that is cut by field; else
  // empty.
  void Read(TableId table, std::span<const Key> keys, std::span<const uint32_t> field_shards,
            std::span<float> rows);
  std::vector<uint64_t> RowsOfTables() const;  // [tables]
  // The model's flat array.
  std::vector<float> DenseWeights();

 private:
  explicit CheckpointModel(const Job& job) : job_(job) {}
  Status ReadShards(FileSystem& files, Executor& executor);

  const Job& job_;
  FoundCheckpoint checkpoint_;
  std::unique_ptr<Model> model_;
  std::vector<std::vector<TableSlice>> shards_;  // [shards][tables]
};

}  // namespace hdps
