// Finds the job, the data and the vocabulary that a checkpoint is used with, without its rows.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/job/job_spec.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "tools/common_flags.h"

namespace hdps {

// A job and its source as messages name it.
struct ReadJob {
  Job job;
  std::string origin;
};
// Returns the job of --job, which need not have its data, or else that of the checkpoint; both with
// the overrides of the flags. `found` is the checkpoint if it is open already.
Result<ReadJob> JobOf(const CommonFlags& flags, FileSystem& files,
                      const FoundCheckpoint* found = nullptr);

// Returns the files of --data, or of the set of the job that the flags name. All of them exist.
Result<EvalSet> FindData(const CommonFlags& flags, const ReadJob& read, FileSystem& files);

// Reads the job's vocabulary: the checkpoint's copy, so that a checkpoint is enough to score rows,
// or else the file that the job names.
Status LoadVocabularyOf(const std::string& origin, const FoundCheckpoint& checkpoint,
                        FileSystem& files, DataSpec* data);

// Checks that the checkpoint has the tables of `job`, and cuts them over the shards as those of the
// checkpoint are: rows are read where they were saved. Errors: kInvalidArgument if it belongs to
// another job.
Status FitToCheckpoint(const FoundCheckpoint& found, Job* job);

}  // namespace hdps
