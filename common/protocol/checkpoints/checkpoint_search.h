// Finds the checkpoints of a run for those who follow them; manifest.h opens them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns the folder in which OpenCheckpoint looks for checkpoints: `path`, or `path`/checkpoint if
// that exists. `path` is not a checkpoint's own folder.
std::string CheckpointRoot(FileSystem& files, const std::string& path);

// Returns the clock in the name of a checkpoint's folder; nothing for another folder.
std::optional<Clock> ClockOfName(const std::string& name);

// Returns the clocks of the checkpoints under `root`, newest first, with those that are not
// finished; empty if there is no such folder.
std::vector<Clock> ClocksUnder(FileSystem& files, const std::string& root);

}  // namespace hdps
