// Counts how often keys occur, in bounded memory: to choose rows to cache and frequent values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// Finds the frequent items of a stream (Misra and Gries 1982, in batches as Anderson et al. 2017).
// When the table is full, the median count is subtracted from every key, and keys whose count is
// then 0 are dropped.
//
// Invariant: at most `keys_max` keys are counted, and the table grows with them. A count is never
// more than the number of times its key was added since the last Halve(), and is too low by at most
// error(), about 2 * additions / keys_max. The result depends only on the calls and their order.
class FrequentKeys {
 public:
  explicit FrequentKeys(size_t keys_max);

  struct Counted {
    Key key = 0;
    uint64_t count = 0;
  };

  // Counts each of `keys` once.
  void Add(std::span<const Key> keys);
  // Halves every count, so that keys that are no longer frequent fade out.
  void Halve();
  size_t size() const { return size_; }
  uint64_t error() const { return error_; }
  // Returns 0 if the key is not counted.
  uint64_t CountOf(Key key) const;
  size_t bytes() const { return slots_.size() * sizeof(Counted); }
  // Returns all counted keys, in an unspecified order.
  std::vector<Counted> All() const;

 private:
  // Subtracts the median count from every key.
  void MakeRoom();
  // Rebuilds the table with `slots` slots. Keeps the keys for which new_count(count) is not 0.
  template <typename NewCount>
  void Recount(size_t slots, const NewCount& new_count);
  size_t HomeOf(Key key) const;

  size_t keys_max_;
  std::vector<Counted> slots_;  // Power-of-two size, linear probing; count 0 marks a free slot.
  size_t size_ = 0;
  uint64_t error_ = 0;
};

}  // namespace hdps
