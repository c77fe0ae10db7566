// Turns what workers report of themselves into notices and warnings.
#include "scheduler/phases/worker_facts.h"

#include <utility>

#include "common/base/enum_words.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/precision.h"
#include "common/job/spec/train_spec.h"

namespace hdps {

WorkerFacts::WorkerFacts(const Job& job, Say notice, Say warn)
    : job_(job), notice_(std::move(notice)), warn_(std::move(warn)), labels_(job) {}

void WorkerFacts::Warn(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) warn_(line);
}

void WorkerFacts::Learn(const CommandDone& done, JobRecord* record) {
  if (!done.arithmetic.empty()) {  // Otherwise it is a server's.
    if (arithmetic_.insert(done.arithmetic).second) WarnOfDevice(done.arithmetic);
    record->summary.dense_rows = done.dense_rows;
    record->summary.dense_parameters = done.dense_parameters;
  }
  if (!done.data_files.empty()) record->data_files = done.data_files;
  // Every worker that reads the file reports the change.
  if (!done.data_changes.empty()) WarnOnce("data: " + done.data_changes);
}

void WorkerFacts::WarnOnce(const std::string& line) {
  if (warned_.insert(line).second) warn_(line);
}

void WorkerFacts::SetEpochRows(uint64_t rows, JobRecord* record) {
  if (job_.train.evals_per_epoch == 0) return;
  if (rows == 0 || rows == record->epoch_rows) return;
  record->epoch_rows = rows;
  notice_("an epoch has " + ShowWhole(static_cast<double>(rows)) + " rows; it is evaluated " +
          std::to_string(job_.train.evals_per_epoch) + " times");
}

void WorkerFacts::KnowTraining(PeerId worker, const CommandDone& done) {
  collectives_[worker] = done.collectives;
}

void WorkerFacts::KnowLabelsTrained(const LabelTally& labels, bool end_of_epoch) {
  Warn(labels_.Trained(labels, end_of_epoch));
}

void WorkerFacts::KnowLabelsEvaluated(const LabelTally& labels) { Warn(labels_.Evaluated(labels)); }

CollectiveTally WorkerFacts::MostOfCollectives() const {
  CollectiveTally most;
  for (const auto& [worker, tally] : collectives_) most.TakeMost(tally);
  return most;
}

// Warns about settings without effect on a worker that computes with `arithmetic`.
void WorkerFacts::WarnOfDevice(const std::string& arithmetic) {
  const bool on_cpu = !arithmetic.starts_with("cuda");
  for (const std::string& place : CudaTargetsOf(job_.model)) {
    if (!on_cpu) break;
    warn_(place + " = cuda has no effect: a worker computes on a CPU (" + arithmetic + ")");
  }
  const std::string precision(WordOf(job_.model.precision));
  if (job_.model.precision == Precision::kFp32 || arithmetic.find(precision) != std::string::npos) {
    return;
  }
  warn_("model.precision = " + precision + " has no effect at a worker that computes in fp32 (" +
        arithmetic + ")");
}

}  // namespace hdps
