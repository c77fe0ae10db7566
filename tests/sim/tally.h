// Rows as tallies: what a cluster may answer and must hold, known without looking into it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "embedding/table.h"

namespace hdps::sim {

// Which rows a step touches. Every step of a worker adds one to the tally of each of them; float j
// of a row is (j + 1) times its tally. Rows of SGD with rate 1 from zero, so all sums are exact.
//   table 0 (dim 1): shared keys, which every worker counts up in every step;
//   table 1 (dim 3): own keys, one a worker, and one fresh key for each (worker, step). Where rows
//     leave, the fresh key of a step comes again a few steps after it has left.
inline constexpr uint32_t kSharedKeys = 6;
inline constexpr uint32_t kDims[2] = {1, 3};
// `rows_leave`: those of table 1 without an update for kLeaveAfterSteps.
std::vector<TableSpec> TallyTables(bool rows_leave);
inline constexpr uint64_t kLeaveAfterSteps = 3;
inline constexpr Clock kFreshAgainSteps = 6;
std::vector<Key> SharedKeys();
Key OwnKey(uint32_t worker);
Key FreshKey(uint32_t worker, Clock clock, bool rows_leave);

// How many workers made each step of what counts in the end.
//
// Invariant: a step was made by the workers of ranks 0 .. n-1.
class StepHistory {
 public:
  explicit StepHistory(uint32_t workers) { workers_from_[0] = workers; }
  // All stand at `clock`, and go on from there as so many.
  void GoOn(Clock clock, uint32_t workers) {
    workers_from_.erase(workers_from_.lower_bound(clock), workers_from_.end());
    workers_from_[clock] = workers;
  }
  uint32_t WorkersAt(Clock clock) const {
    return std::prev(workers_from_.upper_bound(clock))->second;
  }
  // How many of the steps before `clock` the worker of this rank has made; `rows_leave`: since its
  // own row has left, where it was away for so long.
  Clock StepsOf(uint32_t worker, Clock clock, bool rows_leave = false) const;
  uint32_t workers_max() const;

 private:
  std::map<Clock, uint32_t> workers_from_;
};

struct TallyOptions {
  Mode mode = Mode::kSync;
  Clock staleness_bound = 0;
  uint32_t num_workers = 1;  // At the beginning.
  bool rows_leave = false;   // As in TallyTables().
  // Of other workers a read need not hold more than the mode promises: whoever has not heard that
  // a primary was replaced may be answered by it.
  bool owner_may_be_replaced = false;
};

inline constexpr uint32_t kTalliedWorkersMax = 8;

// Watches from outside what each worker has pushed and read.
//
// Invariant: started(w) >= acknowledged(w); both only grow.
class Tally {
 public:
  explicit Tally(const TallyOptions& options);

  // The job has gone back so often, and what is done as if it had not counts no more: neither here
  // nor, in the end, in the rows.
  void WentBack(uint32_t restarts) { restarts_ = std::max(restarts_, restarts); }
  bool Counts(uint32_t restarts) const { return restarts == restarts_; }

  void PushStarted(uint32_t worker) { ++started_[worker]; }
  void PushAcknowledged(uint32_t worker) { ++acknowledged_[worker]; }
  // `worker` stands at `clock`: a checkpoint was loaded.
  void StartAt(uint32_t worker, Clock clock) { started_[worker] = acknowledged_[worker] = clock; }
  StepHistory& history() { return history_; }
  const StepHistory& history() const { return history_; }

  // What a pull that is sent now must at least see of each worker.
  std::vector<Clock> Acknowledged() const { return acknowledged_; }
  // `worker`, at `clock`, has read the rows of its shared keys, of the own keys of all workers
  // there are, and of its fresh key, which had to hold at least `acknowledged_before` of each
  // worker; of itself, what it had pushed when it asked. Notes every value that the mode does not
  // allow.
  void CheckRead(uint32_t worker, Clock clock, const std::vector<Clock>& acknowledged_before,
                 std::span<const float> shared_rows, std::span<const float> own_rows);

  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Range {
    Clock low = 0, high = 0;
  };
  Range Allowed(uint32_t reader, uint32_t of, Clock clock, Clock acknowledged_before) const;
  void CheckRow(const std::string& what, std::span<const float> row, Range allowed);

  const TallyOptions options_;
  StepHistory history_;
  uint32_t restarts_ = 0;
  std::vector<Clock> started_, acknowledged_;  // [workers]
  std::vector<std::string> violations_;
};

// The digest of all rows after `steps` steps of that history, by a table of its own.
RowsDigest ExpectedDigest(uint64_t seed, const StepHistory& history, Clock steps, bool rows_leave);

}  // namespace hdps::sim
