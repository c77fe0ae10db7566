// The checkpoint of another job with whose rows a new job begins (--init).
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/tables/init_match.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

inline constexpr const char* kInitHelp =
    "Checkpoint of another job, or the --out of its run, with whose rows and dense weights a run "
    "without a checkpoint begins (docs/how_to/resume.md)";

struct InitSource {
  std::string folder, job_name;
  Clock clock = 0;
  InitMatch match;
  // Steps that a table's state of lazy Adam has seen; 0 if no such state is taken.
  Clock steps_before = 0;
};

// Opens `path` as OpenCheckpoint() does, after reading and comparing every file of it. Errors:
// kInvalidArgument if there is no checkpoint, or one that this program cannot read; kCorruption if
// it is damaged.
Result<InitSource> FindInit(FileSystem& files, const std::string& path, const Job& job);
// Reads again what fits, without the files of rows. Errors as ReadManifest().
Result<InitSource> ReadInit(FileSystem& files, const std::string& folder, const Job& job);

// Returns the path as members of any working folder find it; empty stays empty.
std::string WholeInitPath(const std::string& path);

}  // namespace hdps
