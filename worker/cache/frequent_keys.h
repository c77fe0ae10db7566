// Counts how often keys are seen, in bounded memory: which rows are worth keeping near.
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
// Invariant: at most `keys_max` keys are counted. A count is never more than the times its key was
// added since it was last halved, and less by at most what was taken off so far, about
// 2 * additions / keys_max. A function of the calls in their order.
class FrequentKeys {
 public:
  explicit FrequentKeys(size_t keys_max);

  struct Counted {
    Key key = 0;
    uint32_t count = 0;
  };

  // Counts each of `keys` once.
  void Add(std::span<const Key> keys);
  // Halves every count, so that what was frequent long ago is forgotten.
  void Halve();
  size_t size() const { return size_; }
  size_t bytes() const { return slots_.size() * sizeof(Counted); }
  // All keys that are counted, in no order that means anything.
  std::vector<Counted> All() const;

 private:
  // Takes the median off every count.
  void MakeRoom();
  // Keeps the keys whose new count is not 0.
  template <typename NewCount>
  void Recount(const NewCount& new_count);
  size_t HomeOf(Key key) const;

  const size_t keys_max_;
  std::vector<Counted> slots_;  // A power of two; count 0: free. Linear probing.
  size_t size_ = 0;
};

}  // namespace hdps
