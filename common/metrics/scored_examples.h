// Sorts scored examples whatever order they arrive in, without holding all of them in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct ScoredExample {
  Key group = 0;  // 0 for all examples without a group column.
  float score = 0;
  float label = 0;
  float weight = 1;
  uint32_t unused = 0;  // Fills the padding, because the struct is written to files as it is.
  friend bool operator==(const ScoredExample&, const ScoredExample&) = default;
};

// The order of examples: by falling score, and among equal scores by rising label, so that ties
// never help a ranking. kByGroup: one group after the other, each in this order.
enum class ScoreOrder : uint8_t { kByScore, kByGroup };

// An external merge sort (Knuth, TAOCP 3, 5.4): what does not fit into memory is sorted and written
// as a run, and the runs are merged while they are read.
//
// Invariant: memory holds at most kHeldMax examples, and one buffer of each run. At most kRunsMax
// runs are read at once, so memory does not grow with the number of examples. The result of Read()
// depends only on the examples, not on the order in which they were added.
class ScoredExamples {
 public:
  static constexpr size_t kHeldMax = size_t{1} << 20;
  static constexpr size_t kRunsMax = 64;

  // Runs are files in `folder`, which is created with the first run and removed at the end.
  ScoredExamples(FileSystem& files, std::string folder, ScoreOrder order,
                 size_t held_max = kHeldMax);
  ~ScoredExamples();
  ScoredExamples(const ScoredExamples&) = delete;
  ScoredExamples& operator=(const ScoredExamples&) = delete;

  // Requires: the score is not NaN.
  Status Add(const ScoredExample& example);
  uint64_t size() const { return size_; }
  size_t num_runs() const { return runs_.size(); }
  // Passes all examples to `take` in order. May be called any number of times.
  Status Read(const std::function<void(const ScoredExample&)>& take);

 private:
  bool Before(const ScoredExample& a, const ScoredExample& b) const;
  Status WriteHeld();
  Result<std::string> NewRun();
  Status Merge(const std::vector<std::string>& runs, bool held,
               const std::function<Status(const ScoredExample&)>& take);
  Status ReduceRuns();

  FileSystem& files_;
  const std::string folder_;
  const ScoreOrder order_;
  const size_t held_max_;
  std::vector<ScoredExample> held_;
  bool held_sorted_ = true;
  std::vector<std::string> runs_;  // Paths of the runs on disk.
  uint64_t runs_made_ = 0;
  uint64_t size_ = 0;
};

}  // namespace hdps
