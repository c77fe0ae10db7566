// Finds rows by key: one flat array, probed in a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/hash.h"
#include "common/ids.h"

namespace hdps {

// Invariant: `slots_` is a power of two long and at most two thirds full, so a probe ends; a slot
// is empty exactly when its value is null. Keys are never taken out.
//
// The place of a key comes from other bits than its shard does (`salt` differs from ShardOf's), so
// the keys of one shard spread over the whole array.
template <typename Value>
class RowIndex {
 public:
  explicit RowIndex(uint64_t salt) : salt_(salt), slots_(kSlotsMin) {}

  size_t size() const { return size_; }
  size_t bytes() const { return slots_.size() * sizeof(Slot); }

  // Makes room for `more` keys, so that the next `more` Inserts move nothing.
  void Reserve(size_t more) {
    size_t slots = slots_.size();
    while ((size_ + more) * 3 > slots * 2) slots *= 2;
    if (slots != slots_.size()) Grow(slots);
  }

  size_t Home(Key key) const { return MixBits(key ^ salt_) & (slots_.size() - 1); }
  void Prefetch(size_t home) const { __builtin_prefetch(&slots_[home]); }

  // The value of `key`, probing from its home; null when it has none.
  Value* Find(Key key, size_t home) const { return slots_[Probe(key, home)].value; }
  // The place of the value of `key`, null in it when the key is new: the caller fills it at once.
  // Requires: room was reserved.
  Value** Insert(Key key, size_t home) {
    Slot& slot = slots_[Probe(key, home)];
    if (slot.value == nullptr) {
      slot.key = key;
      ++size_;
    }
    return &slot.value;
  }

  template <typename Visit>  // visit(key, value), in no order that means anything
  void ForEach(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.value != nullptr) visit(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    Key key = 0;
    Value* value = nullptr;
  };
  static constexpr size_t kSlotsMin = 16;

  size_t Probe(Key key, size_t at) const {
    const size_t mask = slots_.size() - 1;
    while (slots_[at].value != nullptr && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void Grow(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.value != nullptr) slots_[Probe(slot.key, Home(slot.key))] = slot;
    }
  }

  const uint64_t salt_;
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace hdps
