// Checks manifest, job and files of a checkpoint against each other.
#include "tools/checkpoints/opened_checkpoint.h"

#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/process/terminal.h"
#include "embedding/table.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

// Summarizes one shard of a checkpoint; keeps no rows if the checkpoint is full.
Result<SnapshotSummary> SummarizeShard(FileSystem& files, const OpenedCheckpoint& from,
                                       const SavedFile& saved, uint32_t shard) {
  const Manifest& manifest = from.found.manifest;
  if (from.found.chain.size() == 1) {
    const SnapshotHeader expected{
        manifest.tables_digest, {shard}, manifest.num_shards, manifest.clock, kNoClock};
    if (!from.job_known) {
      return SummarizeSnapshot(files, from.found.folder, saved, expected, nullptr);
    }
    std::vector<TableSlice> empty = EmptySlices(from.job, manifest, {shard});
    std::vector<TableSlice*> tables;
    for (TableSlice& slice : empty) tables.push_back(&slice);
    return SummarizeSnapshot(files, from.found.folder, saved, expected, &tables);
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<TableSlice> slices,
                        ReadShard(files, from.found, from.job, {shard}));
  SnapshotSummary summary;
  for (const TableSlice& slice : slices) {
    HDPS_ASSIGN_OR_RETURN(const RowsDigest digest, slice.Digest());
    summary.tables.push_back(
        {slice.spec().name, slice.dim(), slice.state_floats(), digest, /*erased=*/0});
  }
  return summary;
}

// Opens a checkpoint with its job; `tell` says which of several is taken.
Result<OpenedCheckpoint> OpenAndTell(FileSystem& files, const std::string& path,
                                     WhichCheckpoint which,
                                     void (*tell)(const FoundCheckpoint& found)) {
  OpenedCheckpoint opened;
  HDPS_ASSIGN_OR_RETURN(opened.found, OpenNamedCheckpoint(files, path, which));
  tell(opened.found);
  const Manifest& manifest = opened.found.manifest;
  const std::string place = JoinPath(opened.found.folder, kManifestName);
  HDPS_ASSIGN_OR_RETURN(opened.job, ParseJob(manifest.job_json, place, {}));
  if (TablesDigest(opened.job) != manifest.tables_digest) {
    return Status(Code::kCorruption, place + ": its job has other tables than the checkpoint");
  }
  return opened;
}

}  // namespace

Result<OpenedCheckpoint> OpenWithJob(FileSystem& files, const std::string& path,
                                     WhichCheckpoint which) {
  return OpenAndTell(files, path, which, TellWhichIsTaken);
}

Result<OpenedCheckpoint> OpenToInspect(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which) {
  Result<OpenedCheckpoint> opened = OpenAndTell(files, path, which, WarnUnlessNewest);
  if (opened.ok() || opened.status().code() != Code::kInvalidArgument) return opened;
  OpenedCheckpoint unknown;
  HDPS_ASSIGN_OR_RETURN(unknown.found, OpenNamedCheckpoint(files, path, which));
  if (unknown.found.chain.size() > 1) return opened;
  unknown.job_known = false;
  PrintError("warning: %s; tables are as the files tell\n",
             EscapeUntrusted(opened.status().message()).c_str());
  return unknown;
}

Result<std::vector<SnapshotSummary::Table>> SumOverShards(FileSystem& files,
                                                          const OpenedCheckpoint& from) {
  const FoundCheckpoint& found = from.found;
  std::vector<SnapshotSummary::Table> tables;
  for (uint32_t shard = 0; shard < found.manifest.files.size(); ++shard) {
    const SavedFile& saved = found.manifest.files[shard];
    HDPS_ASSIGN_OR_RETURN(const SnapshotSummary summary, SummarizeShard(files, from, saved, shard));
    if (tables.empty()) {
      tables = summary.tables;
      continue;
    }
    if (summary.tables.size() != tables.size()) {
      return Status(Code::kCorruption,
                    found.folder + "/" + saved.name + ": " + std::to_string(summary.tables.size()) +
                        " tables, other shards have " + std::to_string(tables.size()));
    }
    for (size_t t = 0; t < tables.size(); ++t) tables[t].digest.Add(summary.tables[t].digest);
  }
  return tables;
}

}  // namespace hdps
