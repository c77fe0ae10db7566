// An open hash table of the distinct keys of a list.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "kernels/vector_width.h"

namespace hdps {

// Invariant: unique() holds every key added since Reset() once, in order of first occurrence. A
// slot of the table holds a position there plus one, or 0 if it is free; at most half of the slots
// are in use. Memory is kept.
class KeyTable {
 public:
  // Forgets all keys. Keeps room for as many as there were; with more the table grows.
  void Reset() {
    const size_t slots = std::bit_ceil(std::max(2 * num_unique_ + num_unique_ / 4, 4 * kBlock));
    if (slots_.size() < slots) slots_.resize(slots);
    std::fill_n(slots_.begin(), slots, 0u);
    mask_ = slots - 1;
    num_unique_ = 0;
  }
  std::span<const Key> unique() const { return {unique_.data(), num_unique_}; }

  // Sets index[i] to the position of keys[i] in unique(). Forced inline, into a copy for each
  // vector width.
  HDPS_INLINE void Add(std::span<const Key> keys, uint32_t* index);

 private:
  static constexpr size_t kBlock = 64;
  // If a block has more keys than this that are not at their home, the next block is looked up key
  // by key.
  static constexpr size_t kMissesMax = 24;

  // Adds a block of keys; kAll: key by key. Returns how many were not at their home.
  template <bool kAll>
  HDPS_INLINE size_t AddBlock(const Key* keys, size_t count, const uint32_t* homes,
                              uint32_t* index);
  HDPS_INLINE bool FindOrAdd(Key key, uint32_t home, uint32_t* index);
  // Grows the table, so that a block of new keys fits.
  void Grow() {
    const size_t slots = 4 * (mask_ + 1);
    if (slots_.size() < slots) slots_.resize(slots);
    std::fill_n(slots_.begin(), slots, 0u);
    mask_ = slots - 1;
    for (size_t u = 0; u < num_unique_; ++u) {
      size_t slot = MixBits(unique_[u]) & mask_;
      while (slots_[slot] != 0) slot = (slot + 1) & mask_;
      slots_[slot] = static_cast<uint32_t>(u + 1);
    }
  }

  std::vector<uint32_t> slots_;
  std::vector<Key> unique_;
  size_t num_unique_ = 0;
  size_t mask_ = 0;
};

// Returns whether the key was at its home.
HDPS_INLINE bool KeyTable::FindOrAdd(Key key, uint32_t home, uint32_t* index) {
  for (size_t slot = home;; slot = (slot + 1) & mask_) {
    const uint32_t entry = slots_[slot];
    if (entry == 0) {
      unique_[num_unique_] = key;
      *index = static_cast<uint32_t>(num_unique_);
      slots_[slot] = static_cast<uint32_t>(++num_unique_);
      return false;
    }
    if (unique_[entry - 1] == key) {
      *index = entry - 1;
      return slot == home;
    }
  }
}

// Most keys of a skewed list are at their home. A loop without branches or writes to the table
// finds those, and only the others are looked up one by one.
template <bool kAll>
HDPS_INLINE size_t KeyTable::AddBlock(const Key* keys, size_t count, const uint32_t* homes,
                                      uint32_t* index) {
  uint32_t* const slots = slots_.data();
  Key* const unique = unique_.data();
  size_t misses = 0;
  if constexpr (kAll) {
    for (size_t i = 0; i < count; ++i) misses += FindOrAdd(keys[i], homes[i], &index[i]) ? 0 : 1;
    return misses;
  }
  uint32_t missed[kBlock];
  for (size_t i = 0; i < count; ++i) {
    const uint32_t entry = slots[homes[i]];
    // An empty slot is compared with an arbitrary key, and the result is ignored.
    const bool same = unique[std::max(entry, 1u) - 1] == keys[i];
    index[i] = entry - 1;
    missed[misses] = static_cast<uint32_t>(i);
    misses += static_cast<size_t>(!((entry != 0) & same));
  }
  for (size_t m = 0; m < misses; ++m) {
    const uint32_t i = missed[m];
    FindOrAdd(keys[i], homes[i], &index[i]);
  }
  return misses;
}

HDPS_INLINE void KeyTable::Add(std::span<const Key> keys, uint32_t* index) {
  if (unique_.size() < num_unique_ + keys.size() + 1) unique_.resize(num_unique_ + keys.size() + 1);
  size_t misses = 0;
  uint32_t homes[kBlock];
  for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, keys.size() - begin);
    if (2 * (num_unique_ + count) > mask_ + 1) Grow();
    const Key* const block = keys.data() + begin;
    const uint64_t mask = mask_;
    for (size_t i = 0; i < count; ++i) homes[i] = static_cast<uint32_t>(MixBits(block[i]) & mask);
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&slots_[homes[i]]);
    misses = misses > kMissesMax ? AddBlock<true>(block, count, homes, index + begin)
                                 : AddBlock<false>(block, count, homes, index + begin);
  }
}

}  // namespace hdps
