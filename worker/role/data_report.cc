// Looks at data files, and keeps the changes that have not been reported.
#include "worker/role/data_report.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/job/data_paths.h"
#include "common/job/job_spec.h"
#include "common/job/kafka/kafka_entry.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/batch_reader.h"

namespace hdps {

DataReport::DataReport(const Job& job, FileSystem& files)
    : job_(job),
      files_(files),
      training_(files, ReadsTopic(job.data) ? std::vector<std::string>() : job.data.train) {}

void DataReport::LookAtTraining(const std::string& then) {
  if (!job_.data.follow) Note(training_, then);
}

std::vector<FilePrint> DataReport::TrainingPrints() {
  if (!job_.data.follow) return training_.Prints();
  const Result<std::vector<std::string>> paths = TrainingFiles(files_, job_.data);
  std::vector<FilePrint> prints;
  for (size_t i = 0; paths.ok() && i < std::min(paths->size(), kFilePrintsMax); ++i) {
    prints.push_back(GrowingPrintOf(files_, (*paths)[i]));
  }
  return prints;
}

void DataReport::LookAtEvalSet(const EvalSet& set, const std::string& then) {
  Note(eval_sets_.try_emplace(set.name, files_, set.files).first->second, then);
}

void DataReport::Note(DataWatch& files, const std::string& then) {
  const std::string change = files.Look(then);
  if (change.empty()) return;
  LOG(WARNING) << "data: " << change;
  changes_ += (changes_.empty() ? "" : "; ") + change;
}

std::string DataReport::TakeChanges() { return std::exchange(changes_, std::string()); }

Result<uint64_t> DataReport::RowsOfEpoch() {
  if (!rows_of_epoch_) {
    const ReaderOptions reading{.seed = job_.seed, .side = RowSide::kTrained};
    HDPS_ASSIGN_OR_RETURN(rows_of_epoch_, CountRows(files_, job_.data, job_.data.train, reading));
  }
  return *rows_of_epoch_;
}

}  // namespace hdps
