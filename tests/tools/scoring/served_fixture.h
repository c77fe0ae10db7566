// Fixtures of checkpoints that are scored while others come.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "tests/tools/predict_fixture.h"
#include "tests/tools/text_columns.h"
#include "tools/scoring/row_scorer.h"

namespace hdps {

// Opens checkpoints of a run in each form.
class ServedFixture : public PredictTest {
 protected:
  std::unique_ptr<RowScorer> Open(const FoundCheckpoint& found, RowForm form, Executor& executor,
                                  UnknownKeys unknown = UnknownKeys::kInitial) {
    auto opened = RowScorer::Open(*files_, found, unknown, form, executor);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return *std::move(opened);
  }
  FoundCheckpoint Find(const std::string& run) {
    auto found = OpenCheckpoint(*files_, run, WhichCheckpoint::kNewest);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return *std::move(found);
  }
};

// A checkpoint whose weights are all its step, so that a score tells of which steps it is.
class PlantedSteps : public ServedFixture {
 protected:
  static constexpr uint32_t kShards = 4;
  static constexpr int kUsers = 10000;

  void SetUp() override {
    const auto job = ParseJob(
        R"({"name": "planted", "data": {"train": ["t"], "columns": [{"name": "y", "type": "label"},
            {"name": "user"}, {"name": "item"}]}, "model": {"type": "logistic", "device": "cpu"},
            "train": {"batch_size": 8}, "cluster": {"shards": 4}})",
        "job.json", {});
    ASSERT_TRUE(job.ok()) << job.status().message();
    job_ = *job;
    shards_ = NoRows();
  }
  std::vector<std::vector<TableSlice>> NoRows() const {
    Manifest shape;
    shape.num_shards = kShards;
    std::vector<std::vector<TableSlice>> shards;
    for (uint32_t s = 0; s < kShards; ++s) shards.push_back(EmptySlices(job_, shape, {s}));
    return shards;
  }
  // Sets all weights to `step` and saves them, as a delta unless it is the first step.
  CheckpointPart Save(Clock step) {
    for (uint32_t s = 0; s < kShards; ++s) {
      for (TableSlice& slice : shards_[s]) StoreAll(slice, {s}, step);
    }
    CheckpointPart part = Write(step, shards_);
    for (std::vector<TableSlice>& shard : shards_) {
      for (TableSlice& slice : shard) slice.MarkSaved(step);
    }
    last_ = part.manifest;
    return part;
  }
  // Writes slices as a delta on the last checkpoint, if there is one.
  CheckpointPart Write(Clock step, const std::vector<std::vector<TableSlice>>& shards) {
    CheckpointPart part{JoinPath(folder_, CheckpointName(step)), {}};
    Manifest& manifest = part.manifest;
    manifest.job_name = job_.name;
    manifest.job_digest = JobDigest(job_);
    manifest.tables_digest = TablesDigest(job_);
    manifest.num_shards = kShards;
    manifest.clock = step;
    manifest.job_json = PrintJob(job_);
    if (last_) manifest.base_clock = last_->clock;
    if (last_) manifest.base_checksum = ManifestChecksum(*last_);
    for (uint32_t s = 0; s < kShards; ++s) {
      std::vector<const TableSlice*> slices;
      for (const TableSlice& slice : shards[s]) slices.push_back(&slice);
      const SnapshotHeader header{manifest.tables_digest, {s}, kShards, step, manifest.base_clock};
      const auto saved = WriteSnapshot(*files_, part.folder, header, slices);
      EXPECT_TRUE(saved.ok()) << saved.status().message();
      manifest.files.push_back(*saved);
    }
    EXPECT_TRUE(WriteManifest(*files_, part.folder, manifest).ok());
    return part;
  }
  void StoreAll(TableSlice& slice, ShardId shard, Clock step) {
    std::vector<Key> keys;
    if (slice.spec().dense) keys.push_back(0);  // The bias is the first chunk.
    for (int i = 0; !slice.spec().dense && i < kUsers; ++i) {
      keys.push_back(FeatureKey(HashString("user"), "u" + std::to_string(i)));
      keys.push_back(FeatureKey(HashString("item"), "i" + std::to_string(i)));
    }
    std::erase_if(keys,
                  [&](Key key) { return ShardOf(key, slice.spec().shard_by, kShards) != shard; });
    const std::vector<float> rows(keys.size() * slice.dim(), static_cast<float>(step));
    slice.Store(keys, slice.dim(), rows, step);
  }

  std::string folder_ = "ck";
  Job job_;
  std::vector<std::vector<TableSlice>> shards_;
  std::optional<Manifest> last_;
};

}  // namespace hdps
