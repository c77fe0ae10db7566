// Scored examples in a fixed order, whatever order they come in, without holding all in memory.
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
  Key group = 0;  // 0 for all where no column tells.
  float score = 0;
  float label = 0;
  float weight = 1;
  uint32_t unused = 0;  // No byte of it is left open, for it is written as it is.
  friend bool operator==(const ScoredExample&, const ScoredExample&) = default;
};

// Who stands in front: the higher score, and of equal ones the lower label, so that ties never
// help a ranking. kByGroup: groups one after the other, and so within each.
enum class ScoreOrder : uint8_t { kByScore, kByGroup };

// An external merge sort (Knuth, TAOCP 3, 5.4): what does not fit is sorted and written as a run,
// and the runs are merged as they are read.
//
// Invariant: at most kHeldMax examples are in memory, and as many bytes of each run as a buffer
// has; kRunsMax runs at most are read at once, so memory does not grow with the examples. What
// Read gives is a function of the examples alone, not of the order in which they were added.
class ScoredExamples {
 public:
  static constexpr size_t kHeldMax = size_t{1} << 20;
  static constexpr size_t kRunsMax = 64;

  // Runs are files in `folder`, which is made when the first is written, and removed at the end.
  ScoredExamples(FileSystem& files, std::string folder, ScoreOrder order,
                 size_t held_max = kHeldMax);
  ~ScoredExamples();
  ScoredExamples(const ScoredExamples&) = delete;
  ScoredExamples& operator=(const ScoredExamples&) = delete;

  // Its score is a number.
  Status Add(const ScoredExample& example);
  uint64_t size() const { return size_; }
  size_t num_runs() const { return runs_.size(); }
  // Gives all in order; as often as it is called.
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
  std::vector<std::string> runs_;  // Paths.
  uint64_t runs_made_ = 0;
  uint64_t size_ = 0;
};

}  // namespace hdps
