// A checkpoint with the job that wrote it, for the commands that look into one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "embedding/snapshot/snapshot.h"

namespace hdps {

// Can be read shard by shard.
struct OpenedCheckpoint {
  FoundCheckpoint found;
  Job job;
  bool job_known = true;  // Not of one whose layers or optimizers only another program has.
};

// As OpenCheckpoint, which has verified every file. kCorruption when its job has other tables than
// its files, kInvalidArgument when this program does not know the job's layers or optimizers.
Result<OpenedCheckpoint> OpenWithJob(FileSystem& files, const std::string& path,
                                     WhichCheckpoint which);
// The same, but a full checkpoint tells its tables also without the job: a warning says so.
Result<OpenedCheckpoint> OpenToInspect(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which);

// Tables in the order of the job, each the sum over all shards. Everything that the files say is
// checked against the manifest and the job.
Result<std::vector<SnapshotSummary::Table>> SumOverShards(FileSystem& files,
                                                          const OpenedCheckpoint& from);

}  // namespace hdps
