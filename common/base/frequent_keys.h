// Counts how often keys are seen, in bounded memory: rows worth keeping near, values that come
// most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// The frequent items of a stream (Misra and Gries 1982, in batches as Anderson et al. 2017): when
// the table is full, the median count is taken off every key and those left with nothing go.
//
// Invariant: at most `keys_max` keys are counted, and the table grows with them. A count is never
// more than the times its key was added since it was last halved, and less by at most error(),
// about 2 * additions / keys_max. A function of the calls in their order.
class FrequentKeys {
 public:
  explicit FrequentKeys(size_t keys_max);

  struct Counted {
    Key key = 0;
    uint64_t count = 0;
  };

  // Counts each of `keys` once.
  void Add(std::span<const Key> keys);
  // Halves every count, so that what was frequent long ago is forgotten.
  void Halve();
  size_t size() const { return size_; }
  uint64_t error() const { return error_; }
  // 0 where it is not counted.
  uint64_t CountOf(Key key) const;
  size_t bytes() const { return slots_.size() * sizeof(Counted); }
  // All keys that are counted, in no order that means anything.
  std::vector<Counted> All() const;

 private:
  // Takes the median off every count.
  void MakeRoom();
  // Keeps the keys whose new count is not 0, in a table of so many slots.
  template <typename NewCount>
  void Recount(size_t slots, const NewCount& new_count);
  size_t HomeOf(Key key) const;

  size_t keys_max_;
  std::vector<Counted> slots_;  // A power of two; count 0: free. Linear probing.
  size_t size_ = 0;
  uint64_t error_ = 0;
};

}  // namespace hdps
