// Counters of members that heartbeats and answers carry.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hdps {

// Counts the labels of a worker's examples with nonzero weight: their number and range. Bit i of
// `texts` is set if the i-th of the first 64 `positive` texts of the label's column was among them.
// Beside them it counts the ids that have no row.
struct LabelTally {
  uint64_t count = 0;
  float least = 0, largest = 0;  // Meaningless while `count` is 0.
  uint64_t texts = 0;
  uint64_t weightless = 0;   // Examples of weight 0; not part of the counts above.
  uint64_t unknown_ids = 0;  // Ids of all examples from their column's vocab_size on.
  void Add(const LabelTally& other) {
    weightless += other.weightless;
    unknown_ids += other.unknown_ids;
    if (other.count == 0) return;
    least = count == 0 ? other.least : std::min(least, other.least);
    largest = count == 0 ? other.largest : std::max(largest, other.largest);
    count += other.count;
    texts |= other.texts;
  }
  friend bool operator==(const LabelTally&, const LabelTally&) = default;
};

// RoundCounts has what a worker has counted since its present order to train began, with the steps
// that it has pushed. A process that takes its place counts on from there.
struct RoundCounts {
  uint64_t examples = 0;
  double loss_sum = 0;
  uint64_t bad_rows = 0;
  LabelTally labels = {};
  friend bool operator==(const RoundCounts&, const RoundCounts&) = default;
};

// Counts of a worker that keeps rows, since its process started: keys that its steps used, keys
// whose rows were kept, rows brought in, and the memory for all rows that may be kept.
struct CacheTally {
  uint64_t lookups = 0, hits = 0, swaps = 0, bytes = 0;
  friend bool operator==(const CacheTally&, const CacheTally&) = default;
};

// Counts of a worker in a group, since its process started: collective calls by kind, the bytes of
// the values that it sent in them, and the memory of its part of the optimizer state of dense
// tensors.
struct CollectiveTally {
  uint64_t allreduce_calls = 0, allreduce_bytes = 0;
  uint64_t reduce_scatter_calls = 0, reduce_scatter_bytes = 0;
  uint64_t allgather_calls = 0, allgather_bytes = 0;
  uint64_t state_bytes = 0;
  // Calls use(name, value) for each count.
  template <typename Use>
  void ForEach(const Use& use) const {
    use("allreduce_calls", allreduce_calls);
    use("allreduce_bytes", allreduce_bytes);
    use("reduce_scatter_calls", reduce_scatter_calls);
    use("reduce_scatter_bytes", reduce_scatter_bytes);
    use("allgather_calls", allgather_calls);
    use("allgather_bytes", allgather_bytes);
    use("optimizer_state_bytes", state_bytes);
  }
  void TakeMost(const CollectiveTally& other) {
    allreduce_calls = std::max(allreduce_calls, other.allreduce_calls);
    allreduce_bytes = std::max(allreduce_bytes, other.allreduce_bytes);
    reduce_scatter_calls = std::max(reduce_scatter_calls, other.reduce_scatter_calls);
    reduce_scatter_bytes = std::max(reduce_scatter_bytes, other.reduce_scatter_bytes);
    allgather_calls = std::max(allgather_calls, other.allgather_calls);
    allgather_bytes = std::max(allgather_bytes, other.allgather_bytes);
    state_bytes = std::max(state_bytes, other.state_bytes);
  }
  friend bool operator==(const CollectiveTally&, const CollectiveTally&) = default;
};

}  // namespace hdps
