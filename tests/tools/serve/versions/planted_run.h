// Writes checkpoints of a model that tells in each score which of them it is.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "tests/tools/text_columns.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/data/columnar/columns.h"
#include "worker/data/row.h"
#include "worker/dense/dense_state.h"
#include "worker/model/model.h"

namespace hdps {

// Returns the table of some columns, which keeps them.
inline std::shared_ptr<const ColumnTable> KeptTable(const std::shared_ptr<TextColumns>& columns) {
  const auto both = std::make_shared<
      std::pair<std::shared_ptr<const TextColumns>, std::shared_ptr<const ColumnTable>>>(
      columns, columns->Table());
  return {both, both->second.get()};
}

// Returns `rows` rows of the columns a and b; each feature has kPlantedValues values with rows.
inline constexpr int kPlantedValues = 50;
inline std::shared_ptr<const ColumnTable> PlantedRows(int rows, int first = 0) {
  auto columns = std::make_shared<TextColumns>();
  for (const std::string name : {"a", "b"}) {
    std::vector<std::string> cells;
    for (int i = first; i < first + rows; ++i) {
      cells.push_back(name + std::to_string(i % kPlantedValues));
    }
    columns->Add(name, cells);
  }
  return KeptTable(columns);
}

// A logistic model over the features a and b, all of whose weights are `value`: the logit of any
// row is kTerms times that. A row of which some terms are another checkpoint's has another logit.
class PlantedRun {
 public:
  static constexpr float kTerms = 3;  // Of a, b and the bias.

  // The checkpoints lie in `folder`/checkpoint. `settings` are further sections of the job file.
  PlantedRun(FileSystem& files, std::string folder, const std::string& settings = "\"seed\": 3")
      : files_(files), folder_(std::move(folder)), job_(JobWith(settings)) {
    manifest_.job_name = job_.name;
    manifest_.job_digest = JobDigest(job_);
    manifest_.tables_digest = TablesDigest(job_);
    manifest_.num_shards = 2;
    manifest_.job_json = PrintJob(job_);
    for (uint32_t s = 0; s < manifest_.num_shards; ++s) {
      slices_.push_back(EmptySlices(job_, manifest_, {s}));
    }
  }

  const std::string& folder() const { return folder_; }
  std::string FolderOf(Clock clock) const {
    return JoinPath(JoinPath(folder_, "checkpoint"), CheckpointName(clock));
  }
  Manifest& manifest() { return manifest_; }  // What the next checkpoints have in common.

  // Sets all weights to `value`, and those of b<one> to `of_one` if that is not the same.
  void Set(float value, int one, float of_one) {
    SetDense(value);
    for (const std::string feature : {"a", "b"}) {
      for (int i = 0; i < kPlantedValues; ++i) {
        const Key key = FeatureKey(HashString(feature), feature + std::to_string(i));
        Store({0}, key, feature == "b" && i == one ? of_one : value);
      }
    }
  }
  void Set(float value) { Set(value, 0, value); }

  // Saves all rows, or what changed since the save before. The weights are `clock`, unless Set()
  // was called and `as_set`.
  void SaveWhole(Clock clock, bool as_set = false) { Save(clock, kNoClock, as_set); }
  void SaveDelta(Clock clock, bool as_set = false) { Save(clock, saved_, as_set); }

 private:
  static Job JobWith(const std::string& settings) {
    const Result<Job> job = ParseJob(
        R"({"name": "planted", "data": {"train": ["t"], "columns": [{"name": "y", "type": "label"},
            {"name": "a"}, {"name": "b"}]}, "model": {"type": "logistic", "device": "cpu"},
            "cluster": {"shards": 2}, )" +
            settings + "}",
        "job.json", {});
    EXPECT_TRUE(job.ok()) << job.status().message();
    return *job;
  }
  void Store(TableId table, Key key, float value) {
    const TableSpec& spec = job_.tables[table.value];
    const ShardId shard = ShardOf(key, spec.shard_by, manifest_.num_shards);
    const std::vector<float> row(spec.dim, value);
    slices_[shard.value][table.value].Store({&key, 1}, spec.dim, row, saved_ + 1);
  }
  void SetDense(float value) {
    const auto executor = NewInlineExecutor();
    const auto model = NewModel(job_, *executor);
    ASSERT_TRUE(model.ok()) << model.status().message();
    const TableId dense{static_cast<uint32_t>(job_.tables.size() - 1)};
    ASSERT_TRUE(job_.tables[dense.value].dense);
    for (const Key key : DenseKeys((*model)->tensors())) Store(dense, key, value);
  }
  void Save(Clock clock, Clock base, bool as_set) {
    if (!as_set) Set(static_cast<float>(clock));
    Manifest manifest = manifest_;
    manifest.clock = clock;
    manifest.base_clock = base;
    if (base != kNoClock) manifest.base_checksum = base_checksum_;
    for (uint32_t s = 0; s < manifest.num_shards; ++s) {
      std::vector<const TableSlice*> tables;
      for (const TableSlice& slice : slices_[s]) tables.push_back(&slice);
      const SnapshotHeader header{manifest.tables_digest, {s}, manifest.num_shards, clock, base};
      const auto saved = WriteSnapshot(files_, FolderOf(clock), header, tables);
      ASSERT_TRUE(saved.ok()) << saved.status().message();
      manifest.files.push_back(*saved);
      for (TableSlice& slice : slices_[s]) slice.MarkSaved(clock);
    }
    const Status written = WriteManifest(files_, FolderOf(clock), manifest);
    ASSERT_TRUE(written.ok()) << written.message();
    base_checksum_ = ManifestChecksum(manifest);
    saved_ = clock;
  }

  FileSystem& files_;
  const std::string folder_;
  const Job job_;
  Manifest manifest_;
  std::vector<std::vector<TableSlice>> slices_;  // [shards][tables]
  Clock saved_ = 0;
  uint64_t base_checksum_ = 0;
};

}  // namespace hdps
