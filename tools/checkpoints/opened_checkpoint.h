// Opens a checkpoint together with the job that wrote it, for the commands that look into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "embedding/snapshot/snapshot.h"

namespace hdps {

// A verified checkpoint and its job. Its shards are read one by one.
struct OpenedCheckpoint {
  FoundCheckpoint found;
  Job job;
  // Is false if only another program has some of the job's layers or optimizers.
  bool job_known = true;
};

// Opens a checkpoint as OpenCheckpoint does, which verifies every file. Returns kCorruption if its
// job has other tables than its files, and kInvalidArgument if this program lacks some of the job's
// layers or optimizers.
Result<OpenedCheckpoint> OpenWithJob(FileSystem& files, const std::string& path,
                                     WhichCheckpoint which);
// Does the same, but shows the tables of a full checkpoint even if the job cannot be read, and then
// prints a warning.
Result<OpenedCheckpoint> OpenToInspect(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which);

// Sums each table over all shards, in the order of the job's tables. Checks everything that the
// files say against the manifest and the job.
Result<std::vector<SnapshotSummary::Table>> SumOverShards(FileSystem& files,
                                                          const OpenedCheckpoint& from);

}  // namespace hdps
