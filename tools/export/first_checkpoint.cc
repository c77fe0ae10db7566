// Fills the slices of one shard after the other, and lets the catalog of checkpoints make them one.
#include "tools/export/first_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/memory_full.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "tools/export/shard_rows.h"
#include "tools/export/trained_tables.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/dense/dense_state.h"

namespace hdps {
namespace {

std::string RootOf(const std::string& out) { return JoinPath(out, "checkpoint"); }

// Appends the dense weights, taken and initial ones, as rows.
Result<std::vector<TakenTensor>> TakeDenseRows(const Job& job, TableId table, Executor& executor,
                                               TrainedTensors* tensors, ShardRows* rows) {
  Job here = job;
  here.model.device = "cpu";
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(here, executor));
  std::vector<float> flat = model->InitialDense(job.seed);
  HDPS_ASSIGN_OR_RETURN(std::vector<TakenTensor> lines, TakeDense(model->tensors(), tensors, flat));
  HDPS_RETURN_IF_ERROR(rows->BeginGroup(table).status());
  HDPS_RETURN_IF_ERROR(rows->Append(DenseKeys(model->tensors()), flat));
  return lines;
}

// Prints the lines as a table, and the tensors that nothing of the job has the name of.
void Print(const std::vector<TakenTensor>& taken, const std::vector<std::string>& unused,
           std::ostream& to) {
  const std::vector<TakenLine> lines(taken.begin(), taken.end());
  for (const std::string& text : TakenText(lines)) to << text << "\n";
  for (const std::string& name : unused) {
    to << EscapeUntrusted(name) << ": nothing of the job has this name\n";
  }
}

// Appends what --init=`folder` has for the job, and returns a line for each table and tensor.
Result<std::vector<TakenTensor>> TakeAll(const Job& job, const std::string& folder,
                                         TrainedTensors* tensors, Executor& executor,
                                         ShardRows* rows, std::ostream& to) {
  std::vector<TakenTensor> lines;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<TakenTensor> more,
                          job.tables[t].dense ? TakeDenseRows(job, {t}, executor, tensors, rows)
                                              : TakeTable(job, {t}, tensors, rows));
    lines.insert(lines.end(), more.begin(), more.end());
  }
  HDPS_RETURN_IF_ERROR(rows->Finish());
  if (std::ranges::any_of(lines, &TakenTensor::taken)) return lines;
  Print(lines, tensors->Unused(), to);
  return Status(Code::kInvalidArgument, "--init=" + folder +
                                            ": nothing of it fits this job; expected tensors named "
                                            "as its tables and layers, and as wide");
}

// Writes the shards into `place`, one by one, and prints what was taken.
Result<Manifest> WriteShards(FileSystem& files, const Job& job, const std::string& place,
                             const std::string& folder, TrainedTensors* tensors, Executor& executor,
                             std::ostream& to) {
  ShardRows rows(files, JoinPath(place, "rows"), job);
  HDPS_ASSIGN_OR_RETURN(std::vector<TakenTensor> lines,
                        TakeAll(job, folder, tensors, executor, &rows, to));
  Manifest manifest;
  manifest.num_shards = job.cluster.shards;
  for (uint32_t s = 0; s < manifest.num_shards; ++s) {
    std::vector<TableSlice> slices = EmptySlices(job, manifest, {s});
    HDPS_RETURN_IF_ERROR(rows.StoreInto(s, &slices));
    std::vector<const TableSlice*> tables;
    for (const TableSlice& slice : slices) tables.push_back(&slice);
    const SnapshotHeader header{TablesDigest(job), {s}, manifest.num_shards, 0, kNoClock};
    HDPS_ASSIGN_OR_RETURN(const SavedFile saved, WriteSnapshot(files, place, header, tables));
    manifest.files.push_back(saved);
  }
  for (TakenTensor& line : lines) {
    const uint64_t again = line.group ? rows.Repeats(*line.group) : 0;
    if (again == 0) continue;
    line.result += "; of keys that come again the last of the rows, instead of " +
                   std::to_string(again) + " others";
  }
  Print(lines, tensors->Unused(), to);
  return manifest;
}

}  // namespace

bool HoldsTensors(FileSystem& files, const std::string& folder) {
  const Result<std::vector<std::string>> names = files.List(folder);
  return names.ok() && std::ranges::any_of(*names, IsTensorFile);
}

bool HasCheckpoint(FileSystem& files, const std::string& out) {
  const Result<std::vector<std::string>> names = files.List(RootOf(out));
  return names.ok() && std::ranges::any_of(*names, [&](const std::string& name) {
           return files.Exists(JoinPath(JoinPath(RootOf(out), name), kManifestName));
         });
}

Status WriteFirstCheckpoint(FileSystem& files, const std::shared_ptr<const Job>& job,
                            const std::string& folder, const std::string& out, Executor& executor,
                            std::ostream& to) {
  const MemoryFor reading("one shard of the rows of --init (cluster.shards)");
  HDPS_ASSIGN_OR_RETURN(TrainedTensors tensors, TrainedTensors::Open(files, folder));
  CheckpointCatalog catalog(files, RootOf(out), job, Resume::kAuto);
  HDPS_ASSIGN_OR_RETURN(const std::string place, catalog.Prepare(0, 0));
  Result<Manifest> manifest = WriteShards(files, *job, place, folder, &tensors, executor, to);
  if (manifest.ok()) return catalog.Commit(*std::move(manifest));
  catalog.Discard(0);
  return manifest.status();
}

}  // namespace hdps
