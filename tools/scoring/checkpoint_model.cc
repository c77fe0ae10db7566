// Loads the shards of a checkpoint and reads their rows.
#include "tools/scoring/checkpoint_model.h"

#include <glog/logging.h>

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"
#include "common/process/terminal.h"
#include "embedding/flat_file.h"
#include "embedding/memory/weight_format.h"
#include "embedding/snapshot/snapshot.h"
#include "tools/scoring/scored_job.h"
#include "tools/scoring/serving_folder.h"
#include "tools/scoring/wanted_keys.h"
#include "tools/warnings.h"
#include "worker/dense/dense_state.h"

namespace hdps {

Result<FoundCheckpoint> OpenNamedCheckpoint(FileSystem& files, const std::string& path,
                                            WhichCheckpoint which) {
  Result<FoundCheckpoint> found = OpenCheckpoint(files, path, which);
  if (found.ok() || found.status().code() != Code::kNotFound) return found;
  return Status(Code::kNotFound, found.status().message() +
                                     "; expected a checkpoint, or the --out of a run with one");
}

void WarnUnlessNewest(const FoundCheckpoint& found) {
  if (found.newest == kNoClock) return;
  PrintError("step %" PRId64
             " is the best that was evaluated, so %s is taken; --which=newest "
             "takes step %" PRId64 "\n",
             found.manifest.clock, found.folder.c_str(), found.newest);
}

void WarnOfPassedOver(const FoundCheckpoint& found) {
  std::vector<std::string> warnings;
  for (const std::string& refused : found.refused) {
    warnings.push_back(refused + "; it is not whole, so it is passed over, and " + found.folder +
                       " is taken");
  }
  PrintWarnings(warnings);
}

void TellWhichIsTaken(const FoundCheckpoint& found) {
  WarnOfPassedOver(found);
  WarnUnlessNewest(found);
}

std::vector<TableSlice> EmptySlices(const Job& job, const Manifest& manifest, ShardId shard) {
  std::vector<TableSlice> slices;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    slices.emplace_back(job.tables[t], TableId{t}, job.seed,
                        RowPlacement{.shard = shard, .num_shards = manifest.num_shards});
  }
  return slices;
}

Result<std::vector<TableSlice>> ReadShard(FileSystem& files, const FoundCheckpoint& checkpoint,
                                          const Job& job, ShardId shard) {
  std::vector<TableSlice> slices = EmptySlices(job, checkpoint.manifest, shard);
  std::vector<TableSlice*> tables;
  for (TableSlice& slice : slices) tables.push_back(&slice);
  HDPS_RETURN_IF_ERROR(ReadShard(files, checkpoint.chain, shard, tables));
  return slices;
}

Result<std::unique_ptr<CheckpointModel>> CheckpointModel::Open(const Job& job,
                                                               const FoundCheckpoint& found,
                                                               Executor& executor, RowForm form) {
  std::unique_ptr<CheckpointModel> opened(new CheckpointModel(job, form, executor));
  opened->checkpoint_ = found;
  if (IsServingFolder(found.manifest) && form == RowForm::kInt8) {
    return Status(Code::kInvalidArgument, found.folder +
                                              " was exported for serving, and its rows "
                                              "stay as they are; rows are rounded to 8 bits from "
                                              "the checkpoint itself");
  }
  HDPS_RETURN_IF_ERROR(FitToCheckpoint(found, &opened->job_));
  HDPS_ASSIGN_OR_RETURN(opened->model_, opened->MakeModel());
  opened->shards_.resize(found.manifest.num_shards);
  opened->step_ = found.manifest.clock;
  opened->manifest_checksum_ = ManifestChecksum(found.manifest);
  return opened;
}

Result<std::unique_ptr<Model>> CheckpointModel::MakeModel() const {
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Model> made, NewModel(job_, *alone_));
  if (made->ops().on_host()) return made;
  return NewModel(job_, executor_);
}

Result<std::unique_ptr<CheckpointModel>> CheckpointModel::Load(FileSystem& files, const Job& job,
                                                               const std::string& path,
                                                               WhichCheckpoint which,
                                                               Executor& executor, RowForm form) {
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenNamedCheckpoint(files, path, which));
  return Load(files, job, found, executor, form);
}

