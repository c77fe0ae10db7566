// Reports a worker's data files to the scheduler: their fingerprints, and changes during the job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest_parts.h"
#include "worker/data/whole_files/data_watch.h"

namespace hdps {

struct Job;

// Invariant: each change of a file is logged and reported once, in the order of discovery.
//
// Belongs to the trainer's thread.
class DataReport {
 public:
  // Requires: both outlive it.
  DataReport(const Job& job, FileSystem& files);

  // Look for changes since the last look; `then` tells the operator the consequence. A followed log
  // is looked at by its reader.
  void LookAtTraining(const std::string& then);
  void LookAtEvalSet(const EvalSet& set, const std::string& then);
  // Returns the changes that were found since the last call, for the next answer; empty if none.
  std::string TakeChanges();

  // Returns the files of data.train as they are now; of a followed log, prints that stay while
  // files grow.
  std::vector<FilePrint> TrainingPrints();
  // Keeps the files' present state, in which the current epoch reads them.
  void MarkOpened() { opened_ = TrainingPrints(); }
  const std::vector<FilePrint>& opened() const { return opened_; }
  // Returns the number of rows in an epoch, over all workers; they are counted in the first call.
  Result<uint64_t> RowsOfEpoch();

 private:
  void Note(DataWatch& files, const std::string& then);

  const Job& job_;
  FileSystem& files_;
  DataWatch training_;
  std::map<std::string, DataWatch> eval_sets_;  // By name; sets that were looked at.
  std::vector<FilePrint> opened_;
  std::string changes_;  // Changes that are not reported yet.
  std::optional<uint64_t> rows_of_epoch_;
};

}  // namespace hdps
