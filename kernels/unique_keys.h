// Finds the distinct keys of a batch, so that each row travels once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"

namespace hdps {

// Invariant: unique() holds every key added since Reset() once, in order of first sight.
// Its memory is kept from batch to batch.
class UniqueKeys {
 public:
  // Forgets all keys and makes room for `keys_max` more.
  void Reset(size_t keys_max);
  // index[i] = position of keys[i] in unique(). At most keys_max keys in all since Reset().
  void Add(std::span<const Key> keys, uint32_t* index);
  std::span<const Key> unique() const { return {unique_.data(), num_unique_}; }

 private:
  uint32_t FindOrAdd(Key key, size_t home);

  std::vector<uint32_t> slots_;  // Position in unique_ plus one; 0: free. Linear probing.
  std::vector<Key> unique_;
  size_t num_unique_ = 0;
  size_t mask_ = 0;  // Slots in use this batch, less one; a power of two.
};

}  // namespace hdps
