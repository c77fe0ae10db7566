// Fills slices as servers have them and lets the catalog of checkpoints make them one.
#include "tools/export/first_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/base/shard_map.h"
#include "common/job/job_file.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "tools/export/trained_tables.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/dense/dense_state.h"

namespace hdps {
namespace {

std::string RootOf(const std::string& out) { return JoinPath(out, "checkpoint"); }

// Stores the dense weights, taken and initial ones, as rows.
Result<std::vector<TakenTensor>> StoreDense(const Job& job, Executor& executor,
                                            TrainedTensors* tensors,
                                            std::vector<std::vector<TableSlice>>* slices) {
  Job here = job;
  here.model.device = "cpu";
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(here, executor));
  std::vector<float> flat = model->InitialDense(job.seed);
  HDPS_ASSIGN_OR_RETURN(std::vector<TakenTensor> lines, TakeDense(model->tensors(), tensors, flat));
  const std::vector<Key> keys = DenseKeys(model->tensors());
  const auto num_shards = static_cast<uint32_t>(slices->size());
  const size_t dense = job.tables.size() - 1;
  for (size_t k = 0; k < keys.size(); ++k) {
    const uint32_t shard = ShardOf(keys[k], job.tables[dense].shard_by, num_shards).value;
    (*slices)[shard][dense].Store(
        std::span(&keys[k], 1), kDenseChunkFloats,
        std::span(flat).subspan(k * kDenseChunkFloats, kDenseChunkFloats));
  }
  return lines;
}

// Prints the lines as a table, and the tensors that nothing of the job has the name of.
void Print(const std::vector<TakenTensor>& lines, const std::vector<std::string>& unused,
           std::ostream& to) {
  std::vector<size_t> widths(3);
  const auto cells = [](const TakenTensor& line) {
    return std::vector<std::string>{EscapeUntrusted(line.name), line.of_job, line.of_files};
  };
  for (const TakenTensor& line : lines) {
    for (size_t c = 0; c < 3; ++c) widths[c] = std::max(widths[c], cells(line)[c].size());
  }
  for (const TakenTensor& line : lines) {
    for (size_t c = 0; c < 3; ++c) {
      const std::string cell = cells(line)[c];
      to << cell << std::string(widths[c] - cell.size() + 2, ' ');
    }
    to << line.result << "\n";
  }
  for (const std::string& name : unused) {
    to << EscapeUntrusted(name) << ": nothing of the job has this name\n";
  }
}

}  // namespace

bool HasCheckpoint(FileSystem& files, const std::string& out) {
  const Result<std::vector<std::string>> names = files.List(RootOf(out));
  return names.ok() && std::ranges::any_of(*names, [&](const std::string& name) {
           return files.Exists(JoinPath(JoinPath(RootOf(out), name), kManifestName));
         });
}

Status WriteFirstCheckpoint(FileSystem& files, const std::shared_ptr<const Job>& job,
                            const std::string& folder, const std::string& out, Executor& executor,
                            std::ostream& to) {
  const MemoryFor reading("the rows of --init");
  HDPS_ASSIGN_OR_RETURN(TrainedTensors tensors, TrainedTensors::Open(files, folder));
  Manifest manifest;
  manifest.num_shards = job->cluster.shards;
  std::vector<std::vector<TableSlice>> slices;  // [shards][tables]
  for (uint32_t s = 0; s < manifest.num_shards; ++s) {
    slices.push_back(EmptySlices(*job, manifest, {s}));
  }
  std::vector<TakenTensor> lines;
  for (uint32_t t = 0; t < job->tables.size(); ++t) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<TakenTensor> more,
                          job->tables[t].dense ? StoreDense(*job, executor, &tensors, &slices)
                                               : TakeTable(*job, {t}, &tensors, &slices));
    lines.insert(lines.end(), more.begin(), more.end());
  }
  Print(lines, tensors.Unused(), to);
  if (std::ranges::none_of(lines, &TakenTensor::taken)) {
    return {Code::kInvalidArgument,
            "--init=" + folder +
                ": nothing of it fits this job; expected tensors named as its "
                "tables and layers, and as wide"};
  }
  CheckpointCatalog catalog(files, RootOf(out), job, Resume::kAuto);
  HDPS_ASSIGN_OR_RETURN(const std::string place, catalog.Prepare(0, 0));
  for (uint32_t s = 0; s < manifest.num_shards; ++s) {
    std::vector<const TableSlice*> tables;
    for (const TableSlice& slice : slices[s]) tables.push_back(&slice);
    const SnapshotHeader header{TablesDigest(*job), {s}, manifest.num_shards, 0, kNoClock};
    HDPS_ASSIGN_OR_RETURN(const SavedFile saved, WriteSnapshot(files, place, header, tables));
    manifest.files.push_back(saved);
    slices[s].clear();
  }
  return catalog.Commit(std::move(manifest));
}

}  // namespace hdps
