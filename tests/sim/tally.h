// Gives rows known values, so that what a cluster answers and stores can be checked from outside.
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

// The rows of a step. Each step of a worker adds one to the tally of each of its rows; float j of a
// row is (j + 1) times its tally. The optimizer is SGD with rate 1 from zero, so sums are exact.
//   table 0 (dim 1): shared keys, which every worker updates in every step;
//   table 1 (dim 3): one own key per worker, and a fresh key for each (worker, step). If rows are
//     evicted, the fresh key of a step comes again a few steps after its eviction.
inline constexpr uint32_t kSharedKeys = 6;
inline constexpr uint32_t kDims[2] = {1, 3};
// `rows_leave`: rows of table 1 are evicted after kLeaveAfterSteps without an update.
std::vector<TableSpec> TallyTables(bool rows_leave);
inline constexpr uint64_t kLeaveAfterSteps = 3;
inline constexpr Clock kFreshAgainSteps = 6;
std::vector<Key> SharedKeys();
Key OwnKey(uint32_t worker);
Key FreshKey(uint32_t worker, Clock clock, bool rows_leave);

// Records how many workers made each step that counts in the end.
//
// Invariant: a step was made by the workers of ranks 0 .. n-1.
class StepHistory {
 public:
  explicit StepHistory(uint32_t workers) { workers_from_[0] = workers; }
  // Continues from `clock` with so many workers.
  void GoOn(Clock clock, uint32_t workers) {
    workers_from_.erase(workers_from_.lower_bound(clock), workers_from_.end());
    workers_from_[clock] = workers;
  }
  uint32_t WorkersAt(Clock clock) const {
    return std::prev(workers_from_.upper_bound(clock))->second;
  }
  // Returns how many steps before `clock` the worker of this rank has made; with `rows_leave`, only
  // those after the last eviction of its own row.
  Clock StepsOf(uint32_t worker, Clock clock, bool rows_leave = false) const;
  uint32_t workers_max() const;

 private:
  std::map<Clock, uint32_t> workers_from_;
};

struct TallyOptions {
  Mode mode = Mode::kSync;
  Clock staleness_bound = 0;
  uint32_t num_workers = 1;  // Workers at the start.
  // Rows are evicted, as in TallyTables().
  bool rows_leave = false;
  // A read need not contain more of other workers than the mode promises, because a server may
  // answer that has not heard of its replacement as primary.
  bool owner_may_be_replaced = false;
};

inline constexpr uint32_t kTalliedWorkersMax = 8;

// Records what each worker has pushed and read.
//
// Invariant: started(w) >= acknowledged(w); both only grow.
class Tally {
 public:
  explicit Tally(const TallyOptions& options);

  // Counts that the job went back to a checkpoint so often. What was pushed in earlier lives no
  // longer counts, neither here nor in the final rows.
  void WentBack(uint32_t restarts) { restarts_ = std::max(restarts_, restarts); }
  bool Counts(uint32_t restarts) const { return restarts == restarts_; }

  void PushStarted(uint32_t worker, Clock clock) {
    started_[worker] = std::max(started_[worker], clock + 1);
  }
  void PushAcknowledged(uint32_t worker) { ++acknowledged_[worker]; }
  // Sets the worker's clock after a checkpoint was loaded.
  void StartAt(uint32_t worker, Clock clock) { started_[worker] = acknowledged_[worker] = clock; }
  // Another process has the worker's place and goes on at `clock`: what was started may be in the
  // rows. Acknowledgments are counted in any order, so the number of them tells no least clock.
  void TakeUp(uint32_t worker, Clock clock) {
    if (clock > started_[worker]) {
      violations_.push_back("worker " + std::to_string(worker) + " is taken up at step " +
                            std::to_string(clock) + ", where " + std::to_string(started_[worker]) +
                            " were begun");
    }
    acknowledged_[worker] = clock;
  }
  StepHistory& history() { return history_; }
  const StepHistory& history() const { return history_; }

  // Returns what a pull that is sent now must contain at least, for each worker.
  std::vector<Clock> Acknowledged() const { return acknowledged_; }
  // Checks the rows that `worker` has read at `clock`: its shared keys, the own keys of all current
  // workers, and its fresh key. They must contain at least `acknowledged_before` of each worker,
  // and all pushes of the worker itself before the read. Notes every value that the mode does not
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

// Returns the digest of all rows after `steps` steps of this history, computed by a separate table.
RowsDigest ExpectedDigest(uint64_t seed, const StepHistory& history, Clock steps, bool rows_leave);

}  // namespace hdps::sim
