// Rows as tallies: what a cluster may answer and must hold, known without looking into it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/job.h"
#include "embedding/table.h"

namespace hdps::sim {

// Which rows a step touches. Every step of a worker adds one to the tally of each of them; float j
// of a row is (j + 1) times its tally. Rows of SGD with rate 1 from zero, so all sums are exact.
//   table 0 (dim 1): shared keys, which every worker counts up in every step;
//   table 1 (dim 3): own keys, one a worker, and one fresh key for each (worker, step).
inline constexpr uint32_t kSharedKeys = 6;
inline constexpr uint32_t kDims[2] = {1, 3};
std::vector<TableSpec> TallyTables();
std::vector<Key> SharedKeys();
Key OwnKey(uint32_t worker);
Key FreshKey(uint32_t worker, Clock clock);

struct TallyOptions {
  Mode mode = Mode::kSync;
  Clock staleness_bound = 0;
  uint32_t num_workers = 1;
  // Of other workers a read need not hold more than the mode promises: whoever has not heard that
  // a primary was replaced may be answered by it.
  bool owner_may_be_replaced = false;
};

// Watches from outside what each worker has pushed and read.
//
// Invariant: started(w) >= acknowledged(w); both only grow.
class Tally {
 public:
  explicit Tally(const TallyOptions& options);

  void PushStarted(uint32_t worker) { ++started_[worker]; }
  void PushAcknowledged(uint32_t worker) { ++acknowledged_[worker]; }
  // `worker` stands at `clock`: a checkpoint was loaded.
  void StartAt(uint32_t worker, Clock clock) { started_[worker] = acknowledged_[worker] = clock; }

  // What a pull that is sent now must at least see of each worker.
  std::vector<Clock> Acknowledged() const { return acknowledged_; }
  // `worker`, at `clock`, has read the rows of its shared keys and of all own keys, which had to
  // hold at least `acknowledged_before` of each worker; of itself, what it had pushed when it
  // asked. Notes every value that the mode does not allow.
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
  std::vector<Clock> started_, acknowledged_;  // [workers]
  std::vector<std::string> violations_;
};

// The digest of all rows after every worker has made `steps` steps, by a table of its own.
RowsDigest ExpectedDigest(uint64_t seed, uint32_t num_workers, Clock steps);

}  // namespace hdps::sim
