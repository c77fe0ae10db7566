// Begins a run from tables and layers that were trained before: writes its checkpoint of step 0.
#pragma once

#include <memory>
#include <ostream>
#include <string>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"

namespace hdps {

// Is true if the run in the folder `out` has a checkpoint, from which it would go on.
bool HasCheckpoint(FileSystem& files, const std::string& out);

// Is true if a folder has safetensors files to begin with.
bool HoldsTensors(FileSystem& files, const std::string& folder);

// Makes the checkpoint of step 0 of the run in `out`, from which any number of servers then begins
// as from any other. Rows and dense tensors are those of the safetensors files in `folder`, as far
// as names and forms match (see TakeTable); all else is as in a run without it. Prints to `to` what
// was taken and what was not. Needs the memory of one shard and of ShardRows, and the disk for all
// rows twice. Errors: kInvalidArgument if nothing was taken; then, and after any error, there is no
// checkpoint.
Status WriteFirstCheckpoint(FileSystem& files, const std::shared_ptr<const Job>& job,
                            const std::string& folder, const std::string& out, Executor& executor,
                            std::ostream& to);

}  // namespace hdps
