// What a worker tells the scheduler of the data files: what they are, and what becomes of them.
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

// Invariant: each change of a file is logged and told once, in the order in which it was seen.
//
// Belongs to the trainer's thread.
class DataReport {
 public:
  // Both outlive it.
  DataReport(const Job& job, FileSystem& files);

  // Looks for what has changed since the last look; `then`: what follows from it.
  void LookAtTraining(const std::string& then);
  void LookAtEvalSet(const EvalSet& set, const std::string& then);
  // For the next answer: what was seen since the last one, or nothing.
  std::string TakeChanges();

  // The files of data.train as they are now.
  std::vector<FilePrint> TrainingPrints() { return training_.Prints(); }
  // The same at the last call of MarkOpened(): as the epoch at hand reads them.
  void MarkOpened() { opened_ = training_.Prints(); }
  const std::vector<FilePrint>& opened() const { return opened_; }
  // The rows of an epoch, of all workers; they are counted the first time.
  Result<uint64_t> RowsOfEpoch();

 private:
  void Note(DataWatch& files, const std::string& then);

  const Job& job_;
  FileSystem& files_;
  DataWatch training_;
  std::map<std::string, DataWatch> eval_sets_;  // By name, of those that were looked at.
  std::vector<FilePrint> opened_;
  std::string changes_;  // Not told yet.
  std::optional<uint64_t> rows_of_epoch_;
};

}  // namespace hdps
