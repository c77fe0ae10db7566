// The keys whose rows are kept at the worker, and where each of them is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/frequent_keys.h"
#include "common/base/ids.h"

namespace hdps {

// Immutable, so that a reader ahead and the step at hand may use different ones side by side.
//
// Invariant: slot s holds keys()[s]; no key twice, no slot empty.
class HotKeys {
 public:
  HotKeys() : HotKeys(std::vector<Key>()) {}
  explicit HotKeys(std::vector<Key> keys);

  const std::vector<Key>& keys() const { return keys_; }
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  // slots[i] = the slot of keys[i], kNotInSlab where it has none.
  void Find(std::span<const Key> keys, uint32_t* slots) const;

 private:
  std::vector<Key> keys_;
  std::vector<uint32_t> index_;  // Slot plus one; 0: free. A power of two, linear probing.
};

// Slot `slot` gets `key`; it is the next free one, or its key leaves.
struct SlotChange {
  uint32_t slot = 0;
  Key key = 0;
};

// What to change so that at most `rows_max` slots hold the keys counted most. A key that is there
// stays unless another was clearly seen more often, so that rows of equal worth do not travel.
// Free slots come first, in their order.
std::vector<SlotChange> ChooseChanges(const HotKeys& now,
                                      std::vector<FrequentKeys::Counted> counted, size_t rows_max);
// Requires: the changes fill free slots in order; no key of them is there.
HotKeys Changed(const HotKeys& now, std::span<const SlotChange> changes);

}  // namespace hdps
