// What answers of workers tell beside what they were asked for: their processors and their data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "scheduler/job_record.h"
#include "scheduler/report/label_watch.h"

namespace hdps {

struct Job;

// Invariant: each thing that an operator should look at is said once.
class WorkerFacts {
 public:
  using Say = std::function<void(const std::string&)>;
  WorkerFacts(const Job& job, Say notice, Say warn);

  void Learn(const CommandDone& done, JobRecord* record);
  // Of an epoch, as worker 0 has counted them where it was to.
  void KnowEpochRows(uint64_t rows, JobRecord* record);
  void KnowTraining(PeerId worker, const CommandDone& done);
  void KnowLabelsTrained(const LabelTally& labels, bool end_of_epoch);
  void KnowLabelsEvaluated(const LabelTally& labels);

  // What the workers so far compute with.
  const std::set<std::string>& arithmetic() const { return arithmetic_; }
  // Of the worker with the most, each.
  CollectiveTally MostOfCollectives() const;

 private:
  void WarnOfDevice(const std::string& arithmetic);
  void Warn(const std::vector<std::string>& lines);

  const Job& job_;
  const Say notice_, warn_;
  std::set<std::string> arithmetic_;
  std::set<std::string> told_changes_;             // Of files.
  std::map<PeerId, CollectiveTally> collectives_;  // The newest of each.
  LabelWatch labels_;
};

}  // namespace hdps
