// What members count of their work, as heartbeats and answers carry it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hdps {

// Labels that a worker has met of examples with a weight: how many, the least and the largest of
// them, and, one bit each, which of the first 64 `positive` texts of the label's column were among
// them (of batches that have one).
struct LabelTally {
  uint64_t count = 0;
  float least = 0, largest = 0;  // Mean nothing while there are none.
  uint64_t texts = 0;
  uint64_t weightless = 0;  // Examples of weight 0, which do not count above.
  void Add(const LabelTally& other) {
    weightless += other.weightless;
    if (other.count == 0) return;
    least = count == 0 ? other.least : std::min(least, other.least);
    largest = count == 0 ? other.largest : std::max(largest, other.largest);
    count += other.count;
    texts |= other.texts;
  }
  friend bool operator==(const LabelTally&, const LabelTally&) = default;
};

// Of a worker that keeps rows, since its process began: keys that its steps named, those whose rows
// were at hand, rows brought in, and the memory of all that may be kept.
struct CacheTally {
  uint64_t lookups = 0, hits = 0, swaps = 0, bytes = 0;
  friend bool operator==(const CacheTally&, const CacheTally&) = default;
};

// Of a worker in a group, since its process began: calls of collectives by kind, the bytes of
// values that they sent from it, and the memory of what it keeps of the dense tensors' optimizer
// state.
struct CollectiveTally {
  uint64_t allreduce_calls = 0, allreduce_bytes = 0;
  uint64_t reduce_scatter_calls = 0, reduce_scatter_bytes = 0;
  uint64_t allgather_calls = 0, allgather_bytes = 0;
  uint64_t state_bytes = 0;
  // Calls use(name, value) for each.
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
