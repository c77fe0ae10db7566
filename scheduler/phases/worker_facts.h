// Collects what workers report besides their results: their processors, their data and their
// collectives.
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

// Invariant: each warning is given once.
class WorkerFacts {
 public:
  using Say = std::function<void(const std::string&)>;
  WorkerFacts(const Job& job, Say notice, Say warn);

  void Learn(const CommandDone& done, JobRecord* record);
  // Takes the number of rows in an epoch from worker 0, which was asked to count them.
  void SetEpochRows(uint64_t rows, JobRecord* record);
  void WarnOnce(const std::string& line);
  void KnowTraining(PeerId worker, const CommandDone& done);
  void KnowLabelsTrained(const LabelTally& labels, bool end_of_epoch);
  void KnowLabelsEvaluated(const LabelTally& labels);

  // The kinds of arithmetic that workers have reported.
  const std::set<std::string>& arithmetic() const { return arithmetic_; }
  // Returns the tally of the worker with the largest value, for each field.
  CollectiveTally MostOfCollectives() const;

 private:
  void WarnOfDevice(const std::string& arithmetic);
  void Warn(const std::vector<std::string>& lines);

  const Job& job_;
  const Say notice_, warn_;
  std::set<std::string> arithmetic_;
  std::set<std::string> warned_;                   // Lines of WarnOnce().
  std::map<PeerId, CollectiveTally> collectives_;  // The newest tally of each worker.
  LabelWatch labels_;
};

}  // namespace hdps