Result<std::unique_ptr<CheckpointModel>> CheckpointModel::Load(FileSystem& files, const Job& job,
                                                               const FoundCheckpoint& found,
                                                               Executor& executor, RowForm form) {
  const MemoryFor loading("the checkpoint's rows and dense layers");
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointModel> loaded, Open(job, found, executor, form));
  HDPS_RETURN_IF_ERROR(loaded->ReadShards(files, executor));
  if (loaded->model_->dense_floats() > 0) loaded->model_->SetDense(loaded->DenseWeights());
  return loaded;
}

Result<std::unique_ptr<CheckpointModel>> CheckpointModel::LoadWanted(
    FileSystem& files, const Job& job, const std::string& path, WhichCheckpoint which,
    Executor& executor, const WantedKeys& wanted) {
  const MemoryFor loading("one shard of the checkpoint (cluster.shards) and the rows of its items");
  HDPS_ASSIGN_OR_RETURN(const FoundCheckpoint found, OpenNamedCheckpoint(files, path, which));
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointModel> loaded,
                        Open(job, found, executor, RowForm::kFlat));
  if (IsServingFolder(found.manifest)) {
    return Status(Code::kInvalidArgument,
                  found.folder + " was exported for serving; give the checkpoint itself");
  }
  for (uint32_t s = 0; s < loaded->shards_.size(); ++s) {
    HDPS_RETURN_IF_ERROR(loaded->ReadWanted(files, {s}, wanted));
  }
  if (loaded->model_->dense_floats() > 0) loaded->model_->SetDense(loaded->DenseWeights());
  return loaded;
}

Status CheckpointModel::ReadShards(FileSystem& files, Executor& executor) {
  std::vector<Status> read(shards_.size());
  executor.ParallelFor(shards_.size(),
                       [&](size_t s) { read[s] = ReadShardAs(files, {static_cast<uint32_t>(s)}); });
  for (const Status& status : read) HDPS_RETURN_IF_ERROR(status);
  return Status();
}

Status CheckpointModel::ReadShardAs(FileSystem& files, ShardId id) {
  Shard& shard = shards_[id.value];
  const Manifest& manifest = checkpoint_.manifest;
  shard.flat = std::make_unique<FlatShard>(id, EmptySlices(job_, manifest, id));
  shard.rounded.resize(job_.tables.size());
  const auto mapped = std::ranges::find(manifest.files, FlatName(id), &SavedFile::name);
  if (mapped != manifest.files.end()) {
    return shard.flat->Map(
        files, checkpoint_.folder, *mapped,
        {manifest.tables_digest, id, manifest.num_shards, manifest.clock, kNoClock});
  }
  HDPS_RETURN_IF_ERROR(shard.flat->Load(files, checkpoint_.chain));
  if (form_ == RowForm::kInt8) RoundRows(&shard);
  return {};
}

Status CheckpointModel::CheckBuildsOn(const CheckpointPart& delta) const {
  const Manifest& manifest = delta.manifest;
  if (manifest.tables_digest != checkpoint_.manifest.tables_digest ||
      manifest.num_shards != checkpoint_.manifest.num_shards) {
    return {Code::kInvalidArgument, delta.folder + " is of another job ('" + manifest.job_name +
                                        "') than " + checkpoint_.folder + " ('" +
                                        checkpoint_.manifest.job_name + "')"};
  }
  if (manifest.base_clock != step_ || manifest.base_checksum != manifest_checksum_) {
    const std::string base = !manifest.is_delta()
                                 ? "has all rows"
                                 : "builds on step " + std::to_string(manifest.base_clock) +
                                       ", or on another of this step";
    return {Code::kInvalidArgument,
            delta.folder + " " + base + ": expected a delta on step " + std::to_string(step_)};
  }
  return {};
}

