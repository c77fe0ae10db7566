// Gives the batches of a job's data to a program that has a model of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/step/batch_stream.h"

namespace hdps {

class ItemPool;
class RowCaches;

inline constexpr const char* kTrainedName = "train";  // For the rows that the job trains on.

// Names rows of a job's data, and a place in them.
struct DataPart {
  std::string set = kTrainedName;  // Or an evaluation set by its name, as in EvalSetsOf().
  uint32_t rank = 0, workers = 1;  // The rows of this worker.
  uint32_t epoch = 0;              // The order of the rows of kTrainedName depends on it.
  uint64_t skip_steps = 0;         // Steps of the epoch before the first batch.
};

// Reads a job's data as its workers do.
//
// Invariant: the batches of a part are those that the worker of that rank trains on in the epoch,
// or scores in an evaluation.
//
// Used by one thread at a time.
class JobData {
 public:
  // Requires: the references outlive it, `executor` may be null; see PipelineOptions.
  JobData(Job job, FileSystem& files, MonotonicClock& clock, Executor* executor);
  ~JobData();

  const Job& job() const { return job_; }
  // Starts to read. The stream must not outlive this object. Errors: kInvalidArgument for a set
  // that the job lacks, a rank that is none, files that are missing, and first rows that do not fit
  // the job (PreviewData()), whose likely mistakes go to the log, once for each set.
  Result<std::unique_ptr<BatchStream>> Read(const DataPart& part);

 private:
  Status Look(const DataPart& part, const std::vector<std::string>& paths);

  Job job_;
  FileSystem& files_;
  MonotonicClock& clock_;
  Executor* const executor_;
  std::set<std::string> seen_;       // Sets whose first rows were looked at.
  std::shared_ptr<RowCaches> rows_;  // Of parsed rows, for later epochs.
  std::shared_ptr<ItemPool> items_;  // Made once; null: no negative examples are made.
};

}  // namespace hdps
