// The set of keys whose rows are cached at the worker, and their slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/frequent_keys.h"
#include "common/base/ids.h"

namespace hdps {

// Maps keys to slots. Immutable, so that the reader and the current step may use different
// versions.
//
// Invariant: slot s holds keys()[s]; no key appears twice, and no slot is empty.
class HotKeys {
 public:
  HotKeys() : HotKeys(std::vector<Key>()) {}
  explicit HotKeys(std::vector<Key> keys);

  const std::vector<Key>& keys() const { return keys_; }
  uint32_t size() const { return static_cast<uint32_t>(keys_.size()); }
  // Sets slots[i] to the slot of keys[i], or to kNotInSlab if it has none.
  void Find(std::span<const Key> keys, uint32_t* slots) const;

 private:
  std::vector<Key> keys_;
  // Hash table with linear probing; its size is a power of two. Slot plus one; 0: free.
  std::vector<uint32_t> index_;
};

// Assigns `slot` to `key`; the slot is the next free one, or its old key leaves.
struct SlotChange {
  uint32_t slot = 0;
  Key key = 0;
};

// Chooses changes after which at most `rows_max` slots hold the most frequent keys. A cached key
// stays unless another is clearly more frequent, so that rows of equal frequency do not travel.
// Free slots are used first, in order.
std::vector<SlotChange> ChooseChanges(const HotKeys& now,
                                      std::vector<FrequentKeys::Counted> counted, size_t rows_max);
// Returns the keys after the changes. Requires: free slots are filled in order, and no new key is
// in `now`.
HotKeys Changed(const HotKeys& now, std::span<const SlotChange> changes);

}  // namespace hdps