Status CheckpointModel::Apply(FileSystem& files, const CheckpointPart& delta, Executor& executor,
                              const DeltaHooks& hooks) {
  CHECK(form_ == RowForm::kFlat);
  const MemoryFor applying("the rows that a delta changes");
  HDPS_RETURN_IF_ERROR(CheckBuildsOn(delta));
  std::vector<Status> staged(shards_.size());
  executor.ParallelFor(shards_.size(),
                       [&](size_t s) { staged[s] = shards_[s].flat->Stage(files, delta); });
  const auto failed = std::ranges::find_if(staged, [](const Status& s) { return !s.ok(); });
  Status wanted = failed == staged.end() ? Status() : *failed;
  if (wanted.ok() && hooks.staged) {
    for (const Shard& shard : shards_) staged_.push_back(shard.flat->staged());
    staged_step_ = delta.manifest.clock;
    wanted = hooks.staged();
    staged_.clear();
  }
  if (!wanted.ok()) {
    for (Shard& shard : shards_) shard.flat->Discard();
    return wanted;
  }
  {
    WriterLock lock(rows_mutex_);
    for (Shard& shard : shards_) shard.flat->Publish();
    step_ = delta.manifest.clock;
    if (hooks.published) hooks.published();
  }
  manifest_checksum_ = ManifestChecksum(delta.manifest);
  for (Shard& shard : shards_) shard.flat->Settle();
  return {};
}

Status CheckpointModel::ReadWanted(FileSystem& files, ShardId id, const WantedKeys& wanted) {
  FlatShard all(id, EmptySlices(job_, checkpoint_.manifest, id));
  HDPS_RETURN_IF_ERROR(all.Load(files, checkpoint_.chain));
  Shard& shard = shards_[id.value];
  shard.flat = std::make_unique<FlatShard>(id, EmptySlices(job_, checkpoint_.manifest, id));
  shard.rounded.resize(job_.tables.size());
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    const FlatRows& rows = all.rows({t});
    std::vector<Key> keys;
    std::vector<float> weights, row(rows.dim());
    const std::span<const Key> of_wanted = wanted.Of({t});
    const std::vector<Key> sought = job_.tables[t].dense
                                        ? DenseKeys(model_->tensors())
                                        : std::vector<Key>(of_wanted.begin(), of_wanted.end());
    const std::vector<const FlatRows*> of(sought.size(), &rows);
    FlatRows::ForEachFound(of, sought, [&](size_t k, const std::byte* found) {
      if (found == nullptr) return;
      rows.ReadWeightsOf(found, row);
      keys.push_back(sought[k]);
      weights.insert(weights.end(), row.begin(), row.end());
    });
    HDPS_RETURN_IF_ERROR(shard.flat->Add({t}, keys, weights));
  }
  return {};
}

void CheckpointModel::RoundRows(Shard* shard) const {
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    const FlatRows& rows = shard->flat->rows({t});
    const size_t saved_bytes = WeightBytes(rows.format(), rows.dim());
    if (job_.tables[t].dense || Int8Rows::RowBytes(rows.dim()) >= saved_bytes) continue;
    shard->rounded[t] = Int8Rows::Of(rows);
    shard->flat->Clear({t});
  }
}

std::vector<uint64_t> CheckpointModel::RowsOfTables() const {
  ReaderLock lock(rows_mutex_);
  std::vector<uint64_t> rows(job_.tables.size());
  for (const Shard& shard : shards_) {
    for (uint32_t t = 0; t < rows.size(); ++t) rows[t] += shard.NumRows({t});
  }
  return rows;
}

std::vector<CheckpointModel::RowBytes> CheckpointModel::BytesOfTables() const {
  const std::vector<uint64_t> rows = RowsOfTables();
  std::vector<RowBytes> bytes;
  for (size_t t = 0; t < rows.size(); ++t) {
    const uint32_t dim = job_.tables[t].slice_dim();
    const uint64_t saved = rows[t] * WeightBytes(job_.tables[t].weights, dim);
    const bool rounded =
        form_ == RowForm::kInt8 && !shards_.empty() && shards_[0].rounded[t] != nullptr;
    bytes.push_back({rounded ? rows[t] * Int8Rows::RowBytes(dim) : saved, saved});
  }
  return bytes;
}

}  // namespace hdps
